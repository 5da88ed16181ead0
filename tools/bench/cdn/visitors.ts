// Visitors of tools/bench/cdn: raw connections that count bytes, because they share the machine with what they measure.
import { connect, type Socket } from 'node:net';

export interface Visits {
  rps: number;
  megabytesPerSecond: number;
}

export interface VisitOptions {
  port: number;
  host: string;
  target: string;
  connections: number;
  milliseconds: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');

export function requestOf({ host, target }: { host: string; target: string }): string {
  return `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: Mozilla/5.0 (bench)\r\nAccept: */*\r\n\r\n`;
}

/** Keep-alive connections, each with one request after the other. @throws Error for an answer that is not 200 */
export async function visitFor(options: VisitOptions): Promise<Visits> {
  const total = { requests: 0, bytes: 0 };
  const started = performance.now();
  const until = started + options.milliseconds;
  await Promise.all(Array.from({ length: options.connections }, () => visitOn(options, total, until)));
  const seconds = (performance.now() - started) / 1000;
  return { rps: total.requests / seconds, megabytesPerSecond: total.bytes / seconds / 1e6 };
}

function visitOn(options: VisitOptions, total: { requests: number; bytes: number }, until: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: options.port, host: '127.0.0.1', noDelay: true });
    const request = requestOf(options);
    socket.on('connect', () => socket.write(request));
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('a connection was closed')));
    onAnswers(socket, (bytes) => {
      total.requests += 1;
      total.bytes += bytes;
      if (performance.now() < until) return void socket.write(request);
      socket.removeAllListeners('close').destroy();
      resolve();
    });
  });
}

/** Answers with Content-Length, or in chunks of a body without line ends; `done` gets the length of the body. */
export function onAnswers(socket: Socket, done: (bytes: number) => void): void {
  let head: Buffer = Buffer.alloc(0);
  let left = 0;
  let length = 0;
  socket.on('data', (chunk: Buffer) => {
    for (let rest = chunk; rest.length;) {
      if (left > 0) {
        const taken = Math.min(left, rest.length);
        left -= taken;
        rest = rest.subarray(taken);
      } else {
        head = head.length ? Buffer.concat([head, rest]) : rest;
        const end = head.indexOf(HEAD_END);
        if (end < 0) return;
        const text = head.toString('latin1', 0, end);
        if (!text.startsWith('HTTP/1.1 200')) return void socket.destroy(new Error(text.split('\r\n', 1)[0]));
        left = length = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? NaN);
        rest = head.subarray(end + HEAD_END.length);
        head = Buffer.alloc(0);
      }
      if (left === 0) done(length);
    }
  });
}

/** Of one answer, however it is framed: bytes until the connection is closed. */
export function countBytes(port: number, host: string, target: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('connect', () =>
      socket.write(requestOf({ host, target }).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')),
    );
    socket.on('data', (chunk) => (bytes += chunk.length));
    socket.on('error', reject);
    socket.on('close', () => resolve(bytes));
  });
}

export interface CrowdOptions {
  port: number;
  host: string;
  target: string;
  connections: number;
  requests: number;
  /** Last number of the loopback address that they come from. */
  from: number;
}

/** A process full of visitors: on each connection several requests wait at once. */
export function runVisitors({ port, host, target, connections, requests, from }: CrowdOptions): void {
  const text = requestOf({ host, target }).repeat(requests);
  let [open, answers, failed] = [0, 0, 0];
  const report = (): void => {
    if (answers + failed === connections * requests) process.send?.({ answers, failed });
  };
  const openOne = (): void => {
    if (open === connections) return;
    open += 1;
    let missing = requests;
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${from + (open % 8)}` });
    socket.on('connect', () => {
      socket.write(text);
      openOne();
    });
    onAnswers(socket, () => {
      answers += 1;
      if (--missing === 0) socket.destroy();
      report();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      failed += missing;
      if (missing) report();
    });
  };
  process.on('disconnect', () => process.exit(0));
  process.send?.({ port: 0 });
  // In batches, limited by the accept backlog of the kernel.
  for (let index = 0; index < 64; index += 1) openOne();
}
