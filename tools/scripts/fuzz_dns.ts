// Sends damaged and hostile packets to the embedded name server, as many as the first argument says (a million without
// one), made from the seed of the second. Fails where one makes it throw, where a response is not well-formed, where a
// second query gets another response than the first one, where a good query is no longer answered, and where memory
// grows. A failure shows the packet; the same arguments show it again.
//   node tools/scripts/start.mjs tools/scripts/fuzz_dns.js [packets] [seed]
import { generateKeyPairSync } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as packet from 'dns-packet';
import type { SigningKey } from '../../core/protocols/dnssec';
import type { ZoneRecord, ZoneSpec } from '../../engines/dns/nameserver';
import { openResponder, type Responder, type Transport } from '../../engines/dns/responder';
import { signRequest, type TsigKey } from '../../engines/dns/wire/tsig';
import { faultOfResponse } from './fuzz_dns_response';

const PACKETS = Number(process.argv[2] ?? 1_000_000);
let state = Number(process.argv[3] ?? 1);

const MB = 2 ** 20;
/** Between the first half and the second one, when all that is kept is full. */
const GROWTH_MAX_BYTES = 8 * MB;
/** Full long before the first half is over. */
const CACHE_BYTES = 2 * MB;
const ROUND = 10_000;
/** Made anew in each round; all others are damaged forms of them. */
const GOOD_PACKETS = 500;

/** A generator with a seed, so that a failure can be seen again. */
function random(below: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}

function oneOf<T>(values: readonly T[]): T {
  return values[random(values.length)] as T;
}

const newKey = (role: SigningKey['role']): SigningKey => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
};
const record = (type: ZoneRecord['type'], name: string, value: string): ZoneRecord => ({
  ...{ type, name, value, ttl: null },
});
const RECORDS = [
  ...[record('A', 'www', '192.0.2.1'), record('CNAME', 'alias', 'www.example.com')],
  ...[record('TXT', '*', 'x'.repeat(900)), record('TXT', 'large', 'x'.repeat(4000))],
  ...[record('NS', 'child', 'ns.child.example.com'), record('A', 'ns.child', '192.0.2.3')],
  ...[record('ALIAS', 'flat', 'target.example.net'), record('CNAME', 'loop', 'loop.example.com')],
  record('A', 'a.b.c', '192.0.2.4'),
];
const SIGNED: ZoneSpec = {
  ...{ name: 'example.com', serial: 1, default_ttl: 300, name_servers: ['ns1.example.net', 'ns2.example.net'] },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  ...{ keys: [newKey('ksk'), newKey('zsk')], records: RECORDS },
};
const PLAIN: ZoneSpec = { ...SIGNED, name: 'example.net', keys: [] };
const KEY: TsigKey = { name: 'transfer', secret: Buffer.alloc(32, 1) };
const ALIAS = { a: [Buffer.from([192, 0, 2, 44])], aaaa: [] };

function open(responsesPerSecond: number): Responder {
  const transfers = { key: KEY, addresses: [] };
  const responder = openResponder({
    responsesPerSecond,
    lookUpAlias: () => ALIAS,
    transfers,
    cacheBytesMax: CACHE_BYTES,
  });
  putZones(responder, 1);
  return responder;
}

function putZones({ zones }: Responder, serial: number): void {
  for (const spec of [SIGNED, PLAIN]) zones.put(`dnz_${spec.name}`, spec.name, JSON.stringify({ ...spec, serial }));
}

const TYPES = [
  ...(['A', 'AAAA', 'TXT', 'MX', 'NS', 'SOA', 'ANY', 'DS', 'DNSKEY', 'CDS', 'AXFR', 'IXFR', 'OPT'] as const),
  'UNKNOWN_65280' as packet.RecordType,
];
const NAMES = ['www', 'alias', 'x.y.z', 'child', 'below.child', 'a.b.c', 'b.c', 'flat', 'loop', 'no', 'W'.repeat(63)];
const ZONES = ['example.com', 'example.com', 'example.net', 'EXAMPLE.com', 'example.org', 'com'];
const COOKIE_BYTES = [8, 16, 24, 40, 7, 0, 60];

function goodPacket(): Buffer {
  const name = random(10) ? `${oneOf([...NAMES, 'large'])}.${oneOf(ZONES)}` : oneOf([...ZONES, '.']);
  const flags = packet.RECURSION_DESIRED | (random(4) ? 0 : packet.CHECKING_DISABLED);
  const option = { code: random(3) ? 10 : random(70), data: Buffer.alloc(oneOf(COOKIE_BYTES), random(256)) };
  const opt = {
    ...{ type: 'OPT', name: '.', udpPayloadSize: random(5000), flags: random(2) ? packet.DNSSEC_OK : 0 },
    ...{ ednsVersion: random(20) ? 0 : 1, options: random(2) ? [option] : [] },
  };
  const additionals = (random(3) ? [opt] : []) as unknown as packet.Answer[];
  const questions = [{ type: oneOf(TYPES), name }] as packet.Question[];
  const made = packet.encode({ type: 'query', id: random(65_536), flags, questions, additionals });
  return random(8) ? made : signRequest(made, KEY);
}

function damaged(good: Buffer): Buffer {
  const bytes = Buffer.from(good);
  for (let left = 1 + random(6); left > 0; left -= 1) bytes[random(bytes.length)] = random(256);
  const how = random(8);
  if (how === 0) return bytes.subarray(0, random(bytes.length + 1));
  if (how === 1) return Buffer.concat([bytes, Buffer.alloc(random(600), random(256))]);
  if (how === 2) return Buffer.concat([bytes.subarray(0, random(bytes.length)), bytes]);
  if (how === 3) return Buffer.from(Array.from({ length: random(300) }, () => random(256)));
  // The counts of the header, and labels that point elsewhere.
  if (how === 4) bytes[4 + random(8)] = random(4);
  if (how === 5 && bytes.length > 20) bytes[12 + random(bytes.length - 12)] = 0xc0 | random(64);
  return bytes;
}

function nextPacket(goods: Buffer[]): Buffer {
  const good = oneOf(goods);
  return random(5) ? damaged(good) : good;
}

function nextAddress(): string {
  return random(4) ? `192.0.2.${random(256)}` : `2001:db8:${random(65_536).toString(16)}:${random(256)}::1`;
}

/** @throws Error that describes the fault of the response */
function send(responder: Responder, message: Buffer, transport: Transport): Buffer[] {
  // As the buffer of a datagram, which is used again.
  const response = responder.respond(Buffer.from(message), nextAddress(), transport);
  const parts = response === null ? [] : Buffer.isBuffer(response) ? [response] : response;
  for (const part of parts) {
    const fault = faultOfResponse(message, part, transport);
    if (fault) throw new Error(`${fault}: ${part.toString('hex')}`);
  }
  return parts;
}

/** The second response comes from the packet cache, if it is cached. Signatures and cookies depend on the time. */
function requireSame(first: Buffer[], second: Buffer[]): void {
  if (first.length !== second.length) throw new Error('another number of messages the second time');
  first.forEach((part, index) => {
    const other = second[index] as Buffer;
    if (part.length !== other.length || !part.subarray(0, 12).equals(other.subarray(0, 12)))
      throw new Error(`another response the second time: ${part.toString('hex')} ${other.toString('hex')}`);
  });
}

function requireAnswers(responder: Responder): void {
  for (const zone of [SIGNED.name, PLAIN.name]) {
    const questions = [{ type: 'A', name: `www.${zone}` }] as packet.Question[];
    const query = packet.encode({ type: 'query', id: 7, flags: 0, questions });
    const [last] = send(responder, query, 'tcp');
    const answers = last ? packet.decode(last).answers : [];
    if (answers?.length !== 1 || answers[0]?.type !== 'A' || answers[0].data !== '192.0.2.1')
      throw new Error('a good query is not answered');
  }
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function usedBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

interface Counts {
  answered: number;
  longestMs: number;
}

/** @returns null for a round without a failure that is on standard error */
function round(responders: Responder[], number: number, counts: Counts): boolean {
  let message: Buffer = Buffer.alloc(0);
  const goods = Array.from({ length: GOOD_PACKETS }, goodPacket);
  try {
    for (let index = 0; index < ROUND && number + index < PACKETS; index += 1) {
      message = nextPacket(goods);
      const transport = random(4) ? 'udp' : 'tcp';
      const [unlimited] = responders as [Responder];
      const started = performance.now();
      const first = send(random(10) ? unlimited : oneOf(responders), message, transport);
      counts.longestMs = Math.max(counts.longestMs, performance.now() - started);
      if (first.length) counts.answered += 1;
      if (index % 16 === 0) requireSame(send(unlimited, message, transport), send(unlimited, message, transport));
    }
    for (const responder of responders) {
      requireAnswers(responder);
      putZones(responder, number);
      responder.takeCounters();
    }
    return true;
  } catch (error) {
    process.stderr.write(`seed ${process.argv[3] ?? 1}: ${message.toString('hex')}\n${(error as Error).stack}\n`);
    return false;
  }
}

function main(): number {
  const begin = performance.now();
  const counts: Counts = { answered: 0, longestMs: 0 };
  const responders = [open(1_000_000_000), open(100)];
  let half = 0;
  for (let number = 0; number < PACKETS; number += ROUND) {
    if (!round(responders, number, counts)) return 1;
    if (number <= PACKETS / 2 && number + ROUND > PACKETS / 2) half = usedBytes();
  }
  const used = usedBytes();
  const seconds = (performance.now() - begin) / 1000;
  const speed = `${PACKETS} packets in ${seconds.toFixed(1)} s, ${counts.answered} answered`;
  const memory = `${Math.round(used / MB)} MB, ${Math.round(half / MB)} MB after the first half`;
  process.stdout.write(`${speed}, the slowest ${counts.longestMs.toFixed(1)} ms, ${memory}\n`);
  if (used - half <= GROWTH_MAX_BYTES) return 0;
  process.stderr.write('memory grows\n');
  return 1;
}

process.exitCode = main();
