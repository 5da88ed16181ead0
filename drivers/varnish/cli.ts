// The management port of varnishd (-T, with the secret of -S): sequential commands, each with a status and a text.
// https://varnish-cache.org/docs/7.1/reference/varnish-cli.html
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';

export interface VarnishCli {
  /** @param args quoted here. @throws VarnishError where Varnish rejects the command, Error without a connection */
  run(command: string, ...args: string[]): Promise<string>;
  close(): void;
}

export class VarnishError extends Error {
  override readonly name = 'VarnishError';

  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

interface Reply {
  status: number;
  text: string;
}

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

const OK = 200;
const CHALLENGE = 107;
const CHALLENGE_LENGTH = 32;
const STATUS_LINE_BYTES = 13;
const END_OF_TEXT = 'END-OF-TEXT';
const REPLY_BYTES_MAX = 4_000_000;

/** @param secret content of the file of -S, byte by byte */
export async function connectCli(
  { host, port }: { host: string; port: number },
  secret: Buffer,
  timeoutMs: number,
): Promise<VarnishCli> {
  const socket = connect({ host, port, noDelay: true });
  const replies = readReplies(socket, timeoutMs);
  try {
    await login(socket, replies, secret);
  } catch (error) {
    socket.destroy();
    throw error;
  }
  let last: Promise<unknown> = Promise.resolve();
  return {
    run(command, ...args) {
      const done = last.then(async () => {
        socket.write(`${[command, ...args.map(quote)].join(' ')}\n`);
        return requireOk(await replies());
      });
      last = done.catch(() => undefined);
      return done;
    },
    close: () => void socket.destroy(),
  };
}

async function login(socket: Socket, replies: () => Promise<Reply>, secret: Buffer): Promise<void> {
  const first = await replies();
  if (first.status !== CHALLENGE) return void requireOk(first);
  const challenge = Buffer.from(`${first.text.slice(0, CHALLENGE_LENGTH)}\n`);
  const proof = createHash('sha256').update(challenge).update(secret).update(challenge).digest('hex');
  socket.write(`auth ${proof}\n`);
  const { status } = await replies();
  if (status !== OK) throw new VarnishError(status, 'Varnish rejects the secret in CDN_VARNISH_SECRET_FILE.');
}

function requireOk({ status, text }: Reply): string {
  if (status !== OK) throw new VarnishError(status, text.trim());
  return text;
}

/**
 * Quotes an argument: one word, or a multi-line text as the last one. Varnish 7.1 supports quotation marks only at the
 * end of a command, and few of its documented escapes.
 * @throws Error for arguments that need them
 */
function quote(text: string): string {
  if (text.includes('\n')) return `<< ${END_OF_TEXT}\n${text}\n${END_OF_TEXT}`;
  if (!/^[!-~]+$/.test(text) || /["\\]/.test(text)) throw new Error('not to be sent to Varnish');
  return text;
}

/** Returns the next reply; concurrent calls get theirs in order. */
function readReplies(socket: Socket, timeoutMs: number): () => Promise<Reply> {
  let held = Buffer.alloc(0);
  let ended: Error | null = null;
  const waiting: Waiting[] = [];
  const end = (error: Error): void => {
    ended ??= error;
    socket.destroy();
    for (const one of waiting.splice(0)) one.reject(ended);
  };
  socket.on('error', end);
  socket.on('close', () => end(new Error('the management port of Varnish was closed')));
  socket.on('data', (chunk) => {
    held = Buffer.concat([held, chunk]);
    if (held.length > REPLY_BYTES_MAX) return end(new Error('a reply of Varnish is too long'));
    for (let reply = takeReply(held); reply; reply = takeReply(held)) {
      held = held.subarray(reply.end);
      waiting.shift()?.resolve(reply);
    }
  });
  return () =>
    new Promise((resolve, reject) => {
      if (ended) return reject(ended);
      const timer = setTimeout(() => end(new Error('Varnish did not reply in time')), timeoutMs);
      const stop = (): void => clearTimeout(timer);
      waiting.push({
        resolve: (reply) => (stop(), resolve(reply)),
        reject: (error) => (stop(), reject(error)),
      });
    });
}

function takeReply(bytes: Buffer): (Reply & { end: number }) | null {
  if (bytes.length < STATUS_LINE_BYTES) return null;
  const [status = NaN, length = NaN] = bytes.toString('latin1', 0, STATUS_LINE_BYTES).trim().split(/ +/).map(Number);
  const end = STATUS_LINE_BYTES + length + 1;
  if (!(bytes.length >= end)) return null;
  return { status, text: bytes.toString('utf8', STATUS_LINE_BYTES, STATUS_LINE_BYTES + length), end };
}
