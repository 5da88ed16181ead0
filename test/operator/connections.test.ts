// One client that opens very many connections: others go on, and so does it.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { guardConnections, guardHttp, openConnectionGate } from '../../core/process/connection_gate';
import { freePort } from '../support/processes/free_port';
import { startProgram, type Program } from '../support/processes/program';
import { createTestDatabase } from '../support/databases/database';

const hasPrlimit = existsSync('/usr/bin/prlimit') ? test : test.skip;

interface Holder {
  ended(): number;
  close(): void;
}

/** Connections that send this, and never close their side. */
async function hold(port: number, count: number, sends = '', localAddress = '127.0.0.1'): Promise<Holder> {
  const ended = new Set<net.Socket>();
  const sockets = Array.from({ length: count }, () => {
    const socket = net.connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
    if (sends) socket.write(sends);
    for (const event of ['error', 'end', 'close']) socket.on(event, () => ended.add(socket));
    return socket.resume();
  });
  const begun = (socket: net.Socket): Promise<unknown> =>
    new Promise((resolve) => socket.once('connect', resolve).once('error', resolve));
  await Promise.all(sockets.map(begun));
  return { ended: () => ended.size, close: () => sockets.forEach((socket) => socket.destroy()) };
}

const statusOf = (port: number, localAddress: string, target = '/healthz'): Promise<number> =>
  new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path: target, localAddress, agent: false, timeout: 10_000 };
    http
      .get(options, (response) => (response.resume(), resolve(response.statusCode as number)))
      .on('timeout', () => reject(new Error('no answer')))
      .on('error', reject);
  });

describe('a service with 256 descriptors', () => {
  let program: Program;
  let port: number;
  let s3: number;
  let ingress: number;
  const dataDir = mkdtempSync(path.join(tmpdir(), 'doors-'));
  const close: (() => unknown)[] = [];

  beforeAll(async () => {
    const database = await createTestDatabase();
    [s3, ingress] = [await freePort(), await freePort()];
    program = startProgram({
      ...{ DATABASE_URL: database.url, PLATFORM_DATA_DIR: dataDir, S3_PORT: String(s3), INGRESS_PORT: String(ingress) },
      ...{ NETWORK: 'shared', LOG_LEVEL: 'info' },
    });
    close.push(database.drop, () => rmSync(dataDir, { recursive: true, force: true }));
    // Before the first connection, which may be one of its own.
    if (existsSync('/usr/bin/prlimit')) execFileSync('prlimit', ['--pid', String(program.pid), '--nofile=256:256']);
    port = Number(new URL(await program.ready()).port);
  }, 120_000);
  afterAll(async () => {
    program.signal('SIGTERM');
    await program.ended;
    for (const step of close) await step();
  });

  hasPrlimit.each([
    ['the API', () => port],
    ['S3', () => s3],
    ['the ingress', () => ingress],
  ])(
    '400 idle connections to %s stop nobody',
    async (_, at) => {
      const idle = await hold(at(), 400);
      for (const address of ['127.0.0.2', '127.0.0.1']) {
        expect(await statusOf(port, address)).toBe(200);
        expect(await statusOf(at(), address)).toBeGreaterThan(0);
      }
      expect(idle.ended()).toBeGreaterThan(300);
      idle.close();
    },
    60_000,
  );

  hasPrlimit(
    'requests that do not end take the share of their client, who is told so',
    async () => {
      const head = 'Host: a\r\nContent-Type: application/json\r\nContent-Length: 100';
      const slow = await hold(port, 200, `POST /graphql HTTP/1.1\r\n${head}\r\n\r\n`, '127.0.0.3');
      await sleep(500);
      expect(await statusOf(port, '127.0.0.2')).toBe(200);
      expect(await statusOf(port, '127.0.0.3')).toBe(429);
      slow.close();
      await sleep(500);
      expect(await statusOf(port, '127.0.0.3')).toBe(200);
    },
    60_000,
  );

  hasPrlimit(
    'refused connections that are reset at once end nothing',
    async () => {
      const head = 'Host: a\r\nContent-Type: application/json\r\nContent-Length: 100';
      const slow = await hold(port, 200, `POST /graphql HTTP/1.1\r\n${head}\r\n\r\n`, '127.0.0.5');
      await sleep(500);
      for (let turn = 0; turn < 300; turn += 1) {
        const socket = net.connect({ port, host: '127.0.0.1', localAddress: '127.0.0.5' });
        socket.on('error', () => undefined).on('connect', () => (socket.write('GET /'), socket.resetAndDestroy()));
        if (turn % 20 === 0) await sleep(20);
      }
      await sleep(500);
      expect(await statusOf(port, '127.0.0.2')).toBe(200);
      slow.close();
    },
    60_000,
  );

  hasPrlimit(
    'who does not close a connection that was refused keeps no descriptor',
    async () => {
      const descriptors = (): number => readdirSync(`/proc/${program.pid}/fd`).length;
      const idle = await hold(port, 40, '', '127.0.0.4');
      await sleep(500);
      const during = descriptors();
      // The time for headers.
      await sleep(13_000);
      expect(descriptors()).toBeLessThan(during - 35);
      idle.close();
    },
    60_000,
  );
});

test('a reset of a refused connection is heard', async () => {
  const gate = openConnectionGate({ perAddress: 1, total: 1, isIdle: () => false });
  const server = net.createServer(() => undefined);
  const refused: net.Socket[] = [];
  guardConnections(server, gate, (socket) => void refused.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const held = await hold(port, 2);
  await sleep(100);
  expect(refused.map((socket) => socket.emit('error', new Error('read ECONNRESET')))).toEqual([true]);
  held.close();
  server.close();
});

test.each([
  [4, 5],
  [Infinity, 10],
])('one proxy may have half, and all where TRUST_PROXY says so (%p)', (perAddress, most) => {
  let searched = 0;
  const gate = openConnectionGate({ perAddress, total: 10, isIdle: () => (searched++, false) });
  const sockets = Array.from({ length: 12 }, () => new net.Socket());
  for (const socket of sockets) Object.defineProperty(socket, 'remoteAddress', { value: '10.0.0.1' });
  expect(sockets.filter((socket) => gate.admit(socket))).toHaveLength(most);
  // The full gate is searched once, not for each one that is refused.
  if (perAddress === Infinity) expect(searched).toBe(10);
  for (const socket of sockets) socket.destroy();
});

describe('a guarded server', () => {
  const open: (() => void)[] = [];
  afterEach(() => open.splice(0).forEach((end) => end()));

  const serve = async (options: Parameters<typeof guardHttp>[1]): Promise<number> => {
    const server = http.createServer((request, response) => {
      if (request.url === '/slow') response.writeHead(200).write('begun');
      else response.end('done');
    });
    guardHttp(server, options);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    open.push(() => (server.close(), server.closeAllConnections()));
    return (server.address() as net.AddressInfo).port;
  };

  test('ends idle connections of a client, and none that is answered', async () => {
    const port = await serve({ perAddress: 10, total: 20 });
    const busy = await hold(port, 5, 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
    const idle = await hold(port, 20);
    await sleep(200);
    expect([busy.ended(), idle.ended()]).toEqual([0, 15]);
    expect(await statusOf(port, '127.0.0.1', '/')).toBe(200);
    const more = await hold(port, 5, 'GET /slow HTTP/1.1\r\nHost: a\r\n\r\n');
    await sleep(200);
    await expect(statusOf(port, '127.0.0.1', '/')).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect(await statusOf(port, '127.0.0.9', '/')).toBe(200);
    [busy, idle, more].forEach((one) => one.close());
  });

  test('answers what a client expects, as without a guard', async () => {
    const port = await serve({ perAddress: 10 });
    const expecting = (expect: string): Promise<[boolean, number]> =>
      new Promise((resolve, reject) => {
        let isInvited = false;
        const request = http.request({ port, host: '127.0.0.1', method: 'PUT', headers: { expect }, agent: false });
        request.on('continue', () => ((isInvited = true), request.end('body')));
        request.on('response', (response) => (response.resume(), resolve([isInvited, response.statusCode ?? 0])));
        request.on('error', reject).flushHeaders();
      });
    expect(await expecting('100-continue')).toEqual([true, 200]);
    expect(await expecting('something')).toEqual([false, 417]);
  });

  test('ends those of the largest client where all have too many', async () => {
    const port = await serve({ perAddress: 10, total: 20 });
    const many = await hold(port, 10, '', '127.0.0.1');
    const few = await hold(port, 3, '', '127.0.0.2');
    const others: Holder[] = [];
    for (let host = 3; host < 15; host += 1) others.push(await hold(port, 1, '', `127.0.0.${host}`));
    await sleep(200);
    expect([many.ended(), few.ended(), others.reduce((sum, one) => sum + one.ended(), 0)]).toEqual([5, 0, 0]);
    [many, few, ...others].forEach((one) => one.close());
  });

  test('keeps connections of clients that go on asking', async () => {
    const port = await serve({ perAddress: 10, total: 20 });
    const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
    const ask = (): Promise<number> =>
      new Promise((resolve, reject) =>
        http
          .get({ port, host: '127.0.0.1', agent }, (response) => (response.resume(), resolve(response.statusCode ?? 0)))
          .on('error', reject),
      );
    for (let turn = 0; turn < 20; turn += 1)
      expect(new Set(await Promise.all(Array.from({ length: 16 }, ask)))).toEqual(new Set([200]));
    agent.destroy();
  });
});
