/** @tier heavy @quarter 2 @covers engines/dns */
// Transfers to secondaries: BIND and NSD take signed zones with TSIG, follow NOTIFY, and what they answer validates.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { delegationSigner, type SigningKey } from '../../../core/protocols/dnssec';
import { driverContext } from '../../../core/driver';
import type { ZoneRecord, ZoneSpec } from '../../../engines/dns/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserver } from '../../../engines/dns/driver';
import {
  ask,
  run,
  startBindSecondary,
  startNsdSecondary,
  startUnbound,
  type Program,
} from '../../support/dns/dns_programs';
import { freePort } from '../../support/processes/free_port';
import { needs } from '../../support/runner/programs';

jest.setTimeout(120_000);
const { describe: described } = needs('named', 'nsd', 'unbound', 'dig');

const newKey = (role: SigningKey['role']): SigningKey => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
};
const record = (type: ZoneRecord['type'], name: string, value: string): ZoneRecord => ({
  type,
  name,
  value,
  ttl: null,
});

const RECORDS = [
  ...[record('A', 'www', '192.0.2.1'), record('CNAME', 'alias', 'www.signed.example.com')],
  ...[record('TXT', '*.wild', 'y'.repeat(700)), record('A', 'a.empty', '192.0.2.2')],
  ...[record('NS', 'child', 'ns.child.signed.example.com'), record('A', 'ns.child', '192.0.2.3')],
  ...[record('ALIAS', 'flat', 'target.example.net'), record('AAAA', 'www', '2001:db8::1')],
  { ...record('MX', 'nomail', '.'), priority: 0 },
  { ...record('SRV', '_none._tcp', '.'), priority: 0, weight: 0, port: 0 },
];
const SIGNED: ZoneSpec = {
  ...{ name: 'signed.example.com', serial: 1, default_ttl: 300, name_servers: ['ns1.example.net', 'ns2.example.net'] },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  ...{ records: RECORDS, keys: [newKey('ksk'), newKey('zsk')] },
};
const PLAIN: ZoneSpec = { ...SIGNED, name: 'plain.example.com', keys: [] };
const LARGE: ZoneSpec = {
  ...SIGNED,
  name: 'large.example.com',
  records: Array.from({ length: 2000 }, (_, index) => record('TXT', `t${index}`, `${index} `.repeat(60))),
};
const ds = (): string => {
  const { key_tag, algorithm, digest_type, digest } = delegationSigner(SIGNED.name, SIGNED.keys[0] as SigningKey);
  return `${key_tag} ${algorithm} ${digest_type} ${digest}`;
};

described('secondaries', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'secondaries-'));
  const secret = Buffer.alloc(32, 7);
  const key = `transfer:${secret.toString('base64')}`;
  const programs: Program[] = [];
  let server: EmbeddedNameserver;
  let port: number;
  const zones = [SIGNED, PLAIN, LARGE];

  const serve = (spec: ZoneSpec): Promise<unknown> =>
    server.ensure({ id: `dnz_${spec.name.split('.')[0]}`, spec }, { state: 'absent' }, driverContext(20_000));

  beforeAll(async () => {
    const [atBind, atNsd] = [await freePort(), await freePort()];
    port = await freePort();
    const primary = { port, zones: zones.map(({ name }) => name), key };
    const target = async (name: string): Promise<string[]> => (name === 'target.example.net' ? ['192.0.2.44'] : []);
    server = await openEmbeddedNameserver({
      ...{ directory, addresses: ['127.0.0.1'], ports: [port], responsesPerSecond: 1_000_000, own: [] },
      sealer: {
        prefix: '',
        seal: (text) => Buffer.from(text).toString('base64'),
        open: (text) => Buffer.from(text, 'base64').toString(),
      },
      questions: { a: target, aaaa: async () => [] },
      transferKey: { name: 'transfer', secret },
      secondaries: [atBind, atNsd].map((at) => ({ address: '127.0.0.1', port: at })),
    });
    for (const zone of zones) await serve(zone);
    // The target of the ALIAS is known by its second question.
    for (let turn = 0; turn < 2; turn += 1) await ask(port, 'flat.signed.example.com', 'A');
    programs.push(await startBindSecondary(primary, atBind), await startNsdSecondary(primary, atNsd));
  });
  afterAll(async () => {
    for (const program of programs) await program.close();
    await server?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const short = async (at: number, ...question: string[]): Promise<string> =>
    (await run('dig', ['@127.0.0.1', '-p', String(at), '+short', '+tries=1', ...question])).stdout.trim();

  async function until(read: () => Promise<unknown>, expected: unknown): Promise<void> {
    for (let turn = 0; turn < 300; turn += 1) {
      if (JSON.stringify(await read().catch(() => null)) === JSON.stringify(expected)) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(await read()).toEqual(expected);
  }

  const transfer = async (zone: string, ...more: string[]): Promise<string> =>
    (await run('dig', ['@127.0.0.1', '-p', String(port), zone, 'AXFR', '+onesoa', ...more], { maxBuffer: 1 << 26 }))
      .stdout;

  test('both take the zones over, and follow a change within seconds', async () => {
    for (const { port: at } of programs) {
      for (const { name } of zones) await until(async () => (await short(at, name, 'SOA')).split(' ')[2], '1');
      expect(await short(at, 'www.plain.example.com', 'A')).toBe('192.0.2.1');
      expect(await short(at, 'nomail.plain.example.com', 'MX')).toBe('0 .');
      expect(await short(at, '_none._tcp.signed.example.com', 'SRV')).toMatch(/^0 0 0 \.(?:\n|$)/);
      expect(await short(at, 't1999.large.example.com', 'TXT')).toContain('1999 1999');
    }
    const begin = Date.now();
    for (const zone of [SIGNED, PLAIN])
      await serve({ ...zone, serial: 2, records: [...RECORDS, record('A', 'new', '192.0.2.9')] });
    for (const { port: at } of programs)
      for (const zone of [SIGNED, PLAIN]) await until(() => short(at, `new.${zone.name}`, 'A'), '192.0.2.9');
    expect(Date.now() - begin).toBeLessThan(10_000);
  });

  test('what the secondaries answer is secure', async () => {
    const { name: zone } = SIGNED;
    for (const { port: at } of programs) {
      const resolver = await startUnbound({ zone, port: at, ds: ds() });
      try {
        const questions = [
          ...[
            ['www', 'A', 'NOERROR'],
            ['alias', 'A', 'NOERROR'],
            ['x.wild', 'TXT', 'NOERROR'],
            ['x.wild', 'A', 'NOERROR'],
          ],
          ...[
            ['empty', 'A', 'NOERROR'],
            ['www', 'MX', 'NOERROR'],
            ['nothing', 'A', 'NXDOMAIN'],
            ['flat', 'A', 'NOERROR'],
          ],
          ['child', 'DS', 'NOERROR'],
        ] as [string, string, string][];
        for (const [name, type, status] of questions)
          expect([name, await ask(resolver.port, `${name}.${zone}`, type)]).toEqual([name, `${status} qr rd ra ad`]);
      } finally {
        await resolver.close();
      }
    }
  });

  test('ldns-verify-zone and dnssec-verify accept a transfer', async () => {
    const file = path.join(directory, 'transferred');
    for (const { name } of [SIGNED, LARGE]) {
      const text = await transfer(name, '-y', `hmac-sha256:${key}`);
      // dig prints the signatures of the messages too.
      writeFileSync(file, text.replace(/^.*\sTSIG\s.*$/gm, ''));
      const ldns = await run('ldns-verify-zone', [file]);
      expect(`${ldns.stdout}${ldns.stderr}`).toContain('Zone is verified and complete');
      const bind = await run('dnssec-verify', ['-o', name, file]);
      expect(`${bind.stdout}${bind.stderr}`).toContain('Zone fully signed');
    }
    rmSync(file);
  });

  test('without the key, with another one, or with a wrong clock, nothing is transferred', async () => {
    expect(await transfer(SIGNED.name)).toContain('Transfer failed');
    const other = Buffer.alloc(32, 8).toString('base64');
    expect(await transfer(SIGNED.name, '-y', `hmac-sha256:transfer:${other}`).catch((error) => error.stdout)).toMatch(
      /BADSIG|Transfer failed|expected a TSIG/,
    );
    expect(await transfer(SIGNED.name, '-y', `hmac-sha256:somebody:${other}`).catch((error) => error.stdout)).toMatch(
      /BADKEY|Transfer failed|expected a TSIG/,
    );
    expect(await transfer('none.example.com', '-y', `hmac-sha256:${key}`)).toContain('Transfer failed');
    expect(await short(port, 'www.signed.example.com', 'A', '-y', `hmac-sha256:${key}`)).toBe('192.0.2.1');
  });
});
