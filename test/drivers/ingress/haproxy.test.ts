// What spreads connections, in front of servers that say who they are.
import { readdirSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import type { Desired } from '../../../core/driver';
import type { ObservedListener, SpreadDriver, SpreadSpec } from '../../../drivers/endpoint';
import { openSpreader } from '../../../drivers/endpoint/haproxy';
import { hostFacts } from '../../../drivers/host';
import { ctx } from '../../support/databases/database_server';
import { processesWith, signalAll } from '../../support/processes/processes';
import { openTrial, until, type Trial } from '../../support/builds/runtime';

const port = 25_300 + (process.pid % 90);
const id = 'dbe_spread';
const present = readdirSync('/usr/sbin').includes('haproxy') || Boolean(process.env.CI);

(present ? describe : describe.skip)(`haproxy${present ? '' : ' (not installed)'}`, () => {
  let trial: Trial;
  let driver: SpreadDriver;
  let directory: string;
  const behind = new Map<number, { door: Server; guests: Set<Socket> }>();
  const [first, second, third] = [port + 100, port + 200, port + 300];

  beforeAll(async () => {
    trial = await openTrial({ sandbox: 'auto' });
    directory = path.join(trial.root, 'endpoints');
    driver = openSpreader({
      runtime: trial.runtime,
      directory,
      found: async () => (await hostFacts()).programs.haproxy ?? null,
    });
    for (const one of [first, second, third]) await open(one);
  }, 30_000);
  afterAll(async () => {
    await trial?.close();
    for (const one of behind.keys()) shut(one);
  }, 30_000);

  /** Says its port and stays. */
  async function open(own: number): Promise<void> {
    const guests = new Set<Socket>();
    const door = createServer((guest) => {
      guests.add(guest.on('error', () => undefined).on('close', () => guests.delete(guest)));
      guest.write(`${own}\n`);
    });
    behind.set(own, { door, guests });
    await new Promise<void>((resolve) => door.listen(own, '127.0.0.1', resolve));
  }

  function shut(own: number): void {
    const { door, guests } = behind.get(own)!;
    door.close();
    for (const guest of guests) guest.destroy();
  }

  const spreading = (ports: number[], more: Partial<SpreadSpec> = {}): Desired<SpreadSpec> => ({
    id,
    spec: {
      tenant: 12,
      port,
      running: true,
      allowed_sources: [],
      engine: 'redis',
      connections: 100,
      servers: ports.map((one) => ({ id: `rep_${one}`, port: one })),
      ...more,
    },
  });

  async function reconcile(wanted: Desired<SpreadSpec>): Promise<ObservedListener> {
    await driver.ensure(wanted, await driver.observe(wanted, ctx()), ctx());
    const seen = await driver.observe(wanted, ctx());
    if (seen.state !== 'present' || !seen.upToDate) throw new Error(JSON.stringify(seen));
    return seen.observed;
  }

  interface Visit {
    answer: number | null;
    socket: Socket;
    ended: boolean;
  }

  /** Who answers; null where the connection is closed. */
  function visit(localAddress = '127.0.0.1'): Promise<Visit> {
    return new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, localAddress });
      const made: Visit = { answer: null, socket, ended: false };
      socket.on('data', (text) => resolve(Object.assign(made, { answer: Number(text.toString()) })));
      socket.on('error', () => undefined).on('close', () => resolve(Object.assign(made, { ended: true })));
    });
  }

  async function visits(count: number): Promise<Visit[]> {
    const all: Visit[] = [];
    for (let turn = 0; turn < count; turn += 1) all.push(await visit());
    return all;
  }

  const leave = (all: Visit[]) => all.forEach(({ socket }) => socket.destroy());
  const answers = (all: Visit[]) => [...new Set(all.map(({ answer }) => answer))].sort();
  const pids = () =>
    processesWith(`${directory}/${id}/conf/haproxy.cfg`)
      .filter(({ args }) => args.startsWith('/usr/sbin/haproxy'))
      .map(({ pid }) => pid);

  test('spreads connections evenly', async () => {
    expect(await driver.observe(spreading([first, second]), ctx())).toEqual({ state: 'absent' });
    expect(await reconcile(spreading([first, second]))).toEqual({ state: 'running', reason: null });
    const all = await visits(8);
    expect([first, second].map((one) => all.filter(({ answer }) => answer === one).length)).toEqual([4, 4]);
    leave(all);
  });

  test('replicas come and go while it runs; sessions of those that stay go on, of those that leave end', async () => {
    const [before] = pids();
    await reconcile(spreading([first, second]));
    const all = await visits(4);
    await reconcile(spreading([second, third]));
    expect(pids()).toEqual([before]);
    await until(() => all.filter(({ answer }) => answer === first).every(({ ended }) => ended));
    expect(all.filter(({ answer }) => answer === second).some(({ ended }) => ended)).toBe(false);
    leave(all);
    const later = await visits(6);
    expect(answers(later)).toEqual([second, third]);
    leave(later);
    await reconcile(spreading([]));
    expect(await visit()).toMatchObject({ answer: null, ended: true });
    await reconcile(spreading([first, second, third]));
    const back = await visits(6);
    expect(answers(back)).toEqual([first, second, third]);
    leave(back);
    expect(pids()).toEqual([before]);
  });

  test('one that is dead gets nothing, and comes back', async () => {
    await reconcile(spreading([first, second]));
    shut(first);
    const all = await visits(4);
    expect(answers(all)).toEqual([second]);
    leave(all);
    await open(first);
    await until(async () => {
      const later = await visits(4);
      leave(later);
      return later.some(({ answer }) => answer === first);
    }, 30_000);
  }, 60_000);

  test('only who is allowed gets in; a source that is taken away ends sessions', async () => {
    await reconcile(spreading([second]));
    expect(await visit('127.0.0.9')).toMatchObject({ answer: null });
    await reconcile(spreading([second], { allowed_sources: ['127.0.0.8/30'] }));
    const [before] = pids();
    const [inside, outside] = [await visit('127.0.0.9'), await visit('127.0.0.17')];
    expect([inside.answer, outside.answer]).toEqual([second, null]);
    await reconcile(spreading([second], { allowed_sources: ['127.0.0.8/30', '127.0.0.16/30', '2001:db8::/32'] }));
    expect([pids(), (await visit('127.0.0.17')).answer, inside.ended]).toEqual([[before], second, false]);
    await reconcile(spreading([second], { allowed_sources: ['127.0.0.16/30'] }));
    await until(() => inside.ended);
    expect([pids(), (await visit('127.0.0.9')).answer, (await visit('127.0.0.17')).answer]).toEqual([
      [before],
      null,
      second,
    ]);
    await expect(reconcile(spreading([second], { allowed_sources: ['office'] }))).rejects.toMatchObject({
      reason: 'invalid',
    });
  });

  test('killed, it comes back with the replicas of now', async () => {
    await reconcile(spreading([first]));
    signalAll(pids());
    await until(async () => {
      const seen = await driver.observe(spreading([first]), ctx());
      return seen.state === 'present' && seen.observed.state === 'failed';
    });
    await reconcile(spreading([second]));
    const one = await visit();
    expect(one.answer).toBe(second);
    leave([one]);
  });

  test('what does not speak as a server of PostgreSQL gets nothing of its clients', async () => {
    await reconcile(spreading([first], { engine: 'postgresql' }));
    await until(async () => {
      const one = await visit();
      leave([one]);
      return one.answer === null;
    });
    await expect(driver.observe({ ...spreading([first]), id: '../x' }, ctx())).rejects.toMatchObject({
      reason: 'invalid',
    });
  });

  test('it goes without a trace', async () => {
    const wanted = spreading([second]);
    for (let turn = 0; turn < 2; turn += 1) await driver.remove(wanted, await driver.observe(wanted, ctx()), ctx());
    expect([await driver.observe(wanted, ctx()), readdirSync(directory), pids(), await trial.runtime.list()]).toEqual([
      { state: 'absent' },
      [],
      [],
      [],
    ]);
    expect((await visit()).ended).toBe(true);
  });
});
