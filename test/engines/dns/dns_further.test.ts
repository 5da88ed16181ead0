/** @tier heavy @quarter 2 @covers server/start_dns.ts server/agents/nameserver_feed.ts models/dns/dns_zone/served.ts */
// Further name servers, `npm run dns`: two of them beside the one of the worker answer the same, follow changes while
// it is away, and answer from their copies while the database is.
import { createSocket, type Socket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { ask, run, startBindSecondary, startUnbound, type Program as Other } from '../../support/dns/dns_programs';
import { freePort } from '../../support/processes/free_port';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { fileNeeds } from '../../support/runner/programs';
import { startService, type Answer, type TestService } from '../../support/service';
import { waitFor } from '../../support/wait_for';

fileNeeds('dig', 'named', 'unbound', 'ldns-verify-zone');
jest.setTimeout(180_000);

const directory = mkdtempSync(path.join(tmpdir(), 'dns-further-'));
const secret = Buffer.alloc(32, 7).toString('base64');
const others: Other[] = [];
/** Of the worker, and of the two further ones. */
let ports: number[];
let service: TestService;
let settings: Record<string, string>;
let worker: Program;
const further: Program[] = [];
/** Where a secondary is told of changes. */
let secondary: Socket;
let bindPort: number;
const notified: Buffer[] = [];

const startWorker = async (): Promise<void> => {
  const own = { DNS_PORT: String(ports[0]), PLATFORM_DATA_DIR: service.dataDir };
  worker = startProgram({ ...settings, ...own }, { entry: 'server/worker.ts' });
  await worker.ready();
};
const dnsSettings = (at: number): Record<string, string> => ({
  ...settings,
  ...{ DNS_PORT: String(ports[at]), PLATFORM_DATA_DIR: path.join(directory, String(at)) },
});
const startFurther = async (at: number): Promise<void> => {
  further[at] = startProgram(dnsSettings(at), { entry: 'server/dns.ts' });
  await (further[at] as Program).ready();
};
const kill = async (program: Program | undefined): Promise<void> => {
  program?.signal('SIGKILL');
  await program?.ended;
};

const short = async (at: number, ...question: string[]): Promise<string> => {
  const args = ['@127.0.0.1', '-p', String(ports[at]), '+short', '+tries=1', '+time=1', ...question];
  return (await run('dig', args)).stdout.trim();
};
const waitForAnswer = (at: number, question: string[], expected: string): Promise<unknown> =>
  waitFor(`the answer ${expected} of ${at}`, async () => (await short(at, ...question).catch(() => '')) === expected);

async function makeZone(name: string): Promise<Answer['body']> {
  const made = await service.call('POST', '/v2/dns_zones', { body: { name } });
  expect(made.status).toBe(201);
  return made.body;
}
const addRecord = async (zone: Answer['body'], value: object): Promise<Answer['body']> => {
  const made = await service.call('POST', `/v2/dns_zones/${zone.id}/records`, { body: value });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  return made.body;
};

beforeAll(async () => {
  ports = [await freePort(), await freePort(), await freePort()];
  bindPort = await freePort();
  secondary = createSocket('udp4', (message, { address, port }) => {
    notified.push(message);
    secondary.send(Buffer.concat([message.subarray(0, 2), Buffer.from([0xa4]), message.subarray(3)]), port, address);
  });
  await new Promise<void>((resolve) => secondary.bind(0, '127.0.0.1', resolve));
  const ofDns = {
    ...{ DNS_PORT: String(ports[0]), DNS_DOMAIN: 'dns.example.net', DNS_IPS: '192.0.2.1,192.0.2.2,2001:db8::3' },
    ...{ DNS_SECONDARIES: `127.0.0.1:${secondary.address().port},127.0.0.1:${bindPort}` },
    ...{ DNS_TRANSFER_KEY: `transfer:${secret}`, DNS_RESOLVERS: '127.0.0.1' },
    PLATFORM_SECRET_KEY: randomBytes(32).toString('base64'),
  };
  service = await startService({ settings: ofDns });
  settings = { DATABASE_URL: service.platform.config.databaseUrl as string, LOG_LEVEL: 'info', ...ofDns };
  await Promise.all([startWorker(), startFurther(1), startFurther(2)]);
});
afterAll(async () => {
  await endPrograms();
  for (const program of others) await program.close();
  secondary?.close();
  await service?.close();
  rmSync(directory, { recursive: true, force: true });
});

let signed: Answer['body'];

test('all answer the same zone with the same serial, and the names of all of them', async () => {
  signed = await makeZone('signed.example.com');
  await addRecord(signed, { type: 'A', name: 'www', value: '192.0.2.10' });
  await addRecord(signed, { type: 'TXT', name: '*.wild', value: 'x'.repeat(600) });
  for (const at of [0, 1, 2]) await waitForAnswer(at, ['www.signed.example.com', 'A'], '192.0.2.10');
  await waitFor('one serial', async () => {
    const soas = await Promise.all([0, 1, 2].map((at) => short(at, 'signed.example.com', 'SOA')));
    return new Set(soas).size === 1;
  });
  const [nameServer = ''] = signed.name_servers as string[];
  for (const at of [1, 2]) {
    expect((await short(at, nameServer, 'A')).split('\n').sort()).toEqual(['192.0.2.1', '192.0.2.2']);
    expect(await short(at, nameServer, 'AAAA')).toBe('2001:db8::3');
    expect(await ask(ports[at] as number, 'www.elsewhere.example.org', 'A')).toContain('REFUSED');
  }
});

test('signed zones validate at each, and their transfers verify', async () => {
  await service.sql(`update dns_zones set status = 'active' where id = $1`, [signed.id]);
  const enabled = await service.call('POST', `/v2/dns_zones/${signed.id}/dnssec`);
  expect(enabled.status).toBe(202);
  const { key_tag, algorithm, digest_type, digest } = enabled.body.ds_records[0];
  const ds = `${key_tag} ${algorithm} ${digest_type} ${digest}`;
  const keys: string[] = [];
  for (const at of [0, 1, 2]) {
    await waitFor('the keys', async () => (await short(at, 'signed.example.com', 'DNSKEY')) !== '');
    keys.push((await short(at, 'signed.example.com', 'DNSKEY')).split('\n').sort().join('\n'));
    const unbound = await startUnbound({ zone: 'signed.example.com', port: ports[at] as number, ds });
    others.push(unbound);
    for (const name of ['www', 'a.wild', 'nothing'])
      expect(await ask(unbound.port, `${name}.signed.example.com`, 'A')).toMatch(/^(NOERROR|NXDOMAIN) .*\bad\b/);
    const args = ['@127.0.0.1', '-p', String(ports[at]), '-y', `hmac-sha256:transfer:${secret}`];
    const { stdout } = await run('dig', [...args, 'signed.example.com', 'AXFR', '+onesoa']);
    const file = path.join(directory, `zone${at}`);
    // dig prints the signatures of the messages among the records.
    writeFileSync(file, stdout.replace(/^.*\sTSIG\s.*$/gm, ''));
    await run('ldns-verify-zone', [file]);
  }
  expect(new Set(keys).size).toBe(1);
});

test('while the worker is away changes are answered, and one of them notifies each secondary', async () => {
  const primary = { port: ports[1] as number, further: [ports[2] as number], zones: ['signed.example.com'] };
  const bind = await startBindSecondary({ ...primary, key: `transfer:${secret}` }, bindPort);
  others.push(bind);
  await waitFor('the transfer', async () =>
    (await ask(bind.port, 'www.signed.example.com', 'A')).startsWith('NOERROR'),
  );
  await kill(worker);
  await sleep(1_000);
  notified.length = 0;
  const begun = performance.now();
  await addRecord(signed, { type: 'A', name: 'late', value: '192.0.2.11' });
  const written = performance.now();
  const delays = await Promise.all(
    [1, 2].map(async (at) => {
      while ((await short(at, 'late.signed.example.com', 'A')) !== '192.0.2.11') await sleep(5);
      return performance.now() - written;
    }),
  );
  process.stdout.write(
    `a record: written after ${Math.round(written - begun)} ms, answered after ${delays.map(Math.round)} ms\n`,
  );
  expect(Math.max(...delays)).toBeLessThan(5_000);
  await waitFor(
    'the secondary',
    async () =>
      (await run('dig', ['@127.0.0.1', '-p', String(bind.port), '+short', 'late.signed.example.com'])).stdout !== '',
    30_000,
  );
  await sleep(2_000);
  expect(notified).toHaveLength(1);
});

const atBind = (...question: string[]): string[] => ['@127.0.0.1', '-p', String(bindPort), '+short', ...question];

/** Of the SOA records at its beginning and end. */
async function serialsOfTransfer(at: number): Promise<string[]> {
  const args = ['@127.0.0.1', '-p', String(ports[at]), '-y', `hmac-sha256:transfer:${secret}`, '+tries=1', '+time=1'];
  const { stdout } = await run('dig', [...args, 'signed.example.com', 'AXFR']);
  return [...stdout.matchAll(/\sIN\s+SOA\s+\S+ \S+ (\d+) /g)].map(([, serial]) => String(serial));
}

test('a deleted zone is refused by all of them, without the worker', async () => {
  const zone = await makeZone('short.example.com');
  await startWorker();
  for (const at of [0, 1, 2])
    await waitFor('an answer', async () => (await short(at, 'short.example.com', 'SOA')) !== '');
  await kill(worker);
  expect((await service.call('DELETE', `/v2/dns_zones/${zone.id}`)).status).toBe(204);
  for (const at of [1, 2])
    await waitFor('a refusal', async () =>
      (await ask(ports[at] as number, 'short.example.com', 'SOA')).includes('REFUSED'),
    );
});

test('killed at any moment of a load of changes, each comes back with all of them', async () => {
  const ends: string[][] = [];
  let isOver = false;
  const transferring = (async () => {
    while (!isOver) ends.push(await serialsOfTransfer(1).catch(() => []));
  })();
  for (let turn = 0; turn < 6; turn += 1) {
    const at = 1 + (turn % 2);
    const changing = (async () => {
      for (let number = 0; number < 5; number += 1)
        await addRecord(signed, { type: 'A', name: `k${turn}-${number}`, value: '192.0.2.20' });
    })();
    await sleep(turn * 40);
    await kill(further[at]);
    await changing;
    await startFurther(at);
    for (const one of [1, 2]) await waitForAnswer(one, [`k${turn}-4.signed.example.com`, 'A'], '192.0.2.20');
  }
  isOver = true;
  await transferring;
  // Each transfer is of one version, whatever changes meanwhile.
  for (const serials of ends) expect(new Set(serials).size).toBeLessThan(2);
  const soa = await short(1, 'signed.example.com', 'SOA');
  expect(await short(2, 'signed.example.com', 'SOA')).toBe(soa);
  // It was told of some of thirty versions, by either.
  await waitFor(
    'the secondary',
    async () => (await run('dig', atBind('signed.example.com', 'SOA'))).stdout.trim() === soa,
    60_000,
  );
});

test('without the database they answer, also after a restart, and go on from there when it is back', async () => {
  const [{ name }] = (await service.sql<{ name: string }>('select current_database() as name')) as [{ name: string }];
  await allowConnections(name, false);
  await sleep(2_000);
  expect(await short(1, 'www.signed.example.com', 'A')).toBe('192.0.2.10');
  await kill(further[2]);
  further[2] = startProgram(dnsSettings(2), { entry: 'server/dns.ts' });
  await waitFor(
    'an answer of a copy',
    async () => (await short(2, 'www.signed.example.com', 'A').catch(() => '')) !== '',
    60_000,
  );
  expect(await ask(ports[2] as number, 'k0-0.signed.example.com', 'A')).toContain('NOERROR');
  await allowConnections(name, true);
  await (further[2] as Program).ready();
  await waitFor('the service', async () => (await service.call('GET', '/v2/dns_zones')).status === 200);
  await addRecord(signed, { type: 'A', name: 'back', value: '192.0.2.30' });
  for (const at of [1, 2]) await waitForAnswer(at, ['back.signed.example.com', 'A'], '192.0.2.30');
});

/** From another database of the server. */
async function allowConnections(name: string, isAllowed: boolean): Promise<void> {
  const client = new Client({ connectionString: process.env.TEST_ADMIN_URL });
  await client.connect();
  await client.query(`alter database "${name}" allow_connections ${isAllowed}`);
  if (!isAllowed)
    await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
  await client.end();
}

test('each reports itself, and ends cleanly', async () => {
  const roles = await waitFor(
    'two reports',
    async () => {
      const rows = await service.sql<{ memory: number }>(
        `select (facts ->> 'memory_bytes')::bigint as memory from installation_reports where facts ->> 'role' = 'dns'
        and facts ->> 'pid' = any($1)`,
        [[further[1], further[2]].map((one) => String(one?.pid))],
      );
      return rows.length === 2 ? rows : null;
    },
    60_000,
  );
  process.stdout.write(`memory: ${roles.map(({ memory }) => Math.round(Number(memory) / 2 ** 20))} MB\n`);
  for (const at of [1, 2]) {
    further[at]?.signal('SIGTERM');
    expect(await further[at]?.ended).toBe(0);
  }
});

test.each([
  [{ POWERDNS_URL: 'http://127.0.0.1:1', POWERDNS_API_KEY: 'key' }, 'PowerDNS serves the zones'],
  [{ DNS_PORT: '0' }, 'DNS_PORT is 0'],
])('with %j it refuses to start', async (more, reason) => {
  const program = startProgram({ ...dnsSettings(1), ...more }, { entry: 'server/dns.ts' });
  expect(await program.ended).toBe(1);
  expect(program.err()).toContain(reason);
});
