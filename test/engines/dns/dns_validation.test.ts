/** @tier heavy @quarter 3 @covers engines/dns core/protocols/dnssec */
// A signed zone judged by resolvers that we did not write: unbound and BIND with a trust anchor, and delv. Every kind
// of answer is secure, and bogus once one bit of a signature is flipped on the way.
import { createSocket, type Socket } from 'node:dgram';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { delegationSigner, type SigningKey } from '../../../core/protocols/dnssec';
import { driverContext } from '../../../core/driver';
import type { ZoneRecord, ZoneSpec } from '../../../engines/dns/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserver } from '../../../engines/dns/driver';
import { ask, run, startBindResolver, startUnbound, type Program } from '../../support/dns/dns_programs';
import { freePort } from '../../support/processes/free_port';
import { needs } from '../../support/runner/programs';

jest.setTimeout(120_000);
const { describe: described } = needs('named', 'nsd', 'unbound', 'dig');

const ZONE = 'signed.example.com';
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
const SPEC: ZoneSpec = {
  ...{ name: ZONE, serial: 1, default_ttl: 300, name_servers: ['ns1.example.net', 'ns2.example.net'] },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  keys: [newKey('ksk'), newKey('zsk')],
  records: [
    ...[
      record('A', 'www', '192.0.2.1'),
      record('CNAME', 'alias', `www.${ZONE}`),
      record('TXT', 'long', 'z'.repeat(3000)),
    ],
    ...[record('TXT', '*.wild', 'any'), record('A', 'a.b.empty', '192.0.2.2'), record('NS', 'child', 'ns.example.net')],
    ...[record('ALIAS', 'flat', 'target.example.net'), record('CNAME', 'broken', `nothing.${ZONE}`)],
    // No mail (RFC 7505), and no service (RFC 2782).
    { ...record('MX', 'nomail', '.'), priority: 0 },
    { ...record('SRV', '_none._tcp', '.'), priority: 0, weight: 0, port: 0 },
  ],
};
const QUESTIONS: [string, string, string][] = [
  ...([
    ['www', 'A', 'NOERROR'],
    ['WwW', 'A', 'NOERROR'],
    ['alias', 'A', 'NOERROR'],
    ['long', 'TXT', 'NOERROR'],
  ] as const),
  ...([
    ['x.wild', 'TXT', 'NOERROR'],
    ['x.y.wild', 'TXT', 'NOERROR'],
    ['x.wild', 'A', 'NOERROR'],
  ] as const),
  ...([
    ['www', 'MX', 'NOERROR'],
    ['empty', 'A', 'NOERROR'],
    ['b.empty', 'TXT', 'NOERROR'],
  ] as const),
  ...([
    ['nothing', 'A', 'NXDOMAIN'],
    ['below.www', 'A', 'NXDOMAIN'],
    ['zzz', 'A', 'NXDOMAIN'],
  ] as const),
  ...([
    ['broken', 'A', 'NXDOMAIN'],
    ['flat', 'A', 'NOERROR'],
    ['child', 'DS', 'NOERROR'],
    ['nomail', 'MX', 'NOERROR'],
    ['_none._tcp', 'SRV', 'NOERROR'],
    ['www', 'NSEC', 'NOERROR'],
    ['alias', 'NSEC', 'NOERROR'],
    ['b.empty', 'NSEC', 'NOERROR'],
  ] as const),
].map((one) => [...one] as [string, string, string]);

described('a signed zone', () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'validation-'));
  let server: EmbeddedNameserver;
  let port: number;
  let ds: string;

  beforeAll(async () => {
    port = await freePort();
    server = await openEmbeddedNameserver({
      ...{ directory, addresses: ['127.0.0.1'], ports: [port], responsesPerSecond: 1_000_000, own: [] },
      sealer: { prefix: '', seal: (text) => text, open: (text) => text },
      questions: { a: async () => ['192.0.2.44'], aaaa: async () => [] },
    });
    await server.ensure({ id: 'dnz_signed', spec: SPEC }, { state: 'absent' }, driverContext(10_000));
    const { key_tag, algorithm, digest_type, digest } = delegationSigner(ZONE, SPEC.keys[0] as SigningKey);
    ds = `${key_tag} ${algorithm} ${digest_type} ${digest}`;
    // The target of the ALIAS is known from the second question on.
    for (let turn = 0; turn < 2; turn += 1) await ask(port, `flat.${ZONE}`, 'A');
  });
  afterAll(async () => {
    await server?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  test.each([
    ['unbound', startUnbound],
    ['BIND', startBindResolver],
  ])('is secure for every kind of answer to %s', async (_, start) => {
    const resolver: Program = await start({ zone: ZONE, port, ds });
    try {
      const found = await Promise.all(
        QUESTIONS.map(async ([name, type, status]) => [
          name,
          type,
          await ask(resolver.port, `${name}.${ZONE}`, type),
          status,
        ]),
      );
      for (const [name, type, answer, status] of found)
        expect([name, type, answer]).toEqual([name, type, `${status} qr rd ra ad`]);
    } finally {
      await resolver.close();
    }
  });

  test('is secure to delv, the unsigned delegation too', async () => {
    expect(await delv(port, `www.${ZONE}`, 'A')).toContain('fully validated');
    expect(await delv(port, `x.wild.${ZONE}`, 'TXT')).toContain('fully validated');
    expect(await delv(port, `nomail.${ZONE}`, 'MX')).toMatch(/fully validated[^]*\sMX\s+0 \.\n/);
    expect(await delv(port, `_none._tcp.${ZONE}`, 'SRV')).toMatch(/fully validated[^]*\sSRV\s+0 0 0 \.\n/);
    expect(await delv(port, `nothing.${ZONE}`, 'A')).toContain('fully validated');
    expect(await delv(port, `child.${ZONE}`, 'DS')).toContain('fully validated');
  });

  test('has NSEC records and signatures for those who ask for them by type', async () => {
    const ask = async (...question: string[]): Promise<string> =>
      (await run('dig', ['@127.0.0.1', '-p', String(port), '+short', ...question])).stdout;
    expect(await ask(`www.${ZONE}`, 'NSEC')).toBe(`signed.example.com. A RRSIG NSEC\n`);
    expect(await ask(`alias.${ZONE}`, 'NSEC')).toMatch(/ CNAME RRSIG NSEC\n$/);
    expect(await ask(`www.${ZONE}`, 'RRSIG')).toMatch(/^A 13 4 300 /);
    expect(await ask(`empty.${ZONE}`, 'NSEC')).toBe('');
  });

  test('is bogus when one bit of a signature is flipped', async () => {
    const forged = await startForger(port);
    try {
      for (const start of [startUnbound, startBindResolver]) {
        const resolver = await start({ zone: ZONE, port: forged.port, ds });
        try {
          expect(await ask(resolver.port, `www.${ZONE}`, 'A')).toContain('SERVFAIL');
          expect(await ask(resolver.port, `www.${ZONE}`, 'A', '+cdflag')).toContain('NOERROR');
        } finally {
          await resolver.close();
        }
      }
      expect(await delv(forged.port, `www.${ZONE}`, 'A')).not.toContain('fully validated');
    } finally {
      forged.socket.close();
    }
  });

  async function delv(at: number, ...question: string[]): Promise<string> {
    const file = path.join(directory, 'anchors');
    writeFileSync(file, `trust-anchors { "${ZONE}" static-ds ${ds.replace(/(\w+)$/, '"$1"')}; };`);
    const args = ['@127.0.0.1', '-p', String(at), '-a', file, `+root=${ZONE}`, ...question];
    const { stdout, stderr } = await run('delv', args).catch((error) => error);
    return `${stdout}${stderr}`;
  }
});

/** Passes questions on, and flips the last bit of the first signature over an A record in the answer. */
async function startForger(to: number): Promise<{ port: number; socket: Socket }> {
  const socket = createSocket('udp4');
  socket.on('message', (question, client) => {
    const upstream = createSocket('udp4');
    upstream.on('message', (answer) => {
      // Type RRSIG and class IN, TTL and length, then the type covered: A.
      const at = answer.indexOf(Buffer.from([0, 46, 0, 1]));
      if (at > 0 && answer.readUInt16BE(at + 10) === 1) {
        const end = at + 10 + answer.readUInt16BE(at + 8);
        answer[end - 1] = (answer[end - 1] as number) ^ 1;
      }
      socket.send(answer, client.port, client.address);
      upstream.close();
    });
    upstream.send(question, to, '127.0.0.1');
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return { port: socket.address().port, socket };
}
