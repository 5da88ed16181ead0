// Addresses of instances on other machines, which a cluster gives to others: who has one now gets no request that is
// meant for who had it before.
import http from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, closeAll, openFront, routeOf, type Front } from '../../support/ingress/ingress';

const ADDRESS = '127.0.0.2';
const LIMITS = { sweepMs: 20 };
/** Confirmed so long ago that the next seconds are the last ones. */
const LONG_AGO_MS = 14_000;
const SECRET = { method: 'POST', headers: { cookie: 'session=secret' }, body: 'secret' };

interface Machine {
  port: number;
  /** Bytes that it was sent. */
  readonly received: string;
  close(): Promise<void>;
}

const machines: Machine[] = [];
afterEach(async () => {
  await closeAll();
  for (const machine of machines.splice(0)) await machine.close();
});

async function startMachine(name: string, port = 0): Promise<Machine> {
  const server: Server = createServer();
  const web = http.createServer((request, response) => request.resume().on('end', () => response.end(name)));
  const sockets = new Set<Socket>();
  let received = '';
  server.on('connection', (socket) => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    socket.prependListener('data', (bytes: Buffer) => (received += bytes.toString()));
    web.emit('connection', socket);
  });
  await new Promise<void>((resolve) => server.listen(port, ADDRESS, resolve));
  const machine: Machine = {
    port: (server.address() as AddressInfo).port,
    get received() {
      return received;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
  machines.push(machine);
  return machine;
}

const openFrontOf = ({ port }: Machine): Promise<Front> => {
  const targets = [{ instance_id: 'ins_1', port, location: { address: ADDRESS }, pod_uid: 'pod-1' }];
  return openFront([routeOf([], { targets })], { limits: LIMITS, confirmed: 'never' });
};

const answerOf = async (front: Front): Promise<string> => {
  const { status, body } = await ask(front, SECRET);
  return status === 200 ? body : `${status} ${(JSON.parse(body) as { code: string }).code}`;
};

test('an address that nobody has confirmed gets no request, and gets them once somebody has', async () => {
  const one = await startMachine('one');
  const front = await openFrontOf(one);
  expect(await answerOf(front)).toBe('503 unconfirmed');
  expect(one.received).toBe('');
  expect(front.lines).toMatchObject([{ status: 503, reason: 'unconfirmed' }]);
  front.ingress.confirmRoutes(60_000);
  expect(await answerOf(front)).toBe('503 unconfirmed');
  front.ingress.confirmRoutes(0);
  expect(await answerOf(front)).toBe('one');
});

test('it is trusted beyond its confirmation as long as it accepts connections', async () => {
  const one = await startMachine('one');
  const front = await openFrontOf(one);
  front.ingress.confirmRoutes(LONG_AGO_MS);
  await sleep(7_000);
  // Nobody has asked meanwhile.
  expect(await answerOf(front)).toBe('one');
}, 20_000);

test('who takes an address over while nobody can confirm it gets nothing of what is meant for another', async () => {
  const one = await startMachine('one');
  const front = await openFrontOf(one);
  front.ingress.confirmRoutes(LONG_AGO_MS);
  expect(await answerOf(front)).toBe('one');
  await one.close();
  await sleep(1_000);
  const other = await startMachine('other', one.port);
  for (let index = 0; index < 10; index += 1) {
    expect(await answerOf(front)).toBe('503 unconfirmed');
    await sleep(50);
  }
  // A confirmation that is older than the gap says nothing.
  front.ingress.confirmRoutes(5_000);
  expect(await answerOf(front)).toBe('503 unconfirmed');
  expect(other.received).toBe('');
  front.ingress.confirmRoutes(0);
  expect(await answerOf(front)).toBe('other');
}, 20_000);

test('an address of a network on this machine, which is no pod, needs no confirmation', async () => {
  const one = await startMachine('one');
  const targets = [{ instance_id: 'ins_1', port: one.port, location: { address: ADDRESS } }];
  const front = await openFront([routeOf([], { targets })], { limits: LIMITS, confirmed: 'never' });
  expect(await answerOf(front)).toBe('one');
});

test('while routes are confirmed all the time, an instance that starts anew gets requests soon', async () => {
  const one = await startMachine('one');
  const front = await openFrontOf(one);
  front.ingress.confirmRoutes(0);
  expect(front.ingress.hasDoubts?.()).toBe(false);
  await one.close();
  expect(await answerOf(front)).toBe('503 refused');
  expect(front.ingress.hasDoubts?.()).toBe(true);
  await startMachine('one again', one.port);
  front.ingress.confirmRoutes(0);
  expect(front.ingress.hasDoubts?.()).toBe(false);
  expect(await answerOf(front)).toBe('one again');
});

test('an address that has refused since its confirmation gets no request before a newer one', async () => {
  const one = await startMachine('one');
  const front = await openFrontOf(one);
  front.ingress.confirmRoutes(0);
  await one.close();
  expect(await answerOf(front)).toBe('503 refused');
  const refusedAt = performance.now();
  const other = await startMachine('other', one.port);
  expect(await answerOf(front)).toBe('503 unconfirmed');
  // Of the moment before it.
  front.ingress.confirmRoutes(performance.now() - refusedAt + 500);
  expect(await answerOf(front)).toBe('503 unconfirmed');
  expect(other.received).toBe('');
  front.ingress.confirmRoutes(0);
  expect(await answerOf(front)).toBe('other');
});
