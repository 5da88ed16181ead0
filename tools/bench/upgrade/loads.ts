// Requests at a steady rate, whatever becomes of those before, and what became of each.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { connect, type ClientHttp2Session } from 'node:http2';
import https from 'node:https';
import { printLine } from '../run';
import type { Version } from './version';

export interface Loads {
  end(): void;
  /** Prints what became of the requests, and ends. Whether none was lost. */
  report(version: Version): Promise<boolean>;
}

interface Outcome {
  status: number;
  retryAfter?: number;
  body?: string;
}

interface Load {
  name: string;
  perSecond: number;
  send(): Promise<Outcome>;
}

interface Counts {
  answered: number;
  retryLater: number;
  lost: Map<string, number>;
  slowestMs: number;
}

type Target = http.RequestOptions & { secure?: boolean };

const RETRY_WITHIN_SECONDS = 3;
const ANSWER_WITHIN_MS = 30_000;

export async function openLoads(version: Version, host: string): Promise<Loads> {
  const { ports } = version;
  const plain: Target = { port: ports.http, headers: { Host: host } };
  const secure: Target = { port: ports.tls, headers: { Host: host }, servername: host, secure: true } as Target;
  const kept = new https.Agent({ keepAlive: true });
  const api = await apiTarget(version);
  const writes = new Set<string>();
  const loads: Load[] = [
    { name: 'HTTP, which leads to HTTPS', perSecond: 20, send: () => request({ ...plain, agent: false }) },
    { name: 'HTTPS, kept connections', perSecond: 80, send: () => request({ ...secure, agent: kept }) },
    { name: 'HTTPS, a connection each', perSecond: 50, send: () => request({ ...secure, agent: false }) },
    { name: 'HTTP/2, one connection', perSecond: 50, send: http2Client(ports.tls, host) },
    { name: `API ${api.name}, reads`, perSecond: 15, send: () => request({ ...api.target, path: '/v2/applications' }) },
    { name: `API ${api.name}, writes`, perSecond: 5, send: () => write(api.target, writes) },
  ];
  const running = loads.map(start);
  const end = (): void => running.forEach(({ stop }) => stop());
  return {
    end,
    async report(after) {
      end();
      await Promise.all(running.map(({ settled }) => settled()));
      const losses = running.map(({ load, counts }) => print(load, counts));
      return (await allWritten(after, writes)) && losses.every((lost) => lost === 0);
    },
  };
}

/** By the platform's own name, where the ingress serves it, else at its port, which nobody holds while it restarts. */
async function apiTarget({ name, ports, headers }: Version): Promise<{ name: string; target: Target }> {
  const own = { ...headers, Host: name };
  const named: Target = { port: ports.tls, headers: own, servername: name, secure: true, agent: false } as Target;
  const { status } = await request({ ...named, path: '/healthz' }).catch(() => ({ status: 0 }));
  if (status === 200) return { name: 'by the ingress', target: named };
  return { name: 'at its port', target: { port: ports.api, headers: own, agent: false } };
}

function start(load: Load): { load: Load; counts: Counts; stop(): void; settled(): Promise<unknown> } {
  const counts: Counts = { answered: 0, retryLater: 0, lost: new Map(), slowestMs: 0 };
  const open = new Set<Promise<void>>();
  const timer = setInterval(() => {
    const began = Date.now();
    const one = load
      .send()
      .then((outcome) => count(counts, outcome), (error: unknown) => lose(counts, (error as Error).message))
      .then(() => {
        counts.slowestMs = Math.max(counts.slowestMs, Date.now() - began);
        open.delete(one);
      });
    open.add(one);
  }, 1000 / load.perSecond);
  return { load, counts, stop: () => clearInterval(timer), settled: () => Promise.all(open) };
}

function count(counts: Counts, { status, retryAfter, body }: Outcome): void {
  if ((status >= 200 && status < 300) || status === 308) counts.answered += 1;
  else if (status === 503 && retryAfter !== undefined && retryAfter < RETRY_WITHIN_SECONDS) counts.retryLater += 1;
  else lose(counts, `${status}, Retry-After ${retryAfter ?? 'none'}: ${body?.slice(0, 80)}`);
}

function lose({ lost }: Counts, why: string): void {
  lost.set(why, (lost.get(why) ?? 0) + 1);
}

function print({ name }: Load, { answered, retryLater, lost, slowestMs }: Counts): number {
  const sum = [...lost.values()].reduce((total, number) => total + number, 0);
  const later = retryLater ? `, ${retryLater} told to retry` : '';
  printLine(`${name}: ${answered} answered${later}, ${sum} lost, the slowest after ${slowestMs} ms`);
  for (const [why, number] of lost) printLine(`  ${number} times ${why}`);
  return sum;
}

function request({ secure, ...options }: Target, body?: string): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const more = { host: '127.0.0.1', rejectUnauthorized: false, timeout: ANSWER_WITHIN_MS, ...options };
    const sent = (secure ? https : http).request(more, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('error', reject);
      response.on('end', () => {
        const { 'retry-after': later } = response.headers;
        resolve({ status: response.statusCode ?? 0, ...(later && { retryAfter: Number(later) }), body: text });
      });
    });
    sent.on('timeout', () => sent.destroy(new Error('no answer within 30 s')));
    sent.on('error', reject).end(body);
  });
}

/** A connection for all, and another one where the server says that it takes no more. */
function http2Client(port: number, host: string): () => Promise<Outcome> {
  let session: ClientHttp2Session | undefined;
  return () =>
    new Promise((resolve, reject) => {
      if (!session || session.closed || session.destroyed) {
        session = connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, servername: host });
        session.on('error', () => undefined).unref();
        session.on('goaway', () => (session = undefined));
      }
      const stream = session.request({ ':path': '/', ':authority': host });
      let status = 0;
      stream.on('response', (headers) => (status = Number(headers[':status'])));
      stream.on('error', reject).on('close', () => (status ? resolve({ status }) : reject(new Error('stream ended'))));
      stream.resume().end();
    });
}

/** A notifier of a name that no other has; what was answered must be there. */
async function write(target: Target, writes: Set<string>): Promise<Outcome> {
  const name = `Written ${randomUUID()}`;
  const headers = { ...target.headers, 'Content-Type': 'application/json', 'Idempotency-Key': name };
  const body = JSON.stringify({ name, type: 'webhook', config: { url: 'https://example.com/hook' } });
  const outcome = await request({ ...target, method: 'POST', path: '/v2/notifiers', headers }, body);
  if (outcome.status === 201) writes.add(name);
  return outcome;
}

async function allWritten({ api }: Version, writes: Set<string>): Promise<boolean> {
  const found = new Map<string, number>();
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { data: { name: string }[]; next_cursor: string | null } = await api.call(
      'GET',
      `/v2/notifiers?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    for (const { name } of page.data) found.set(name, (found.get(name) ?? 0) + 1);
    cursor = page.next_cursor;
  }
  const missing = [...writes].filter((name) => !found.has(name)).length;
  const twice = [...found].filter(([name, number]) => name.startsWith('Written ') && number > 1).length;
  printLine(`writes: ${writes.size} answered, of which ${missing} are missing; ${twice} are there twice`);
  return missing === 0 && twice === 0;
}
