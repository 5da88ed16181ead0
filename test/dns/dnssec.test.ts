// DNSSEC of zones (docs/contract/resources.md §12.3), judged by delv: signed by the name server, delegated by BIND,
// rolled over. Operations: getDnssec, enableDnssec, disableDnssec, rotateDnssecKey, getDnsZoneMetrics.
import { execFile } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { freePort } from '../support/processes/free_port';
import { startService, type Answer, type TestService } from '../support/service';
import { fileNeeds } from '../support/runner/programs';
import { withConfig } from '../support/config';

fileNeeds('named', 'dig', 'delv');

type Body = Answer['body'];

const run = promisify(execFile);
jest.setTimeout(120_000);

const directory = mkdtempSync(path.join(tmpdir(), 'dnssec-'));
let service: TestService;
let parent: DnsParent;
let port: number;
let zone: Body;
/** Where a secondary is told of changes; it keeps their messages. */
let secondary: Socket;
const notified: Buffer[] = [];

const dnssec = async (): Promise<Body> => (await service.call('GET', `/v2/dns_zones/${zone.id}/dnssec`)).body;
const dsText = ({ key_tag, algorithm, digest_type, digest }: Body): string =>
  `${key_tag} ${algorithm} ${digest_type} ${digest}`;

beforeAll(async () => {
  port = await freePort();
  parent = await startDnsParent('example.com', await freePort());
  secondary = createSocket('udp4', (message, { address, port: from }) => {
    notified.push(message);
    secondary.send(Buffer.concat([message.subarray(0, 2), Buffer.from([0xa4]), message.subarray(3)]), from, address);
  });
  await new Promise<void>((resolve) => secondary.bind(0, '127.0.0.1', resolve));
  const DNS_SECONDARIES = `127.0.0.1:${secondary.address().port}`;
  const settings = { DNS_PORT: String(port), ...withConfig({ dnsRoots: [parent.address] }), DNS_SECONDARIES };
  service = await startService({ worker: true, settings });
  zone = (await service.call('POST', '/v2/dns_zones', { body: { name: 'signed.example.com' } })).body;
  const records = [
    { type: 'A', name: 'www', value: '192.0.2.1' },
    { type: 'CNAME', name: 'alias', value: 'www.signed.example.com' },
    { type: 'TXT', name: '*.wild', value: 'x'.repeat(600) },
    { type: 'A', name: 'a.empty', value: '192.0.2.2' },
    { type: 'NS', name: 'child', value: 'ns.elsewhere.example.net' },
  ];
  await service.call('PUT', `/v2/dns_zones/${zone.id}/records`, { body: { records } });
});

afterAll(async () => {
  await service.close();
  await parent.close();
  secondary.close();
  rmSync(directory, { recursive: true, force: true });
});

/** What delv says of an answer under the given trust anchors: its first comment. */
async function delv(anchors: string[], ...question: string[]): Promise<string> {
  const file = path.join(directory, 'anchors');
  const entries = anchors.map((ds) => `"signed.example.com" static-ds ${ds.replace(/(\w+)$/, '"$1"')};`);
  writeFileSync(file, `trust-anchors { ${entries.join(' ')} };`);
  const args = ['@127.0.0.1', '-p', String(port), '-a', file, '+root=signed.example.com', ...question];
  const { stdout, stderr } = await run('delv', args).catch((error) => error);
  return `${stdout}${stderr}`;
}

async function until(check: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('it did not come to pass in 10 seconds');
}

test('a zone that is not delegated cannot be signed', async () => {
  expect(await dnssec()).toMatchObject({ status: 'disabled', algorithm: null, ds_records: [] });
  const refused = await service.call('POST', `/v2/dns_zones/${zone.id}/dnssec`);
  expect([refused.status, refused.body.code]).toEqual([409, 'invalid_state']);
});

test('a signed zone is valid for every kind of answer, and pending until the parent has its DS', async () => {
  await parent.delegate(zone.name, zone.name_servers);
  expect((await service.call('POST', `/v2/dns_zones/${zone.id}/verify`)).body.status).toBe('active');
  const enabled = await service.call('POST', `/v2/dns_zones/${zone.id}/dnssec`);
  expect([enabled.status, enabled.body.status, enabled.body.algorithm]).toEqual([202, 'pending', 'ECDSAP256SHA256']);
  const ds = enabled.body.ds_records.map(dsText);
  expect(ds).toHaveLength(1);
  await until(async () => /fully validated/.test(await delv(ds, 'www.signed.example.com', 'A')));
  const questions = [
    ['alias.signed.example.com', 'A'],
    ['any.wild.signed.example.com', 'TXT'],
    ['www.signed.example.com', 'MX'],
    ['empty.signed.example.com', 'A'],
    ['nothing.signed.example.com', 'A'],
    ['any.wild.signed.example.com', 'A'],
    ['child.signed.example.com', 'DS'],
    ['signed.example.com', 'SOA'],
    ['signed.example.com', 'CDS'],
    ['signed.example.com', 'CDNSKEY'],
  ];
  for (const question of questions)
    expect([question, await delv(ds, ...question)]).toEqual([question, expect.stringContaining('fully validated')]);
  const keyOf = async (type: string): Promise<string | undefined> =>
    /\s257 3 13 ([^;]+?)\s*(?:;.*)?$/m.exec(await delv(ds, 'signed.example.com', type))?.[1];
  expect([await keyOf('CDNSKEY')]).toEqual([await keyOf('DNSKEY')]);
  expect(await keyOf('CDNSKEY')).toMatch(/^[\w+/]{20}/);
  expect((await service.call('POST', `/v2/dns_zones/${zone.id}/dnssec`)).body.code).toBe('invalid_state');
});

// With quotes: what is sealed is random letters.
const PRIVATE = /"(ksk|private_key|MIG)/;

test('the private keys stand in no answer, no row and no file', async () => {
  const [row] = await service.sql<{ signing_keys: string }>('select signing_keys from dns_zones where id = $1', [
    zone.id,
  ]);
  expect(row?.signing_keys).not.toMatch(PRIVATE);
  const copies = path.join(service.dataDir, 'dns');
  for (const file of readdirSync(copies)) expect(readFileSync(path.join(copies, file), 'utf8')).not.toMatch(PRIVATE);
});

test('it is active once the parent has the DS, and a new key is rolled in behind the old one', async () => {
  const [first] = (await dnssec()).ds_records.map(dsText);
  const recheck = async (): Promise<void> => {
    await service.sql(`update dns_zones set last_checked_at = null, next_at = now() where id = $1`, [zone.id]);
  };
  await parent.delegate(zone.name, zone.name_servers, [first]);
  await recheck();
  await until(async () => (await dnssec()).status === 'active');
  const rotated = await service.call('POST', `/v2/dns_zones/${zone.id}/dnssec/rotate`);
  expect([rotated.status, rotated.body.status, rotated.body.ds_records.length]).toEqual([202, 'pending', 2]);
  const second = rotated.body.ds_records.map(dsText).find((ds: string) => ds !== first);
  for (const anchor of [first, second])
    await until(async () => /fully validated/.test(await delv([anchor], 'www.signed.example.com', 'A')));
  await parent.delegate(zone.name, zone.name_servers, [second]);
  await recheck();
  await until(async () => (await dnssec()).ds_records.length === 1);
  expect(await dnssec()).toMatchObject({ status: 'active', ds_records: [{ key_tag: Number(second.split(' ')[0]) }] });
  expect(await delv([second], 'www.signed.example.com', 'A')).toContain('fully validated');
  // The row is settled before the last process of the name server has the zone without the old key.
  await until(async () => !/fully validated/.test(await delv([first], 'www.signed.example.com', 'A')));
});

test('every three days, secondaries are told to fetch fresh signatures', async () => {
  const path = `/v2/dns_zones/${zone.id}`;
  const { serial } = (await service.call('GET', path)).body;
  const renewedBefore = async (hours: number): Promise<void> => {
    notified.length = 0;
    await service.sql(
      `update dns_zones set next_at = now(), observed = coalesce(observed, '{}') ||
         jsonb_build_object('renewed_at', now() - $2::int * interval '1 hour') where id = $1`,
      [zone.id, hours],
    );
  };
  await renewedBefore(71);
  const isDone = 'select 1 from dns_zones where id = $1 and next_at > now()';
  await until(async () => (await service.sql(isDone, [zone.id])).length === 1);
  expect((await service.call('GET', path)).body.serial).toBe(serial);
  await renewedBefore(73);
  await until(async () => (await service.call('GET', path)).body.serial === serial + 1);
  await until(async () => notified.some((message) => message.includes('\x06signed\x07example\x03com')));
  const { stdout } = await run('dig', ['@127.0.0.1', '-p', String(port), '+short', 'signed.example.com', 'SOA']);
  expect(stdout.split(' ')[2]).toBe(String(serial + 1));
  // And it is not raised again at once.
  await service.sql('update dns_zones set next_at = now() where id = $1', [zone.id]);
  await until(async () => (await service.sql(isDone, [zone.id])).length === 1);
  expect((await service.call('GET', path)).body.serial).toBe(serial + 1);
});

test('switched off, the zone is answered without signatures', async () => {
  const { ds_records: before } = await dnssec();
  expect((await service.call('DELETE', `/v2/dns_zones/${zone.id}/dnssec`)).status).toBe(204);
  expect(await dnssec()).toMatchObject({ status: 'disabled', ds_records: [] });
  await until(async () => {
    const { stdout } = await run('dig', [
      '@127.0.0.1',
      '-p',
      String(port),
      '+dnssec',
      '+short',
      'www.signed.example.com',
    ]);
    return stdout.trim() === '192.0.2.1';
  });
  expect((await service.call('DELETE', `/v2/dns_zones/${zone.id}/dnssec`)).status).toBe(204);
  // The parent zone may have the digests still: the keys are the same again, by an undo as by hand.
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?action=dnssec.disabled`);
  const entry = body.data.find(({ revertible }: { revertible: boolean }) => revertible);
  expect((await service.call('POST', `/v2/activity/${entry.id}/revert`)).status).toBe(200);
  expect(await dnssec()).toMatchObject({ status: 'pending', ds_records: before });
  expect((await service.call('DELETE', `/v2/dns_zones/${zone.id}/dnssec`)).status).toBe(204);
});
