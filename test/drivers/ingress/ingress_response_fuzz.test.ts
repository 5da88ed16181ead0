/** @tier both @quarter 2 @covers engines/ingress/ingress */
// The ingress's parser of responses against hostile instances: thousands of responses from a seed, whole and in pieces,
// beside Node's own parser. FUZZ_SEED and FUZZ_CASES choose others.
import http from 'node:http';
import { Duplex } from 'node:stream';
import {
  expectResponse,
  isDelimitedByClose,
  parseResponse,
  responseParser,
  type ResponseSink,
} from '../../../engines/ingress/http/response_parser';
import { isHeavyRun } from '../../support/processes/kills';
import { fuzzSeed, pick, randomFrom, type Random } from '../../support/runner/seeded_random';

const SEED = fuzzSeed(20_260_101);
const CASES = Number(process.env.FUZZ_CASES ?? (isHeavyRun() ? 6_000 : 2_000));
const HEAD_BYTES = 2_048;
const METHODS = ['GET', 'HEAD', 'POST'];

/**
 * What Node refuses and we need not, since both ways to read it are the same: a chunk extension, spaces behind the size
 * of a chunk, and the same length twice (RFC 9112 §6.3).
 */
const HARMLESS = /;ext=|\n5 \r\n|content-length: 5 ?\r\n(?:.*\r\n)*content-length: 5 ?\r\n/i;

/** Refused when the head is written to the visitor, in hints too: engines/ingress/http/simple_response.ts. */
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f]/;

interface Outcome {
  state: 'complete' | 'open' | 'error';
  status: number | null;
  headers: string[];
  body: string;
  keepAlive: boolean;
}

test('a response means the same however it is cut, and never more than one', () => {
  const random = randomFrom(SEED);
  for (let number = 0; number < CASES; number += 1) {
    const method = pick(random, METHODS);
    const bytes = hostileResponse(random);
    const whole = parse(method, [bytes]);
    const pieces = parse(method, cut(random, bytes));
    const single = parse(
      method,
      [...bytes].map((byte) => Buffer.from([byte])),
    );
    // The bytes that came before an error are delivered in pieces of any size.
    expect({ number, ...pieces }).toEqual({ number, ...whole, keepAlive: pieces.keepAlive });
    expect({ number, ...single }).toEqual({ number, ...whole, keepAlive: single.keepAlive });
  }
});

test('what is accepted is what another parser reads', async () => {
  const random = randomFrom(SEED + 1);
  let compared = 0;
  const refused: string[] = [];
  for (let number = 0; number < CASES / 4; number += 1) {
    const method = pick(random, METHODS);
    const bytes = hostileResponse(random);
    const ours = parse(method, [bytes]);
    if (ours.state !== 'complete') continue;
    const theirs = await parseWithNode(method, bytes);
    // A response that Node refuses may be passed on, but its connection is not used again.
    if (theirs === null) {
      const text = bytes.toString('latin1');
      if (ours.keepAlive && !HARMLESS.test(text) && !CONTROL.test(text)) refused.push(text);
      continue;
    }
    compared += 1;
    expect({ number, status: ours.status, body: ours.body }).toEqual({ number, ...theirs });
  }
  expect(refused).toEqual([]);
  expect(compared).toBeGreaterThan(CASES / 40);
});

test('a connection is kept only behind a response whose end is certain', () => {
  const random = randomFrom(SEED + 2);
  let complete = 0;
  for (let number = 0; number < CASES; number += 1) {
    const bytes = hostileResponse(random);
    const outcome = parse('GET', [Buffer.concat([bytes, Buffer.from('HTTP/1.1 200 OK\r\n\r\n')])]);
    if (outcome.state !== 'complete') continue;
    complete += 1;
    expect({ number, keepAlive: outcome.keepAlive }).toEqual({ number, keepAlive: false });
  }
  expect(complete).toBeGreaterThan(CASES / 40);
});

test('bytes without end are not kept', () => {
  const endless = ['HTTP/1.1 200 OK\r\nX: ', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;', 'x'];
  endless.push('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ');
  for (const start of endless) {
    const chunks = [Buffer.from(start), ...Array.from({ length: 64 }, () => Buffer.alloc(1_024, 'a'))];
    expect(parse('GET', chunks).state).toBe('error');
  }
});

function parse(method: string, chunks: readonly Buffer[]): Outcome {
  const parser = responseParser();
  const outcome: Outcome = { state: 'open', status: null, headers: [], body: '', keepAlive: false };
  let finished = 0;
  let buffered = 0;
  const sink: ResponseSink = {
    onInformational: () => undefined,
    onSwitchingProtocols: () => (outcome.state = 'complete'),
    onHead: ({ status, headers }) => Object.assign(outcome, { status, headers: [...headers] }),
    onBodyChunk: (chunk) => (outcome.body += chunk.toString('latin1')),
    onComplete: () => {
      finished += 1;
      outcome.state = 'complete';
    },
  };
  expectResponse(parser, method);
  try {
    for (const chunk of chunks) {
      if (outcome.state === 'complete') break;
      parseResponse(parser, sink, chunk, HEAD_BYTES);
      buffered = Math.max(buffered, (parser.buffered?.length ?? 0) - chunk.length);
    }
    if (outcome.state === 'open' && isDelimitedByClose(parser)) outcome.state = 'complete';
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toMatch(/^[a-zA-Z-]+ /); // one of ours, not a TypeError
    expect((error as Error).constructor).toBe(Error);
    outcome.state = 'error';
  }
  expect(finished).toBeLessThanOrEqual(1);
  expect(buffered).toBeLessThanOrEqual(HEAD_BYTES);
  outcome.keepAlive = outcome.state === 'complete' && parser.keepAlive;
  return outcome;
}

/** Status and body as Node's client reads them, null where it refuses the response. */
function parseWithNode(method: string, bytes: Buffer): Promise<{ status: number | null; body: string } | null> {
  return new Promise((resolve) => {
    const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
    const request = http.request({ method, createConnection: () => socket, headers: { 'content-length': 0 } });
    let body = '';
    request.on('error', () => resolve(null));
    request.on('upgrade', (response) => resolve({ status: response.statusCode ?? null, body: '' }));
    request.on('response', (response) => {
      response.setEncoding('latin1');
      response.on('data', (text: string) => (body += text));
      response.on('error', () => resolve(null));
      response.on('end', () => resolve({ status: response.statusCode ?? null, body }));
    });
    request.end();
    setImmediate(() => {
      socket.push(bytes);
      socket.push(null);
    });
  });
}

function cut(random: Random, bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = 1 + Math.floor(random() * 40);
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

const STATUS_LINES = [
  ...Array<string>(6).fill('HTTP/1.1 200 OK'),
  ...['HTTP/1.0 200 OK', 'HTTP/1.1 204 No Content', 'HTTP/1.1 304 Not Modified', 'HTTP/1.1 500', 'HTTP/1.1 404 '],
  ...['HTTP/1.1 100 Continue', 'HTTP/1.1 103 Early Hints', 'HTTP/2 200 OK', 'HTTP/1.1 099 Low', 'HTTP/1.1  200 OK', ''],
];
const HEADERS = [
  ...['Content-Length: 5', 'Content-Length: 5', 'content-length: 0', 'Content-Length: 5, 5', 'Content-Length: +5'],
  ...['Content-Length: 0x5', 'Content-Length: 5 ', 'Content-Length : 5', 'Content-Length: 99999999999999999999'],
  ...[
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: Chunked',
    'Transfer-Encoding: gzip',
  ],
  ...['Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: chunked, chunked', 'Transfer-Encoding:\tchunked'],
  ...['Transfer-Encoding: xchunked', 'Connection: close', 'Connection: keep-alive, X-Private', 'X-Private: secret'],
  ...['Keep-Alive: timeout=5', 'X-Long: ' + 'a'.repeat(300), 'X-Empty:', ': no name', 'no colon', ' folded: line'],
  ...['X-Bytes: \u00ff\u0080', 'Set-Cookie: a=b', 'Connection: content-length'],
];
const BODIES = [
  ...['', 'hello', 'hello', 'hello world', '5\r\nhello\r\n0\r\n\r\n', '5\r\nhello\r\n0\r\n\r\n'],
  ...[
    '5;ext="a\r\nhello\r\n0\r\n\r\n',
    '5\r\nhello\r\n0\r\nX-Trailer: t\r\n\r\n',
    '5\r\nhello0\r\n\r\n',
    '-5\r\nhello\r\n',
  ],
  ...['0x5\r\nhello\r\n0\r\n\r\n', 'fffffffff\r\nhello', '5 \r\nhello\r\n0\r\n\r\n', '5\nhello\n0\n\n', '00\r\n\r\n'],
  ...['5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n', '5\r\nhel', '1\r\na\r\n1\r\nb\r\n000\r\n\r\n'],
];

function hostileResponse(random: Random): Buffer {
  const headers = Array.from({ length: Math.floor(random() * 4) }, () => pick(random, HEADERS));
  const lineEnd = random() < 0.04 ? '\n' : '\r\n';
  const head = [pick(random, STATUS_LINES), ...headers, '', ''].join(lineEnd);
  const early = random() < 0.1 ? 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' : '';
  const bytes = Buffer.from(early + head + pick(random, BODIES), 'latin1');
  // A wrong byte here and there.
  if (random() < 0.25 && bytes.length > 0) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
  return bytes;
}
