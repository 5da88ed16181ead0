// An instance on another machine that is lost without a word: connections stay open, new ones are not answered. It is
// played by a program that is stopped and whose queue of connections is full.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type http from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Target } from '../../../engines/ingress/ingress';
import {
  ask,
  closeAll,
  open as openRequest,
  openFront,
  routeOf,
  until,
  whole,
  type Front,
} from '../../support/ingress/ingress';

const LIMITS = { sweepMs: 20, silentMs: 200, probeMs: 600, probeEveryMs: 200, connectMs: 1_000 };
const PROGRAM = `require('http').createServer((request, response) => {
  if (request.url === '/hold') return;
  if (request.url === '/stream') return response.write('begun');
  response.end(process.argv[1]);
}).listen({ port: 0, host: process.argv[1], backlog: Number(process.argv[2]) }, function () {
  console.log(this.address().port);
});`;

interface Machine extends Target {
  location: { address: string };
  lose(): Promise<void>;
  find(): void;
}

const children: ChildProcess[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  await closeAll();
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/**
 * An instance that answers with its address, one of the loopback interface that is not that of the host.
 * @param backlog a short one is soon full
 */
async function startMachine(address: string, backlog = 1): Promise<Machine> {
  const child = spawn(process.execPath, ['-e', PROGRAM, address, String(backlog)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  return {
    ...{ instance_id: `ins_${address}`, port, location: { address } },
    async lose() {
      child.kill('SIGSTOP');
      while (await isAccepted(port, address));
    },
    find() {
      for (const socket of sockets.splice(0)) socket.destroy();
      child.kill('SIGCONT');
    },
  };
}

/** By the kernel, as long as its queue has room. */
async function isAccepted(port: number, host: string): Promise<boolean> {
  const socket = connect({ port, host }).on('error', () => undefined);
  sockets.push(socket);
  return Promise.race([once(socket, 'connect').then(() => true), sleep(500).then(() => false)]);
}

async function openFrontOf(machines: Machine[], over: object = {}): Promise<Front> {
  const targets = machines.map(({ instance_id, port, location }) => ({
    instance_id,
    port,
    location,
    pod_uid: instance_id,
  }));
  return openFront([routeOf([], { targets, request_timeout_ms: 20_000, ...over })], { limits: LIMITS });
}

const visits = (front: Front, count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, async () => (await ask(front)).body));

test('requests to a lost instance go to another one; later ones do not go there until it answers again', async () => {
  const [one, other] = [await startMachine('127.0.0.2'), await startMachine('127.0.0.3', 511)];
  const front = await openFrontOf([one, other]);
  expect(new Set(await visits(front, 8))).toEqual(new Set(['127.0.0.2', '127.0.0.3']));
  await one.lose();
  // Half of them on connections that were kept, and on new ones.
  expect(new Set(await visits(front, 12))).toEqual(new Set(['127.0.0.3']));
  const { length } = front.lines;
  for (let index = 0; index < 20; index += 1) expect((await ask(front)).body).toBe('127.0.0.3');
  expect(front.lines.slice(length).every(({ duration_ms }) => duration_ms < LIMITS.silentMs)).toBe(true);
  one.find();
  for (let body = ''; body !== '127.0.0.2';) ({ body } = await ask(front));
}, 30_000);

test('a request that may have been acted on ends, and so does an answer that has begun', async () => {
  const [one, other] = [await startMachine('127.0.0.2'), await startMachine('127.0.0.3')];
  const front = await openFrontOf([one, other], { sticky: true });
  const first = await ask(front);
  const headers = { cookie: first.headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
  const [lost, left] = first.body === '127.0.0.2' ? [one, other] : [other, one];
  const post = ask(front, { method: 'POST', path: '/hold', body: 'x', headers });
  const stream = openRequest(front, { path: '/stream', headers }).end();
  const [begun] = (await once(stream, 'response')) as [http.IncomingMessage];
  const streamed = whole(begun).catch(({ message }: Error) => message);
  await lost.lose();
  expect((await post).status).toBe(504);
  expect(await streamed).toBe('aborted');
  await until(() => front.lines.length === 3);
  expect(front.lines.slice(1)).toMatchObject(
    Array.from({ length: 2 }, () => ({ instance_id: lost.instance_id, reason: 'timeout' })),
  );
  expect((await ask(front, { headers })).body).toBe(left.location.address);
}, 30_000);

test('the only instance is waited for', async () => {
  const one = await startMachine('127.0.0.2');
  const front = await openFrontOf([one]);
  await visits(front, 1);
  await one.lose();
  const answer = ask(front);
  await sleep(500);
  one.find();
  expect((await answer).body).toBe('127.0.0.2');
}, 30_000);

test('a connection that is accepted after the route has gone gets no request', async () => {
  const one = await startMachine('127.0.0.2');
  const front = await openFrontOf([one]);
  await one.lose();
  const answer = ask(front, { method: 'POST', headers: { cookie: 'session=secret' }, body: 'secret' });
  await sleep(200);
  front.ingress.replaceRoutes([]);
  await sleep(700);
  one.find();
  // Not what the instance says.
  expect([(await answer).status, (await answer).body]).toEqual([503, expect.stringContaining('"code"')]);
}, 30_000);
