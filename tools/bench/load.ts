// The load: keep-alive connections that each send a request, wait for the whole response, verify it and send the next.
// Raw sockets, because the load shares its machine with the measured server and must cost little.
import { connect, type Socket } from 'node:net';

/** One request and the only answer that is right. */
export interface Shot {
  request: string;
  status: number;
  /** The body, its beginning, or a test of it; null: any. */
  body: string | ((text: string) => boolean) | null;
}

export interface Round {
  requests: number;
  rps: number;
  /** Milliseconds that half of the answers took at most. */
  p50: number;
  /** Milliseconds that 99 of 100 answers took at most. */
  p99: number;
}

interface LoadOptions {
  port: number;
  connections: number;
  milliseconds: number;
  next(): Shot;
}

/**
 * Loads a server on 127.0.0.1 for a time.
 * @throws Error with request and answer where an answer is not the expected one, or a connection ends
 */
export async function load(options: LoadOptions): Promise<Round> {
  const times: number[] = [];
  const started = performance.now();
  const lines = Array.from({ length: options.connections }, () => fire(options, times, started + options.milliseconds));
  await Promise.all(lines);
  const seconds = (performance.now() - started) / 1000;
  times.sort((a, b) => a - b);
  const within = (share: number): number => times[Math.ceil(times.length * share) - 1] ?? NaN;
  return { requests: times.length, rps: times.length / seconds, p50: within(0.5), p99: within(0.99) };
}

/** One connection, until the time is over. */
function fire({ port, next }: LoadOptions, times: number[], until: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    let shot = next();
    let sent = performance.now();
    const send = (): void => {
      sent = performance.now();
      socket.write(shot.request);
    };
    const end = (error?: Error): void => {
      socket.destroy();
      if (error) reject(error);
      else resolve();
    };
    onAnswer(socket, (status, body) => {
      const now = performance.now();
      times.push(now - sent);
      if (!isRight(shot, status, body))
        return end(
          new Error(
            `wrong answer: ${status} ${body.slice(0, 500)}\nto ${shot.request.split('\r\n')[0]}\n` +
              `expected ${shot.status} ${String(shot.body).slice(0, 500)}`,
          ),
        );
      if (now >= until) return end();
      shot = next();
      send();
    });
    socket.on('connect', send);
    socket.on('error', end);
    socket.on('close', () => end(new Error(`the server closed the connection of ${shot.request.split('\r\n')[0]}`)));
  });
}

function isRight({ status, body }: Shot, got: number, text: string): boolean {
  if (got !== status) return false;
  if (body === null) return true;
  return typeof body === 'string' ? text.startsWith(body) : body(text);
}

const HEAD_END = Buffer.from('\r\n\r\n');

/** Answers of one connection, which come one at a time and carry Content-Length. */
function onAnswer(socket: Socket, done: (status: number, body: string) => void): void {
  let held: Buffer | null = null;
  socket.on('data', (chunk: Buffer) => {
    held = held ? Buffer.concat([held, chunk]) : chunk;
    const end = held.indexOf(HEAD_END);
    if (end < 0) return;
    const head = held.toString('latin1', 0, end);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    const begin = end + HEAD_END.length;
    if (held.length < begin + length) return;
    const body = held.toString('utf8', begin, begin + length);
    held = null;
    done(Number(head.slice(9, 12)), body);
  });
}
