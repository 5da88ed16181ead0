// A real server: as wanted, reached over TLS, backed up, restored, followed.
import { spawnSync } from 'node:child_process';
import { createClient } from '@redis/client';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import type { EngineFound } from '../../../core/catalog/host_facts';
import {
  ctx,
  newCertificate,
  openServerTrial,
  settle,
  specOf,
  removeServers,
} from '../../support/databases/database_server';
import { processesWith } from '../../support/processes/processes';
import { until, type Trial } from '../../support/builds/runtime';
import { redisServers, type Servers } from '../../support/databases/hosted_servers';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const engines = (['redis', 'valkey'] as const).filter((engine) => engine === 'redis' || has('valkey-server'));
const there = has('redis-server') || process.env.CI !== undefined;
const describeServer = there
  ? describe.each(engines)
  : describe.skip.each(engines.map((engine) => `${engine} (redis-server is not installed)`));

jest.setTimeout(60_000);

describeServer('%s', (engineName) => {
  const engine = engineName as 'redis' | 'valkey';
  let trial: Trial;
  let driver: Servers;
  let found: EngineFound[];
  let spec: DatabaseServer;
  beforeAll(async () => {
    trial = await openServerTrial();
    found = (await hostFacts())[engine];
    driver = redisServers({
      ...{ runtime: trial.runtime, directory: `${trial.root}/databases`, found, engine, disks: trial.disks },
    });
    spec = specOf(engine, found[0]!.series, 18001);
  });
  afterAll(async () => {
    await removeServers(driver);
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  /** What a tenant's client is answered; the message of the error where it is refused. */
  async function as(username: string, password: string, commands: string[][], of = spec): Promise<unknown[]> {
    const client = createClient({
      username,
      password,
      disableClientInfo: true,
      RESP: 2,
      socket: {
        host: '127.0.0.1',
        port: of.port,
        tls: true,
        ca: of.tls.certificate,
        servername: 'localhost',
        reconnectStrategy: false,
        connectTimeout: 2_000,
      },
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const answers: unknown[] = [];
      for (const words of commands)
        answers.push(await client.sendCommand(words).catch((error: Error) => error.message));
      return answers;
    } catch (error) {
      return [(error as Error).message];
    } finally {
      if (client.isOpen) client.destroy();
    }
  }
  const app = (...commands: string[][]) => as('app', spec.users[0]!.password, commands);

  test('a server is made, started and as wanted', async () => {
    expect(await driver.versions()).toEqual([found[0]!.series]);
    expect((await driver.observe(spec, ctx())).state).toBe('absent');
    const begin = Date.now();
    const seen = await settle(driver, spec);
    console.info(`${engine}: made and started in ${Date.now() - begin} ms`);
    expect(seen).toMatchObject({
      state: 'running',
      differs: null,
      full: false,
      replication_lag_seconds: null,
      reason: null,
    });
    expect(await app(['SET', 'a', '1'], ['GET', 'a'])).toEqual(['OK', '1']);
    expect(await driver.list(ctx())).toEqual([spec.id]);
  });

  test('without TLS, without a password and with a wrong one nobody comes in', async () => {
    const plain = createClient({
      disableClientInfo: true,
      RESP: 2,
      socket: { host: '127.0.0.1', port: spec.port, reconnectStrategy: false, connectTimeout: 2_000 },
    });
    plain.on('error', () => undefined);
    await expect(plain.connect().then(() => plain.ping())).rejects.toThrow();
    if (plain.isOpen) plain.destroy();
    expect(await as('app', 'wrong', [['PING']])).toEqual([expect.stringMatching(/^WRONGPASS/)]);
    expect(await as('default', '', [['GET', 'a']])).toEqual([expect.stringMatching(/WRONGPASS|NOAUTH/)]);
  });

  test.each([
    [['CONFIG', 'GET', '*']],
    [['CONFIG', 'SET', 'maxmemory', '0']],
    [['ACL', 'LIST']],
    [['DEBUG', 'SLEEP', '0']],
    [['SHUTDOWN', 'NOSAVE']],
    [['REPLICAOF', 'NO', 'ONE']],
    [['BGSAVE']],
    [['SAVE']],
    [['MODULE', 'LOAD', '/x.so']],
    [['MONITOR']],
    [['CLIENT', 'KILL', 'TYPE', 'normal']],
    [['MIGRATE', '127.0.0.1', '1', 'a', '0', '1']],
    [['FAILOVER']],
    [['PSYNC', '?', '-1']],
    [['CLUSTER', 'RESET']],
    [['SCRIPT', 'DEBUG', 'SYNC']],
    [['EVAL', 'return redis.call("CONFIG", "GET", "dir")', '0']],
  ])('an admin cannot %j', async (command) => {
    expect(await app(command)).toEqual([expect.stringMatching(/NOPERM|ACL failure|permissions|not allowed/i)]);
  });

  test('access levels', async () => {
    spec = {
      ...spec,
      users: [
        ...spec.users,
        { username: 'writer', password: 'w-word', access: 'read_write' },
        { username: 'reader', password: 'r-word', access: 'read_only' },
      ],
    };
    expect((await driver.observe(spec, ctx())).differs).toBe('users');
    await settle(driver, spec);
    expect(
      await as('writer', 'w-word', [['SET', 'b', '2'], ['INFO', 'server'], ['EVAL', 'return 1', '0'], ['FLUSHALL']]),
    ).toEqual(['OK', expect.any(String), 1, expect.stringMatching(/^NOPERM/)]);
    expect(
      await as('reader', 'r-word', [
        ['GET', 'b'],
        ['KEYS', 'b'],
        ['SET', 'b', '3'],
        ['DEL', 'b'],
        ['EVAL', 'return 1', '0'],
      ]),
    ).toEqual(['2', ['b'], ...Array(3).fill(expect.stringMatching(/^NOPERM/))]);
    expect(await app(['DEL', 'b'], ['FLUSHDB'], ['SET', 'a', '1'])).toEqual([1, 'OK', 'OK']);
    spec = { ...spec, users: spec.users.slice(0, 1) };
    await settle(driver, spec);
    expect(await as('reader', 'r-word', [['GET', 'b']])).toEqual([expect.stringMatching(/^WRONGPASS/)]);
  });

  async function session(): Promise<ReturnType<typeof createClient>> {
    const client = createClient({
      username: 'app',
      password: spec.users[0]!.password,
      disableClientInfo: true,
      RESP: 2,
      socket: {
        host: '127.0.0.1',
        port: spec.port,
        tls: true,
        ca: spec.tls.certificate,
        servername: 'localhost',
        reconnectStrategy: false,
      },
    });
    client.on('error', () => undefined);
    await client.connect();
    return client as ReturnType<typeof createClient>;
  }

  async function hasEnded(client: ReturnType<typeof createClient>): Promise<void> {
    await until(() => !client.isOpen, 2_000).catch(() => undefined);
    await expect(client.sendCommand(['PING'])).rejects.toThrow();
    if (client.isOpen) client.destroy();
  }

  test('a rotation ends sessions and the old password', async () => {
    const client = await session();
    const old = spec.users[0]!.password;
    spec = { ...spec, users: [{ ...spec.users[0]!, password: 'second-word' }] };
    await settle(driver, spec);
    await hasEnded(client);
    expect(await as('app', old, [['PING']])).toEqual([expect.stringMatching(/^WRONGPASS/)]);
    expect(await app(['GET', 'a'])).toEqual(['1']);
  });

  test('two passwords are valid during a rotation, and no session is lost to it', async () => {
    const user = spec.users[0]!;
    const before = await session();
    spec = { ...spec, users: [{ ...user, password: 'third-word', previous_password: user.password }] };
    await settle(driver, spec);
    expect(await before.sendCommand(['PING'])).toBe('PONG');
    expect(await as('app', user.password, [['PING']])).toEqual(['PONG']);
    expect(await as('app', 'no-word', [['PING']])).toEqual([expect.stringMatching(/^WRONGPASS/)]);
    const since = await session();
    spec = { ...spec, users: [{ ...user, password: 'third-word' }] };
    await settle(driver, spec);
    expect(await since.sendCommand(['PING'])).toBe('PONG');
    since.destroy();
    await hasEnded(before);
    expect(await as('app', user.password, [['PING']])).toEqual([expect.stringMatching(/^WRONGPASS/)]);
  });

  test('passwords are in no argument list and in no log', async () => {
    for (const word of ['second-word', spec.admin_password]) expect(processesWith(word)).toEqual([]);
    const { lines } = await driver.readLog(spec.id, null);
    expect(lines.map(({ text }) => text).join('\n')).toMatch(/Ready to accept connections/);
    expect(JSON.stringify(lines)).not.toMatch(/second-word|administrators-word/);
  });

  test('a new certificate without a restart', async () => {
    const before = (await trial.runtime.find(`${spec.id}.server`))!.pid;
    spec = { ...spec, tls: newCertificate() };
    expect((await driver.observe(spec, ctx())).differs).toBe('certificate');
    await settle(driver, spec);
    expect(await app(['GET', 'a'])).toEqual(['1']);
    expect((await trial.runtime.find(`${spec.id}.server`))!.pid).toBe(before);
  });

  test('memory is limited, and more of it comes with a restart that keeps the data', async () => {
    const value = 'x'.repeat(8 << 20);
    const answers = await app(...Array.from({ length: 30 }, (_, i) => ['SET', `big${i}`, value]));
    expect(answers.filter((answer) => /^OOM/.test(String(answer))).length).toBeGreaterThan(5);
    expect((await trial.runtime.inspect((await trial.runtime.find(`${spec.id}.server`))!)).state).toBe('running');
    await app(...Array.from({ length: 30 }, (_, i) => ['DEL', `big${i}`]));
    spec = { ...spec, size: { ...spec.size, memory_mb: 320 } };
    expect((await driver.observe(spec, ctx())).differs).toBe('settings');
    await settle(driver, spec);
    expect(await app(['GET', 'a'])).toEqual(['1']);
  });

  test('stopped and started, killed and started: acknowledged writes are there', async () => {
    await settle(driver, { ...spec, running: false });
    expect((await driver.observe({ ...spec, running: false }, ctx())).state).toBe('stopped');
    await settle(driver, spec);
    expect(await app(['SET', 'k', 'v'])).toEqual(['OK']);
    await new Promise((done) => setTimeout(done, 1_100)); // everysec
    const server = processesWith(`${spec.id}/conf/redis.conf`).filter(({ args }) => args.startsWith(found[0]!.path));
    expect(server).toHaveLength(1);
    process.kill(server[0]!.pid, 'SIGKILL');
    await until(async () => (await driver.observe(spec, ctx())).state === 'failed');
    expect((await driver.observe(spec, ctx())).reason).toMatch(/SIGKILL/);
    await settle(driver, spec);
    expect(await app(['GET', 'k'], ['GET', 'a'])).toEqual(['v', '1']);
  });

  test('of commands, users and settings of the platform a tenant sees nothing', async () => {
    const commands = [
      ...[['MONITOR'], ['CLIENT', 'KILL', 'TYPE', 'normal'], ['ACL', 'LOG'], ['ACL', 'LIST']],
      ...[
        ['ACL', 'USERS'],
        ['ACL', 'GETUSER', 'default'],
        ['CONFIG', 'GET', '*'],
      ],
      ...[
        ['REPLICAOF', 'NO', 'ONE'],
        ['PSYNC', '?', '-1'],
      ],
      ...[['SHUTDOWN', 'NOSAVE'], ['SAVE'], ['CLIENT', 'PAUSE', '1000']],
    ];
    expect(await app(...commands)).toEqual(commands.map(() => expect.stringMatching(/^NOPERM/)));
    const [all, everything] = await app(['INFO', 'all'], ['INFO', 'everything']);
    for (const text of [all, everything]) {
      expect(text).toContain('redis_version');
      for (const word of ['platform_', spec.admin_password, spec.users[0]!.password]) expect(text).not.toContain(word);
    }
  });

  test('metrics', async () => {
    const metrics = await driver.metrics(spec, ctx());
    expect(metrics.connections).toBe(0);
    expect(metrics.memory_bytes).toBeGreaterThan(1 << 20);
    expect(metrics.transactions).toBeGreaterThan(0);
  });
});

function has(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}
