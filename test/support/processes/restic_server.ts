// A server of the REST protocol of restic (restic manual, "REST Backend") whose link is slow, hangs, or is refused.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import * as fs from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface ResticServer {
  /** For RESTIC_REPOSITORY. */
  address: string;
  directory: string;
  /** Of what is uploaded; null: as fast as it comes. */
  bytesPerSecond: number | null;
  /** Takes no more after so many bytes, and answers nothing. */
  hangsAfterBytes: number;
  uploadedBytes: number;
  /** With this status; null: none is refused. */
  refusesPacks: number | null;
  close(): Promise<void>;
}

export async function startResticServer(directory: string): Promise<ResticServer> {
  const self: ResticServer = {
    ...{
      address: '',
      directory,
      bytesPerSecond: null,
      hangsAfterBytes: Infinity,
      uploadedBytes: 0,
      refusesPacks: null,
    },
    close: () => Promise.resolve(),
  };
  const server = createServer((request, response) => {
    answer(self, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  self.address = `rest:http://127.0.0.1:${(server.address() as AddressInfo).port}/repository`;
  self.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return self;
}

async function answer(self: ResticServer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://server');
  // As restic itself lays a directory out: packs are in folders of their first two characters.
  const file = path.join(self.directory, pathname.replace(/\/data\/(\w\w)(\w+)$/, '/data/$1/$1$2'));
  if (self.uploadedBytes >= self.hangsAfterBytes) return;
  if (request.method === 'POST') {
    if (searchParams.has('create')) {
      fs.mkdirSync(file, { recursive: true });
      return void response.end();
    }
    const bytes = await received(self, request);
    if (bytes === null) return;
    if (self.refusesPacks !== null && pathname.includes('/data/'))
      return void response.writeHead(self.refusesPacks).end();
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, bytes);
    return void response.end();
  }
  if (pathname.endsWith('/')) {
    const entries = fs.existsSync(file) ? fs.readdirSync(file, { withFileTypes: true, recursive: true }) : [];
    const list = entries
      .filter((entry) => entry.isFile())
      .map(({ name, parentPath }) => ({ name, size: fs.statSync(path.join(parentPath, name)).size }));
    response.setHeader('Content-Type', 'application/vnd.x.restic.rest.v2');
    return void response.end(JSON.stringify(list));
  }
  if (!fs.existsSync(file)) return void response.writeHead(404).end();
  if (request.method === 'DELETE') return (fs.rmSync(file), void response.end());
  const content = fs.readFileSync(file);
  const [, from = 0, to = content.length - 1] = /^bytes=(\d+)-(\d+)?$/.exec(request.headers.range ?? '') ?? [];
  const part = content.subarray(Number(from), Number(to) + 1);
  response.writeHead(request.headers.range ? 206 : 200, { 'Content-Length': part.length });
  response.end(request.method === 'HEAD' ? undefined : part);
}

/** Null: it hangs. */
async function received(self: ResticServer, request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    self.uploadedBytes += chunk.length;
    if (self.uploadedBytes >= self.hangsAfterBytes) return new Promise(() => request.pause());
    if (self.bytesPerSecond !== null) await sleep((chunk.length / self.bytesPerSecond) * 1000);
  }
  return Buffer.concat(chunks);
}
