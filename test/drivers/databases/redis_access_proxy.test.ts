// Allowed sources: who may come from elsewhere than this host. Other addresses of the loopback interface stand for
// elsewhere.
import { spawnSync } from 'node:child_process';
import { connect as connectPlain } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import { ctx, openServerTrial, settle, specOf } from '../../support/databases/database_server';
import { until, type Trial } from '../../support/builds/runtime';
import { redisServers, type Servers } from '../../support/databases/hosted_servers';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const hasLoopbackNet = process.platform === 'linux';
const there = (spawnSync('redis-server', ['--version']).status === 0 && hasLoopbackNet) || process.env.CI !== undefined;
const describeServer = there ? describe : describe.skip;

jest.setTimeout(60_000);

describeServer(there ? 'allowed sources' : 'allowed sources (redis-server is not installed)', () => {
  let trial: Trial;
  let driver: Servers;
  let spec: DatabaseServer;
  const opened: TLSSocket[] = [];
  beforeAll(async () => {
    trial = await openServerTrial();
    const found = (await hostFacts()).redis;
    driver = redisServers({
      runtime: trial.runtime,
      directory: `${trial.root}/databases`,
      found,
      engine: 'redis',
      publicAddresses: ['127.0.0.2'],
    });
    spec = specOf('redis', found[0]!.series, 18031, { tenant: 31 });
    await settle(driver, spec);
  });
  afterAll(async () => {
    opened.forEach((socket) => socket.destroy());
    await driver.remove(spec.id, ctx());
    expect(await trial.runtime.list()).toEqual([]);
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  /** A connection to a public address that has heard a PONG; null where it is refused. */
  async function from(localAddress: string): Promise<TLSSocket | null> {
    const socket = connect({
      socket: connectPlain({ host: '127.0.0.2', port: spec.port, localAddress }).on('error', () => undefined),
      ca: spec.tls.certificate,
      servername: 'localhost',
    });
    opened.push(socket.on('error', () => undefined));
    socket.write('AUTH app first-word\r\nPING\r\n');
    let heard = '';
    socket.on('data', (data: Buffer) => (heard += data.toString()));
    await until(() => heard.includes('PONG') || socket.destroyed, 3_000).catch(() => undefined);
    if (heard === '+OK\r\n+PONG\r\n') return socket;
    socket.destroy();
    return null;
  }

  test('nobody is let in where nobody is named', async () => {
    expect(await from('127.0.0.3')).toBeNull();
  });

  test('those of the networks that are named come in, over TLS, others do not', async () => {
    spec = { ...spec, allowed_sources: ['127.0.0.3/32', '2001:db8::/32'] };
    expect((await driver.observe(spec, ctx())).differs).toBe('access proxy');
    await settle(driver, spec);
    await until(async () => (await from('127.0.0.3')) !== null);
    expect(await from('127.0.0.4')).toBeNull();
    expect((await driver.metrics(spec, ctx())).connections).toBeGreaterThan(0);
  });

  test('changed networks act within seconds without a restart: removed ones are cut off, kept ones go on', async () => {
    spec = { ...spec, allowed_sources: ['127.0.0.3/32', '127.0.0.4/31'] };
    await settle(driver, spec);
    await until(async () => (await from('127.0.0.5')) !== null);
    const [leaves, stays] = [(await from('127.0.0.3'))!, (await from('127.0.0.4'))!];
    spec = { ...spec, allowed_sources: ['127.0.0.4/31'] };
    await settle(driver, spec);
    await until(() => leaves.closed || leaves.destroyed, 5_000);
    await sleep(200);
    expect(stays.destroyed).toBe(false);
    expect(await from('127.0.0.3')).toBeNull();
    stays.destroy();
  });

  test('connections that show no password shut nobody of another address out', async () => {
    const most = spec.size.max_connections;
    const silent = Array.from({ length: most + 10 }, () =>
      connectPlain({ host: '127.0.0.2', port: spec.port, localAddress: '127.0.0.4' })
        .on('error', () => undefined)
        .resume(),
    );
    // Those beyond the limit are refused: the others have all that there is.
    await until(() => silent.filter((socket) => socket.destroyed).length >= 10);
    await until(async () => (await from('127.0.0.5')) !== null);
    await until(async () => (await from('127.0.0.5')) !== null);
    expect(await from('127.0.0.4')).toBeNull();
    silent.forEach((socket) => socket.destroy());
  });

  test('killed, it is started again', async () => {
    await trial.runtime.stop((await trial.runtime.find(`${spec.id}.proxy`))!, { grace_ms: 0 }, ctx());
    expect((await driver.observe(spec, ctx())).differs).toBe('access proxy');
    await settle(driver, spec);
    await until(async () => (await from('127.0.0.4')) !== null);
  });

  test('it goes with the last network, and what is no network is refused', async () => {
    await expect(driver.ensure({ ...spec, allowed_sources: ['everywhere'] }, ctx())).rejects.toMatchObject({
      reason: 'invalid',
    });
    spec = { ...spec, allowed_sources: [] };
    await settle(driver, spec);
    expect(await trial.runtime.find(`${spec.id}.proxy`)).toBeNull();
    expect(await from('127.0.0.4')).toBeNull();
  });
});
