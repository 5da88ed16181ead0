// A certificate authority whose time can be moved, that can be away, and that stops at a step: a proxy before pebble.
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import * as https from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Pebble } from './pebble';

export interface Authority {
  directory: string;
  /** Answers 503 to everything. */
  isAway: boolean;
  /** By how much time has passed beside that of the clock. */
  elapsedMs: number;
  /** Orders that it has accepted so far. */
  placed: number;
  /** What it answers to a request in the place of the authority; null: nothing else. */
  answer(path: string, method: string): BadAnswer | null;
  /** The body of an answer as it comes back. */
  alter(path: string, body: Buffer): Buffer | string;
  /** Before a request reaches the authority, and before its answer comes back. */
  on(when: 'before' | 'after', path: string): Promise<void> | void;
  close(): Promise<void>;
}

export interface BadAnswer {
  status: number;
  headers?: Record<string, string>;
  body?: string;
}

const RENEWAL = /renewalInfo\/(.+)$/;

export async function openAuthority(pebble: Pebble): Promise<Authority> {
  const target = new URL(pebble.directory);
  const ca = readFileSync(pebble.caFile);
  /** When each certificate was asked about first: at once after it was issued. */
  const issuedAt = new Map<string, number>();
  const forward = async (request: IncomingMessage): Promise<Forwarded> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    return new Promise((resolve, reject) => {
      const options = { method: request.method, headers: request.headers, ca };
      const sent = https.request(new URL(request.url ?? '/', target), options, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('end', () => resolve({ answer, body: Buffer.concat(parts) }));
      });
      sent.on('error', reject);
      sent.end(Buffer.concat(chunks));
    });
  };
  const moved = (path: string, body: Buffer): Buffer => {
    const id = RENEWAL.exec(path)?.[1];
    if (id === undefined) return body;
    if (!issuedAt.has(id)) issuedAt.set(id, self.elapsedMs);
    const info = JSON.parse(body.toString()) as { suggestedWindow?: { start: string; end: string } };
    const { suggestedWindow: window } = info;
    if (!window) return body;
    const passedMs = self.elapsedMs - (issuedAt.get(id) as number);
    const earlier = (at: string): string => new Date(Date.parse(at) - passedMs).toISOString();
    return Buffer.from(JSON.stringify({ suggestedWindow: { start: earlier(window.start), end: earlier(window.end) } }));
  };
  const server = https.createServer(
    { key: readFileSync(pebble.keyFile), cert: ca },
    (request, response) =>
      void (async () => {
        const path = request.url ?? '/';
        if (self.isAway) return response.writeHead(503).end();
        const bad = self.answer(path, request.method ?? '');
        if (bad) return response.writeHead(bad.status, bad.headers).end(bad.body);
        await self.on('before', path);
        const { answer, body } = await forward(request);
        if (path === '/order-plz' && answer.statusCode === 201) self.placed += 1;
        await self.on('after', path);
        const { 'content-length': _length, ...headers } = answer.headers;
        response.writeHead(answer.statusCode ?? 500, headers).end(self.alter(path, moved(path, body)));
      })().catch(() => response.destroy()),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self: Authority = {
    directory: `https://127.0.0.1:${(server.address() as AddressInfo).port}/dir`,
    ...{ isAway: false, elapsedMs: 0, placed: 0, on: () => undefined },
    ...{ answer: () => null, alter: (_, body) => body },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}

interface Forwarded {
  answer: IncomingMessage;
  body: Buffer;
}
