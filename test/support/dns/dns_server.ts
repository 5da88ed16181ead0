// A small real DNS server on loopback: enough of RFC 1035 for the questions that the platform asks.
import { createSocket } from 'node:dgram';
import { createServer, isIPv4 } from 'node:net';

/**
 * `"shop.example.com TXT"` to its values. Names without a record of any type do not exist; `*.example.com` stands for
 * those right below that do not exist. A CAA record is `issue ca.example`.
 */
export type DnsRecords = Record<string, string[]>;

export interface DnsServer {
  address: string;
  set(name: string, type: string, values: string[]): void;
  /** Answers SERVFAIL about the name. */
  fail(name: string): void;
  /** Leaves questions about the name without an answer. */
  ignore(name: string): void;
  /** Called after each answer. */
  onAnswer: (name: string, type: string) => void;
  close(): Promise<void>;
}

const typeNumbers: Record<string, number> = { A: 1, NS: 2, CNAME: 5, MX: 15, TXT: 16, AAAA: 28, CAA: 257 };
const typeNames = new Map(Object.entries(typeNumbers).map(([name, number]) => [number, name]));
const noError = 0;
const serverFailure = 2;
const nameError = 3;

interface Question {
  id: number;
  name: string;
  type: string;
  bytes: Buffer;
}
interface Answer {
  name: string;
  type: string;
  value: string;
}

export async function startDnsServer(
  initial: DnsRecords = {},
  { host = '127.0.0.1', port = 0 }: { host?: string; port?: number } = {},
): Promise<DnsServer> {
  const records = new Map<string, string[]>();
  const failing = new Set<string>();
  const ignored = new Set<string>();
  const set: DnsServer['set'] = (name, type, values) => void records.set(`${name.toLowerCase()} ${type}`, values);
  for (const [key, values] of Object.entries(initial)) set(...(key.split(' ') as [string, string]), values);
  const respond = (message: Buffer, send: (bytes: Buffer) => void): void => {
    const question = readQuestion(message);
    if (!ignored.has(question.name))
      send(failing.has(question.name) ? reply(question, serverFailure, []) : answer(records, question));
    server.onAnswer(question.name, question.type);
  };
  const socket = createSocket('udp4', (message, peer) =>
    respond(message, (bytes) => socket.send(bytes, peer.port, peer.address)),
  );
  // RFC 1035 section 4.2.2: the length comes first. A question comes in one piece.
  const streams = createServer((stream) => {
    stream.on('error', () => stream.destroy());
    stream.on('data', (data: Buffer) =>
      respond(data.subarray(2), (bytes) => {
        const length = Buffer.alloc(2);
        length.writeUInt16BE(bytes.length);
        stream.end(Buffer.concat([length, bytes]));
      }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(port, host, resolve);
  });
  const { port: bound } = socket.address();
  // A port that TCP has not free matters to nobody who asks by UDP.
  await new Promise<void>((resolve) => {
    streams.once('error', () => resolve());
    streams.listen(bound, host, resolve);
  });
  const server: DnsServer = {
    onAnswer: () => undefined,
    address: `${host}:${bound}`,
    set,
    fail: (name) => void failing.add(name.toLowerCase()),
    ignore: (name) => void ignored.add(name.toLowerCase()),
    async close() {
      streams.close();
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    },
  };
  return server;
}

function answer(records: Map<string, string[]>, question: Question): Buffer {
  const has = (name: string) => [...records].some(([key, values]) => key.startsWith(`${name} `) && values.length > 0);
  const wildcard = question.name.replace(/^[^.]+/, '*');
  const isFromWildcard = !has(question.name) && has(wildcard);
  const found = find(records, isFromWildcard ? wildcard : question.name, question.type);
  const answers = found.map((one) => (one.name === wildcard ? { ...one, name: question.name } : one));
  return reply(question, has(question.name) || isFromWildcard ? noError : nameError, answers);
}

// RFC 1034 section 3.6.2: a CNAME stands for its target, whatever type was asked for.
function find(records: Map<string, string[]>, name: string, type: string): Answer[] {
  const own = (records.get(`${name} ${type}`) ?? []).map((value) => ({ name, type, value }));
  const [alias] = records.get(`${name} CNAME`) ?? [];
  if (own.length > 0 || alias === undefined) return own;
  return [{ name, type: 'CNAME', value: alias }, ...find(records, alias.toLowerCase().replace(/\.$/, ''), type)];
}

function readQuestion(message: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = message.readUInt16BE(at + 1);
  return {
    id: message.readUInt16BE(0),
    name: labels.join('.').toLowerCase(),
    type: typeNames.get(type) ?? `TYPE${type}`,
    bytes: message.subarray(12, at + 5),
  };
}

function reply(question: Question, code: number, answers: Answer[]): Buffer {
  const header = Buffer.alloc(12);
  // QR, AA, RD, RA.
  [question.id, 0x8580 | code, 1, answers.length].forEach((word, i) => header.writeUInt16BE(word, i * 2));
  return Buffer.concat([header, question.bytes, ...answers.map(encode)]);
}

function encode({ name, type, value }: Answer): Buffer {
  const data = encodeValue(type, value);
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(typeNumbers[type]!, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), fixed, data]);
}

function encodeValue(type: string, value: string): Buffer {
  if (type === 'TXT')
    return Buffer.concat(
      (value.match(/.{1,255}/gs) ?? ['']).map((part) =>
        Buffer.concat([Buffer.from([part.length]), Buffer.from(part, 'latin1')]),
      ),
    );
  if (type === 'CAA') {
    const [tag = '', ...rest] = value.split(' ');
    return Buffer.concat([Buffer.from([0, tag.length]), Buffer.from(tag + rest.join(' '), 'latin1')]);
  }
  if (type === 'A') return Buffer.from(value.split('.').map(Number));
  if (type === 'AAAA') return encodeIpv6(value);
  if (type === 'MX')
    return Buffer.concat([Buffer.from([0, Number(value.split(' ')[0])]), encodeName(value.split(' ')[1]!)]);
  return encodeName(value);
}

function encodeIpv6(text: string): Buffer {
  if (isIPv4(text)) throw new Error(`${text} is no IPv6 address`);
  const [head = '', tail] = text.split('::');
  const words = (part: string | undefined) => (part ? part.split(':').map((word) => parseInt(word, 16)) : []);
  const [before, after] = [words(head), words(tail)];
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 255]));
}

function encodeName(name: string): Buffer {
  const labels = name.replace(/\.$/, '').split('.').filter(Boolean);
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
    Buffer.from([0]),
  ]);
}
