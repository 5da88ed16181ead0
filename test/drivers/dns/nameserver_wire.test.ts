// What resolvers rely on, asked over the wire of the embedded name server: transports, negative answers, wildcards,
// delegations, and what is answered to questions that nobody should ask.
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as packet from 'dns-packet';
import { driverContext } from '../../../core/driver';
import type { ZoneRecord, ZoneSpec } from '../../../engines/dns/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserver } from '../../../engines/dns/driver';
import { freePort } from '../../support/processes/free_port';
import { needs } from '../../support/runner/programs';

const run = promisify(execFile);
const { test: digTest } = needs('dig');
const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
const ADDRESSES = hasIPv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1'];

const record = (type: ZoneRecord['type'], name: string, value: string, more: Partial<ZoneRecord> = {}): ZoneRecord => ({
  ...{ type, name, value, ttl: null },
  ...more,
});
// The names of RFC 4592 §2.2.1 among them.
const SPEC: ZoneSpec = {
  ...{ name: 'example.com', serial: 1, default_ttl: 3600, name_servers: ['ns1.example.net'], keys: [] },
  soa: { email: 'host.master@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  records: [
    ...[record('A', 'www', '192.0.2.1'), record('AAAA', 'www', '2001:db8::1'), record('TXT', 'www', 'text')],
    ...[record('CNAME', 'one', 'two.example.com'), record('CNAME', 'two', 'www.example.com')],
    ...[record('CNAME', 'away', 'www.example.net'), record('CNAME', 'loop', 'loop2.example.com')],
    ...[record('CNAME', 'loop2', 'loop.example.com'), record('TXT', 'large', 'x'.repeat(4000))],
    ...[record('TXT', '*', 'this is a wildcard'), record('MX', '*', 'host1.example.com', { priority: 10 })],
    ...[record('TXT', 'sub.*', 'this is not a wildcard'), record('A', 'host1', '192.0.2.4')],
    ...[record('SRV', '_ssh._tcp.host1', 'host1.example.com', { priority: 1, weight: 2, port: 22 })],
    ...[record('SRV', '_ssh._tcp.host2', 'host2.example.com', { priority: 1, weight: 2, port: 22 })],
    ...[record('NS', 'subdel', 'ns.subdel.example.com'), record('NS', 'subdel', 'ns.example.org')],
    ...[record('A', 'ns.subdel', '192.0.2.53'), record('AAAA', 'ns.subdel', '2001:db8::53')],
    ...[record('CAA', '@', 'ca.example.net', { flags: 128, tag: 'issue' }), record('A', 'a.b', '192.0.2.6')],
    ...[record('MX', 'nomail', '.', { priority: 0 })],
    ...[record('SRV', '_none._tcp', '.', { priority: 0, weight: 0, port: 0 })],
  ],
};

const directory = mkdtempSync(path.join(tmpdir(), 'nameserver-wire-'));
let server: EmbeddedNameserver;
let port: number;

beforeAll(async () => {
  port = await freePort();
  server = await openEmbeddedNameserver({
    ...{ directory, addresses: ADDRESSES, ports: [port], responsesPerSecond: 1_000_000, own: [] },
    sealer: { prefix: '', seal: (text) => text, open: (text) => text },
    questions: { a: async () => [], aaaa: async () => [] },
  });
  await server.ensure({ id: 'dnz_wire', spec: SPEC }, { state: 'absent' }, driverContext(10_000));
});
afterAll(async () => {
  await server?.close();
  rmSync(directory, { recursive: true, force: true });
});
async function dig(...args: string[]): Promise<string> {
  return (await run('dig', ['-p', String(port), '+tries=2', '+time=5', ...args])).stdout;
}

type Response = packet.DecodedPacket & { rcode: string; opcode: string };
const decode = (bytes: Buffer): Response => packet.decode(bytes) as unknown as Response;

/** A datagram and its answer. */
async function send(message: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  try {
    const answered = new Promise<Buffer>((resolve) => socket.on('message', resolve));
    socket.send(message, port, '127.0.0.1');
    return await answered;
  } finally {
    socket.close();
  }
}

/** All in one write; their answers as they come. */
function pipeline(messages: Buffer[]): Promise<Response[]> {
  const framed = messages.map((one) => Buffer.concat([Buffer.from([one.length >> 8, one.length & 0xff]), one]));
  return new Promise((resolve, reject) => {
    const found: Response[] = [];
    let waiting = Buffer.alloc(0);
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(Buffer.concat(framed)));
    socket.on('error', reject).on('data', (chunk: Buffer) => {
      waiting = Buffer.concat([waiting, chunk]);
      while (waiting.length > 1 && waiting.length >= 2 + waiting.readUInt16BE(0)) {
        const end = 2 + waiting.readUInt16BE(0);
        found.push(decode(waiting.subarray(2, end)));
        waiting = waiting.subarray(end);
      }
      if (found.length === messages.length) socket.end(() => resolve(found));
    });
  });
}

function query(name: string, type: string, more: object = {}): Buffer {
  const questions = [{ type, name }] as packet.Question[];
  return packet.encode({ type: 'query', id: 7, flags: 0, questions, ...more });
}

const ask = async (name: string, type: string): Promise<Response> => decode(await send(query(name, type)));
const typesOf = (records: packet.Answer[] | undefined): string[] => (records ?? []).map(({ type }) => type);

digTest.each([
  ['UDP over IPv4', ['@127.0.0.1']],
  ['TCP over IPv4', ['@127.0.0.1', '+tcp']],
  ...(hasIPv6
    ? [['UDP over IPv6', ['@::1']] as [string, string[]], ['TCP over IPv6', ['@::1', '+tcp']] as [string, string[]]]
    : []),
])('is answered by %s', async (_, how) => {
  expect(await dig(...how, '+short', 'www.example.com', 'A')).toBe('192.0.2.1\n');
});
if (!hasIPv6) test.skip('is answered over IPv6 (needs: ::1)', () => {});

digTest.each([
  ['nomail', 'MX', '0 .', '000f', '0003000000'],
  ['_none._tcp', 'SRV', '0 0 0 .', '0021', '000700000000000000'],
])('the root as the target of %s %s is one zero byte', async (name, type, text, number, data) => {
  expect(await dig('@127.0.0.1', '+short', `${name}.example.com`, type)).toBe(`${text}\n`);
  // Type, class and TTL, then length and data, and nothing behind them.
  const bytes = (await send(query(`${name}.example.com`, type))).toString('hex');
  expect(bytes).toMatch(new RegExp(`${number}000100000e10${data}$`));
});

test('several questions of a connection are answered in their order', async () => {
  const names = ['www.example.com', 'one.example.com', 'none.b.example.com', 'large.example.com'];
  const messages = names.map((name, id) => packet.encode({ ...decode(query(name, 'TXT')), id }));
  const answers = await pipeline([...messages, ...messages]);
  expect(answers.map(({ id }) => id)).toEqual([0, 1, 2, 3, 0, 1, 2, 3]);
  expect(answers.map(({ rcode }) => rcode).slice(0, 4)).toEqual(['NOERROR', 'NOERROR', 'NXDOMAIN', 'NOERROR']);
});

digTest('what does not fit a datagram of 1,232 bytes is cut short, and whole over TCP', async () => {
  const cut = await dig('@127.0.0.1', '+ignore', '+bufsize=4096', 'large.example.com', 'TXT');
  expect(cut).toMatch(/flags: qr aa tc/);
  expect(cut).toContain('udp: 1232');
  const whole = await dig('@127.0.0.1', '+bufsize=4096', '+short', 'large.example.com', 'TXT');
  expect(whole.replace(/[" \n]/g, '')).toBe('x'.repeat(4000));
});

test.each([
  ['no such name', 'none.b.example.com', 'A', 'NXDOMAIN'],
  ['no such type', 'www.example.com', 'MX', 'NOERROR'],
  ['a name that only has names below it', 'b.example.com', 'A', 'NOERROR'],
  ['a type that nobody knows', 'www.example.com', 'UNKNOWN_65280', 'NOERROR'],
  ['the DS of a delegation without one', 'subdel.example.com', 'DS', 'NOERROR'],
])('%s: the SOA says how long that may be kept', async (_, name, type, rcode) => {
  const found = await ask(name, type);
  expect(found).toMatchObject({ rcode, flag_aa: true, answers: [] });
  expect(found.authorities).toMatchObject([{ type: 'SOA', name: 'example.com', ttl: 60 }]);
});

test('CNAMEs are followed inside the zone, and not beyond; a loop ends', async () => {
  expect(typesOf((await ask('one.example.com', 'A')).answers)).toEqual(['CNAME', 'CNAME', 'A']);
  expect((await ask('away.example.com', 'A')).answers).toMatchObject([{ type: 'CNAME', data: 'www.example.net' }]);
  const loop = await ask('loop.example.com', 'A');
  expect([loop.rcode, typesOf(loop.answers)]).toEqual(['NOERROR', ['CNAME', 'CNAME']]);
});

// RFC 4592 §2.2.1, and names that are not below the apex alone.
test.each([
  ['host3.example.com', 'MX', 'NOERROR', ['MX']],
  ['host3.example.com', 'A', 'NOERROR', []],
  ['foo.bar.example.com', 'TXT', 'NOERROR', ['TXT']],
  ['host1.example.com', 'MX', 'NOERROR', []],
  ['sub.*.example.com', 'MX', 'NOERROR', []],
  ['_telnet._tcp.host1.example.com', 'SRV', 'NXDOMAIN', []],
  ['_tcp.host2.example.com', 'TXT', 'NOERROR', []],
  ['host2.example.com', 'TXT', 'NOERROR', []],
  ['ghost.*.example.com', 'MX', 'NXDOMAIN', []],
  ['x.b.example.com', 'TXT', 'NXDOMAIN', []],
  ['*.example.com', 'TXT', 'NOERROR', ['TXT']],
])('by the wildcard, %s %s is %s', async (name, type, rcode, types) => {
  const found = await ask(name, type);
  expect([found.rcode, typesOf(found.answers)]).toEqual([rcode, types]);
  if (types.length) expect(found.answers?.[0]?.name).toBe(name);
});

test.each(['subdel.example.com', 'host.subdel.example.com'])('%s is referred, with glue', async (name) => {
  const found = await ask(name, 'A');
  expect(found).toMatchObject({ rcode: 'NOERROR', flag_aa: false, answers: [] });
  const servers = (found.authorities ?? []).map((one) => `${one.name} ${one.type} ${(one as { data: string }).data}`);
  expect(servers.sort()).toEqual([
    'subdel.example.com NS ns.example.org',
    'subdel.example.com NS ns.subdel.example.com',
  ]);
  expect(found.additionals).toMatchObject([
    { name: 'ns.subdel.example.com', type: 'A', data: '192.0.2.53' },
    { name: 'ns.subdel.example.com', type: 'AAAA' },
  ]);
});

test('ANY gets one record set', async () => {
  expect(typesOf((await ask('www.example.com', 'ANY')).answers)).toHaveLength(1);
  expect(typesOf((await ask('example.com', 'ANY')).answers)).toEqual(['SOA']);
});

digTest('records of all shapes are as dig reads them', async () => {
  expect(await dig('@127.0.0.1', '+short', 'example.com', 'CAA')).toBe('128 issue "ca.example.net"\n');
  expect(await dig('@127.0.0.1', '+short', '_ssh._tcp.host1.example.com', 'SRV')).toBe('1 2 22 host1.example.com.\n');
  expect(await dig('@127.0.0.1', '+short', 'example.com', 'SOA')).toContain(' host\\.master.example.com. 1 7200 3600 ');
  expect(await dig('@127.0.0.1', '+noall', '+answer', 'wWw.eXample.com', 'A')).toContain('wWw.eXample.com.');
});

test('a dot inside a label, and bytes beyond ASCII, are another name', async () => {
  const labels = [[0x61, 0x2e, 0x62], [0x77, 0x77, 0xd7], [...Buffer.from('example')], [...Buffer.from('com')]];
  for (const first of labels.slice(0, 2)) {
    const bytes = [first, ...labels.slice(2)].flatMap((label) => [label.length, ...label]);
    const message = Buffer.concat([query('.', 'A').subarray(0, 12), Buffer.from([...bytes, 0, 0, 1, 0, 1])]);
    const response = await send(message);
    // Of the wildcard, which has no address; the question as it came.
    expect(response.readUInt16BE(6)).toBe(0);
    expect(response.subarray(12, message.length)).toEqual(message.subarray(12));
  }
});

test.each([
  ['a zone of somebody else', query('www.example.org', 'A'), 'REFUSED'],
  [
    'another class',
    query('www.example.com', 'A', { questions: [{ type: 'A', name: 'example.com', class: 'CH' }] }),
    'REFUSED',
  ],
  [
    'two questions',
    packet.encode({
      ...decode(query('www.example.com', 'A')),
      questions: [
        { type: 'A', name: 'www.example.com' },
        { type: 'A', name: 'www.example.com' },
      ],
    }),
    'FORMERR',
  ],
  ['half a question', query('www.example.com', 'A').subarray(0, 20), 'FORMERR'],
  ['a cookie of five bytes', query('www.example.com', 'A', { additionals: [optWith(0, 5)] }), 'FORMERR'],
  ['an OPT record at a name', optAtName(), 'FORMERR'],
  ['two OPT records', query('www.example.com', 'A', { additionals: [optWith(0, 8), optWith(0, 8)] }), 'FORMERR'],
  ['an OPT record as an answer', query('www.example.com', 'A', { answers: [optWith(0, 8)] }), 'FORMERR'],
  ['an option that is longer than its OPT record', cutOption(), 'FORMERR'],
  ['an additional record that is not there', withAdditional(2), 'FORMERR'],
  ['a meta type', query('www.example.com', 'UNKNOWN_128'), 'FORMERR'],
  ['MAILB', query('www.example.com', 'UNKNOWN_253'), 'NOTIMP'],
  ['a version of EDNS that nobody knows', query('www.example.com', 'A', { additionals: [optWith(1, 8)] }), 'NOERROR'],
  ['a transfer for anybody', query('example.com', 'AXFR'), 'REFUSED'],
  ...[1, 2, 4, 5, 6, 15].map(
    (opcode) => [`opcode ${opcode}`, withOpcode(opcode), 'NOTIMP'] as [string, Buffer, string],
  ),
])('%s is answered as the RFCs say', async (what, message, rcode) => {
  const bytes = await send(message);
  const found = decode(bytes);
  expect([found.rcode, found.answers]).toEqual([rcode, []]);
  expect(bytes.readUInt16BE(2) & 0x7800).toBe(message.readUInt16BE(2) & 0x7800);
  // BADVERS is 16: the upper bits of the code stand in the OPT record (RFC 6891 §6.1.3).
  const [opt] = (found.additionals ?? []) as unknown as { extendedRcode: number; ednsVersion: number }[];
  if (what.startsWith('a version')) expect(opt).toMatchObject({ extendedRcode: 1, ednsVersion: 0 });
});

function optWith(ednsVersion: number, cookieBytes: number): packet.Answer {
  const options = [{ code: 10, data: Buffer.alloc(cookieBytes, 1) }];
  return { type: 'OPT', name: '.', udpPayloadSize: 1232, ednsVersion, flags: 0, options } as unknown as packet.Answer;
}

/** An address that becomes an OPT record: the encoder makes none at a name. */
function optAtName(): Buffer {
  const additionals: packet.Answer[] = [{ type: 'A', name: 'www.example.com', data: '0.0.0.0' }];
  const message = query('www.example.com', 'A', { additionals });
  message.writeUInt16BE(41, message.length - 14);
  return message;
}

function cutOption(): Buffer {
  const message = query('www.example.com', 'A', { additionals: [optWith(0, 8)] });
  message.writeUInt16BE(9, message.length - 10);
  return message;
}

function withAdditional(count: number): Buffer {
  const message = query('www.example.com', 'A', { additionals: [optWith(0, 8)] });
  message.writeUInt16BE(count, 10);
  return message;
}

function withOpcode(opcode: number): Buffer {
  const message = query('www.example.com', 'A');
  message[2] = opcode << 3;
  return message;
}

digTest('dig and its cookie', async () => {
  const first = await dig('@127.0.0.1', '+cookie=0123456789abcdef', 'www.example.com', 'A');
  const [, cookie] = /COOKIE: ([0-9a-f]{48}) \(good\)/.exec(first) ?? [];
  expect(cookie).toMatch(/^0123456789abcdef01/);
});
