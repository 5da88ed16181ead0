// Sends damaged and hostile packets to the embedded name server, as many as the argument says (a million without one),
// and fails where one of them makes it throw, or where it no longer answers a good question.
//   node scripts/start.mjs scripts/fuzz_dns.js [packets] [seed]
import { generateKeyPairSync } from 'node:crypto';
import * as packet from 'dns-packet';
import type { SigningKey } from '../core/dnssec';
import type { ZoneRecord, ZoneSpec } from '../drivers/nameserver';
import { openResponder } from '../drivers/nameserver/embedded/responder';
import { signRequest, type TsigKey } from '../drivers/nameserver/embedded/tsig';

const PACKETS = Number(process.argv[2] ?? 1_000_000);
let state = Number(process.argv[3] ?? 1);

/** A generator with a seed, so that a failure can be seen again. */
function random(below: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}

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
const spec: ZoneSpec = {
  ...{ name: 'example.com', serial: 1, default_ttl: 300, name_servers: ['ns1.example.net', 'ns2.example.net'] },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  keys: [newKey('ksk'), newKey('zsk')],
  records: [
    ...[
      record('A', 'www', '192.0.2.1'),
      record('CNAME', 'alias', 'www.example.com'),
      record('TXT', '*', 'x'.repeat(900)),
    ],
    ...[
      record('NS', 'child', 'ns.child.example.com'),
      record('A', 'ns.child', '192.0.2.3'),
      record('A', 'a.b.c', '192.0.2.4'),
    ],
    ...[record('ALIAS', 'flat', 'target.example.net'), record('CNAME', 'loop', 'loop.example.com')],
  ],
};
const key: TsigKey = { name: 'transfer', secret: Buffer.alloc(32, 1) };
const known = { a: [Buffer.from([192, 0, 2, 44])], aaaa: [] };
const responder = openResponder({
  responsesPerSecond: 1_000_000_000,
  lookUpAlias: () => known,
  transfers: { key, addresses: [] },
});
responder.zones.put('dnz_fuzz', spec.name, JSON.stringify(spec));

const TYPES = ['A', 'AAAA', 'TXT', 'MX', 'NS', 'SOA', 'ANY', 'DS', 'DNSKEY', 'AXFR', 'IXFR', 'UNKNOWN_65280'] as const;
const NAMES = ['www', 'alias', 'x.y.z', 'child', 'below.child', 'a.b.c', 'b.c', 'flat', 'loop', 'no', 'W'.repeat(63)];

function goodPacket(): Buffer {
  const name = random(10) ? `${NAMES[random(NAMES.length)]}.example.com` : 'example.org';
  const flags = packet.RECURSION_DESIRED | (random(4) ? 0 : packet.CHECKING_DISABLED);
  const type = TYPES[random(TYPES.length)] as packet.RecordType;
  const options = random(2)
    ? [{ code: 10, data: Buffer.alloc([8, 16, 24, 40, 7][random(5)] as number, random(256)) }]
    : [];
  const opt = {
    type: 'OPT',
    name: '.',
    udpPayloadSize: random(5000),
    flags: random(2) ? packet.DNSSEC_OK : 0,
    options,
  };
  const additionals = (random(3) ? [opt] : []) as unknown as packet.Answer[];
  const made = packet.encode({ type: 'query', id: random(65_536), flags, questions: [{ type, name }], additionals });
  return random(8) ? made : signRequest(made, key);
}

function damaged(good: Buffer): Buffer {
  const bytes = Buffer.from(good);
  for (let left = 1 + random(6); left > 0; left -= 1) bytes[random(bytes.length)] = random(256);
  const how = random(6);
  if (how === 0) return bytes.subarray(0, random(bytes.length + 1));
  if (how === 1) return Buffer.concat([bytes, Buffer.alloc(random(600), random(256))]);
  if (how === 2) return Buffer.concat([bytes.subarray(0, random(bytes.length)), bytes]);
  if (how === 3) return Buffer.from(Array.from({ length: random(300) }, () => random(256)));
  return bytes;
}

function main(): number {
  const begin = performance.now();
  let answered = 0;
  let longest = 0;
  for (let number = 0; number < PACKETS; number += 1) {
    const good = goodPacket();
    const message = random(10) ? damaged(good) : good;
    const started = performance.now();
    try {
      const response = responder.respond(message, `192.0.2.${random(256)}`, random(4) ? 'udp' : 'tcp');
      if (response) answered += 1;
      const parts = response === null ? [] : Buffer.isBuffer(response) ? [response] : response;
      for (const part of parts) if (part.length > 65_535) throw new Error(`a message of ${part.length} bytes`);
    } catch (error) {
      process.stderr.write(`packet ${number}: ${message.toString('hex')}\n${(error as Error).stack}\n`);
      return 1;
    }
    longest = Math.max(longest, performance.now() - started);
  }
  const question = packet.encode({
    type: 'query',
    id: 7,
    flags: 0,
    questions: [{ type: 'A', name: 'www.example.com' }],
  });
  const last = responder.respond(question, '192.0.2.1', 'udp');
  if (!Buffer.isBuffer(last) || packet.decode(last).answers?.length !== 1) return 1;
  const seconds = (performance.now() - begin) / 1000;
  const memory = Math.round(process.memoryUsage().rss / 2 ** 20);
  const speed = `${PACKETS} packets in ${seconds.toFixed(1)} s, ${answered} answered`;
  process.stdout.write(`${speed}, the slowest ${longest.toFixed(1)} ms, ${memory} MB\n`);
  return 0;
}

process.exitCode = main();
