// A target that can be broken in every way: by the path that is asked, and by how its listeners behave.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTls } from 'node:https';
import { connect, createServer as createTcp, type AddressInfo, type Socket } from 'node:net';
import type { Leaf } from '../databases/authority';

export interface Target {
  port: number;
  /** Requests that were heard, in their order. */
  heard: { method: string; url: string; headers: Record<string, unknown> }[];
  /** Answers of `/slow` that are out. */
  answered: number;
  /** Status that `/switch` answers with. */
  status: number;
  close(): Promise<void>;
}

const DRIP_MS = 100;
const SLOW_MS = 1_500;
/** A queue of this machine that takes no connection for so long is full. */
const QUEUE_MS = 1_000;

function answer(target: Target): RequestListener {
  return (request, response) => {
    const url = request.url ?? '/';
    target.heard.push({ method: request.method ?? '', url, headers: request.headers });
    const [, word = '', rest = ''] = /^\/([^/?]*)[/?]?(.*)$/.exec(url) ?? [];
    if (word === 'ok') return void response.end('all is well');
    if (word === 'switch') return void response.writeHead(target.status).end(`status ${target.status}`);
    if (word === 'status') return void response.writeHead(Number(rest)).end();
    if (word === 'hang') return undefined;
    if (word === 'slow')
      return void setTimeout(() => {
        target.answered += 1;
        response.end('late, but well');
      }, SLOW_MS);
    if (word === 'reset') return void request.socket.destroy();
    if (word === 'garbage') return void request.socket.end('SMTP READY\r\n\r\n');
    if (word === 'redirect') return void response.writeHead(302, { Location: decodeURIComponent(rest) }).end();
    if (word === 'loop') return void response.writeHead(307, { Location: url }).end();
    response.writeHead(200);
    if (word === 'stall') return void response.write('half of it');
    if (word === 'cut') return void response.write('half of it', () => request.socket.destroy());
    const chunk = word === 'huge' ? Buffer.alloc(256 * 1024, 'x') : Buffer.from('.');
    const more = (): void => {
      if (response.destroyed) return;
      if (word === 'huge') response.write(chunk, more);
      else response.write(chunk, () => setTimeout(more, DRIP_MS));
    };
    more();
  };
}

/** On HTTP, or on HTTPS with the given certificate. */
export async function startTarget(leaf?: Leaf, port = 0): Promise<Target> {
  const target: Target = { port: 0, heard: [], answered: 0, status: 200, close: () => Promise.resolve() };
  const server: Server = leaf ? createTls(leaf, answer(target)) : createServer(answer(target));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  target.port = (server.address() as AddressInfo).port;
  target.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return target;
}

/** Takes connections and says nothing. */
export async function startSilence(): Promise<Pick<Target, 'port' | 'close'>> {
  const sockets = new Set<Socket>();
  const server = createTcp((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

const FULL_QUEUE = `const server = require('node:net').createServer();
  const listening = () => process.stdout.write(String(server.address().port));
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, listening);`;

/** A listener that takes no connection and refuses none: its process is stopped, and its queue is full. */
export async function startFullQueue(): Promise<Pick<Target, 'port' | 'close'>> {
  const child = spawn(process.execPath, ['-e', FULL_QUEUE], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(text.toString());
  child.kill('SIGSTOP');
  const sockets: Socket[] = [];
  const isTaken = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1' });
      sockets.push(socket.on('error', () => undefined));
      socket.once('connect', () => resolve(true));
      setTimeout(() => resolve(false), QUEUE_MS);
    });
  while (await isTaken());
  return {
    port,
    async close() {
      for (const socket of sockets) socket.destroy();
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** A port that nobody listens on. */
export async function closedPort(): Promise<number> {
  const silence = await startSilence();
  await silence.close();
  return silence.port;
}
