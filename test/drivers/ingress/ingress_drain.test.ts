// Changes under load: no request is lost when instances come and go.
import http from 'node:http';
import { connect, type Socket } from 'node:net';
import {
  ask,
  closeAll,
  openFront,
  routeOf,
  startApp,
  until,
  type App,
  type Front,
} from '../../support/ingress/ingress';

afterEach(closeAll);

const answering = (name: string): Promise<App> =>
  startApp((request, response) => {
    const bytes: Buffer[] = [];
    request
      .on('data', (chunk: Buffer) => bytes.push(chunk))
      .on('end', () => setTimeout(() => response.end(name + Buffer.concat(bytes).length), 2));
  });

/** Requests one after the other on several connections, until told to stop. Counts what was not 200. */
function underLoad(front: Front): { stop(): Promise<{ good: number; bad: string[] }> } {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const [result, state] = [{ good: 0, bad: [] as string[] }, { on: true }];
  const lines = Array.from({ length: 16 }, async (_, index) => {
    while (state.on) {
      const question = index % 4 === 0 ? { method: 'POST', body: 'x'.repeat(1_000), agent } : { agent };
      const word = await ask(front, question).then(
        ({ status }) => String(status),
        (error: Error) => error.message,
      );
      if (word === '200') result.good += 1;
      else result.bad.push(word);
    }
  });
  return { stop: async () => ((state.on = false), await Promise.all(lines), agent.destroy(), result) };
}

test('twenty deployments under load lose nothing', async () => {
  let current = [await answering('a'), await answering('b')];
  const front = await openFront([routeOf(current)]);
  const load = underLoad(front);
  for (let round = 0; round < 20; round += 1) {
    const next = [await answering(`a${round}`), await answering(`b${round}`)];
    await new Promise((resolve) => setTimeout(resolve, 30));
    front.ingress.replaceApplicationRoutes('app_1', [routeOf(next)]);
    await Promise.all(current.map(({ instance_id }) => front.ingress.drain(instance_id, 5_000)));
    await Promise.all(current.map((app) => app.close()));
    current = next;
  }
  const { good, bad } = await load.stop();
  expect(bad).toEqual([]);
  expect(good).toBeGreaterThan(100);
});

test('drained before the routes change, with others left', async () => {
  const [old, next] = [await answering('old'), await answering('next')];
  let late = 0;
  const front = await openFront([routeOf([old, next])]);
  const load = underLoad(front);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await front.ingress.drain(old.instance_id, 5_000);
  old.server.on('request', () => (late += 1));
  // Routes that were read before do not bring it back.
  front.ingress.replaceApplicationRoutes('app_1', [routeOf([old, next])]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect((await load.stop()).bad).toEqual([]);
  expect((await ask(front)).body).toBe('next0');
  expect(late).toBe(0);
});

test('a drain waits for open requests until its deadline, for an unknown instance not at all', async () => {
  const held: (() => void)[] = [];
  const app = await startApp((_, response) => void held.push(() => response.end('done')));
  const front = await openFront([routeOf([app])]);
  const answer = ask(front);
  await until(() => held.length === 1);
  let drained = false;
  const drain = front.ingress.drain(app.instance_id, 10_000).then(() => (drained = true));
  const started = performance.now();
  await front.ingress.drain(app.instance_id, 100);
  expect(performance.now() - started).toBeGreaterThan(90);
  expect(drained).toBe(false);
  front.ingress.replaceApplicationRoutes('app_1', []);
  held[0]?.();
  expect((await answer).body).toBe('done');
  await drain;
  await front.ingress.drain('ins_unknown', 10_000);
});

test('kept connections to an instance that is no target any more are closed', async () => {
  const open = new Set<unknown>();
  const app = await answering('a');
  app.server.on('connection', (socket: Socket) => (open.add(socket), socket.on('close', () => open.delete(socket))));
  const front = await openFront([routeOf([app])]);
  await Promise.all([ask(front), ask(front), ask(front)]);
  expect(open.size).toBe(3);
  const last = ask(front);
  app.server.once('request', () => front.ingress.replaceApplicationRoutes('app_1', []));
  expect((await last).status).toBe(200);
  await until(() => open.size === 0);
});

test('closing lets open requests finish and takes no new ones', async () => {
  const held: (() => void)[] = [];
  const app = await startApp((_, response) => void held.push(() => response.end('done')));
  const front = await openFront([routeOf([app])]);
  const agent = new http.Agent({ keepAlive: true });
  const answer = ask(front, { agent });
  await until(() => held.length === 1);
  const closed = front.close(5_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  await expect(ask(front)).rejects.toThrow(/ECONNREFUSED/);
  held[0]?.();
  expect(await answer).toMatchObject({ body: 'done', headers: { connection: 'close' } });
  const started = performance.now();
  await closed;
  expect(performance.now() - started).toBeLessThan(4_000);
  agent.destroy();
});

test('closing ends what does not end itself', async () => {
  const app = await startApp(() => undefined);
  const front = await openFront([routeOf([app])]);
  const answer = ask(front).catch((error: Error) => error.message);
  await until(() => true);
  await new Promise((resolve) => setTimeout(resolve, 50));
  const started = performance.now();
  await front.close(200);
  expect(performance.now() - started).toBeLessThan(8_000);
  expect(await answer).toMatch(/hang up|RESET/);
});

test('2,000 connections at a time', async () => {
  const front = await openFront([routeOf([await answering('a'), await answering('b')])], {
    limits: { applicationRequests: 3_000 },
  });
  const sockets = await Promise.all(
    Array.from(
      { length: 2_000 },
      () =>
        new Promise<Socket>((resolve, reject) => {
          const socket = connect(front.port, '127.0.0.1', () => resolve(socket)).on('error', reject);
        }),
    ),
  );
  const answers = await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<string>((resolve, reject) => {
          socket
            .once('data', (chunk) => resolve(chunk.toString('latin1', 0, 15)))
            .once('close', () => reject(new Error('closed')));
          socket.write('GET / HTTP/1.1\r\nHost: app.example.com\r\n\r\n');
        }),
    ),
  );
  sockets.forEach((socket) => socket.removeAllListeners('close').destroy());
  expect(new Set(answers)).toEqual(new Set(['HTTP/1.1 200 OK']));
  await until(() => front.lines.length === 2_000);
});
