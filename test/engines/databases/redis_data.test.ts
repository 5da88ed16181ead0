/** @tier heavy @quarter 3 @covers drivers/database/redis */
// Backups, restores, replicas and storage of real servers; and what is killed in the middle.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';
import type { EngineFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import { serverDirectoryOf } from '../../../drivers/hosted_server/server_directory';
import {
  ctx,
  newCertificate,
  openServerTrial,
  settle,
  specOf,
  removeServers,
} from '../../support/databases/database_server';
import { processesWith, spawnProgram } from '../../support/processes/processes';
import { until, type Trial } from '../../support/builds/runtime';
import { redisServers, type Servers } from '../../support/databases/hosted_servers';
import { connectTenant } from '../../support/databases/redis_client';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const there = spawnSync('redis-server', ['--version']).status === 0 || process.env.CI !== undefined;
const describeServer = there ? describe : describe.skip;

jest.setTimeout(60_000);

describeServer(there ? 'redis' : 'redis (redis-server is not installed)', () => {
  let trial: Trial;
  let driver: Servers;
  let found: EngineFound[];
  let spec: DatabaseServer;
  const directory = () => `${trial.root}/databases`;
  const series = () => found[0]!.series;
  beforeAll(async () => {
    trial = await openServerTrial();
    found = (await hostFacts()).redis;
    const { runtime, disks } = trial;
    driver = redisServers({ runtime, disks, directory: directory(), found, engine: 'redis' });
    spec = specOf('redis', series(), 18011, { tenant: 12 });
    await settle(driver, spec);
  });
  afterAll(async () => {
    await removeServers(driver);
    expect(processesWith(directory())).toEqual([]);
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  async function app(of: DatabaseServer, ...commands: string[][]): Promise<unknown[]> {
    const client = await connectTenant(of, of.users[0]!.password, 'app');
    const answers: unknown[] = [];
    for (const words of commands) answers.push(await client.sendCommand(words).catch((error: Error) => error.message));
    client.destroy();
    return answers;
  }

  test('SLOWLOG shows the commands of the tenant, and none of the platform', async () => {
    const platform = createClient({
      ...{ username: `platform_${spec.id}`, password: spec.admin_password, disableClientInfo: true, RESP: 2 },
      socket: {
        path: path.join(serverDirectoryOf({ directory: directory() }, spec.id).data, 'admin.sock'),
        tls: false,
        reconnectStrategy: false,
      },
    });
    await platform.connect();
    await app(spec, ['EVAL', 'for i = 1, 30000000 do end return 1', '0']);
    await platform.sendCommand(['CONFIG', 'SET', 'slowlog-log-slower-than', '0']);
    platform.destroy();
    await settle(driver, spec);
    const [entries] = (await app(spec, ['SLOWLOG', 'GET', '-1'])) as [[number, number, number, string[]][]];
    const logged = entries.map(([, , , [name]]) => name);
    expect(logged).toContain('EVAL');
    // The change above, and the log-in behind it, from before it can be switched off again.
    expect(logged.filter((name) => name !== 'EVAL')).toEqual(['AUTH', 'CONFIG']);
  });

  test('a backup, rows lost, the backup restored: the rows are back, later ones are not', async () => {
    await app(spec, ['MSET', 'one', '1', 'two', '2']);
    const made = await driver.backup(spec, 'bkp_one', ctx());
    expect(made).toMatchObject({ manifest: { engine: 'redis', server_id: spec.id, series: series() } });
    expect(made.size_bytes).toBeGreaterThan(80);
    expect(await driver.backup(spec, 'bkp_one', ctx())).toEqual(made);
    await app(spec, ['FLUSHALL'], ['SET', 'three', '3']);
    await driver.restore(spec, { id: 'restore_1', server_id: spec.id, backup_id: 'bkp_one', until: null }, ctx());
    expect((await settle(driver, spec)).state).toBe('running');
    expect(await app(spec, ['MGET', 'one', 'two', 'three'])).toEqual([['1', '2', null]]);
    await app(spec, ['SET', 'four', '4']);
    // The same restore again finds that it is done.
    await driver.restore(spec, { id: 'restore_1', server_id: spec.id, backup_id: 'bkp_one', until: null }, ctx());
    expect(await app(spec, ['MGET', 'one', 'four'])).toEqual([['1', '4']]);
    expect(readdirSync(`${directory()}/${spec.id}`).filter((name) => /^(data\.|\.next)/.test(name))).toEqual([]);
  });

  test('what was restored outlives a restart', async () => {
    await sleep(1_100);
    await settle(driver, { ...spec, running: false });
    await settle(driver, spec);
    expect(await app(spec, ['MGET', 'one', 'four'])).toEqual([['1', '4']]);
  });

  test('a restore into a copy leaves the first server alone', async () => {
    const copy = specOf('redis', series(), 18012, {
      id: 'db_copy_redis',
      tenant: 13,
      users: [{ username: 'app', password: 'of-the-copy', access: 'admin' }],
    });
    await settle(driver, copy);
    await driver.restore(copy, { id: 'restore_2', server_id: spec.id, backup_id: 'bkp_one', until: null }, ctx());
    await settle(driver, copy);
    expect(await app(copy, ['MGET', 'one', 'four'])).toEqual([['1', null]]);
    expect(await app(spec, ['MGET', 'one', 'four'])).toEqual([['1', '4']]);
    await driver.remove(copy.id, ctx());
    expect(await driver.list(ctx())).toEqual([spec.id]);
  });

  test('a backup that cannot be read: the data from before are back', async () => {
    await driver.backup(spec, 'bkp_bad', ctx());
    writeFileSync(`${directory()}/backups/${spec.id}/bkp_bad/dump.rdb`, 'REDIS0010 this is no snapshot');
    await expect(
      driver.restore(spec, { id: 'restore_3', server_id: spec.id, backup_id: 'bkp_bad', until: null }, ctx()),
    ).rejects.toThrow(/did not start with the new data/);
    expect(await app(spec, ['MGET', 'one', 'four'])).toEqual([['1', '4']]);
    await driver.removeBackup(spec.id, 'bkp_bad', ctx());
    await expect(
      driver.restore(spec, { id: 'restore_4', server_id: spec.id, backup_id: 'bkp_bad', until: null }, ctx()),
    ).rejects.toMatchObject({ reason: 'conflict' });
    await expect(
      driver.restore(
        spec,
        { id: 'restore_5', server_id: spec.id, backup_id: null, until: new Date().toISOString() },
        ctx(),
      ),
    ).rejects.toMatchObject({ reason: 'unsupported' });
  });

  test('a backup can be downloaded, and outlives its server', async () => {
    const { stream, file_name } = await driver.openBackup(spec.id, 'bkp_one');
    expect(file_name).toBe(`${spec.id}-bkp_one.rdb`);
    const [first] = (await once(stream, 'data')) as [Buffer];
    expect(first.subarray(0, 5).toString()).toBe('REDIS');
  });

  test('a replica follows over TLS, takes reads only, and becomes a server of its own', async () => {
    const replica = specOf('redis', series(), 18013, {
      id: 'rep_redis',
      tenant: 14,
      tls: spec.tls,
      users: spec.users,
      replica_of: { server_id: spec.id, port: spec.port, password: spec.admin_password },
    });
    await settle(driver, replica);
    await until(async () => (await app(replica, ['GET', 'four']))[0] === '4');
    expect(await app(replica, ['SET', 'x', '1'])).toEqual([expect.stringMatching(/^READONLY/)]);
    await until(async () => (await driver.observe(replica, ctx())).replication_lag_seconds === 0);
    await app(spec, ['SET', 'five', '5']);
    await until(async () => (await app(replica, ['GET', 'five']))[0] === '5', 3_000);
    // A restart of the replica goes on.
    await settle(driver, { ...replica, running: false });
    await settle(driver, replica);
    await until(async () => (await driver.observe(replica, ctx())).replication_lag_seconds === 0);
    // A new certificate of the primary is known to the replica when it next connects.
    spec = { ...spec, tls: newCertificate() };
    await settle(driver, spec);
    expect((await driver.observe(replica, ctx())).differs).toBe('certificate');
    await settle(driver, replica);
    await settle(driver, { ...spec, running: false });
    await settle(driver, spec);
    await app(spec, ['SET', 'after', '1']);
    await until(async () => (await app(replica, ['GET', 'after']))[0] === '1');
    await driver.promote(replica, ctx());
    const promoted = { ...replica, replica_of: null };
    expect(await settle(driver, promoted)).toMatchObject({ state: 'running', replication_lag_seconds: null });
    await app(promoted, ['SET', 'five', 'mine']);
    expect(await app(spec, ['GET', 'five'])).toEqual(['5']);
    await app(spec, ['SET', 'five', '6']);
    expect(await app(promoted, ['GET', 'five'])).toEqual(['mine']);
    await driver.remove(promoted.id, ctx());
  });

  test('over its storage: reads and deletions go on, writes do not; with room again they do', async () => {
    const small = redisServers({
      runtime: trial.runtime,
      directory: directory(),
      found,
      engine: 'redis',
      gigabyteBytes: 1 << 20,
    });
    const other = specOf('redis', series(), 18014, { id: 'db_small', tenant: 15, storage_gb: 4 });
    await settle(small, other);
    await app(other, ...Array.from({ length: 6 }, (_, i) => ['SET', `k${i}`, randomBytes(3 << 18).toString('base64')]));
    await until(async () => ((await small.observe(other, ctx())).storage_used_bytes ?? 0) > 4 << 20);
    await settle(small, other);
    // Its file is written anew, which makes it no smaller.
    await until(async () => String(await app(other, ['INFO', 'persistence'])).includes('aof_rewrite_in_progress:0'));
    expect((await settle(small, other)).full).toBe(true);
    expect(await app(other, ['SET', 'more', '1'], ['CONFIG', 'SET', 'maxmemory', '0'], ['STRLEN', 'k1'])).toEqual([
      expect.stringMatching(/^OOM/),
      expect.stringMatching(/^NOPERM/),
      1 << 20,
    ]);
    // Many clients read at once, and none is disconnected.
    const reads = Array.from({ length: 12 }, () => app(other, ['GET', 'k2'], ['STRLEN', 'k3']));
    for (const [, length] of await Promise.all(reads)) expect(length).toBe(1 << 20);
    expect(await app(other, ['DEL', 'k0', 'k1', 'k2', 'k3', 'k4'])).toEqual([5]);
    await until(async () => !(await settle(small, other)).full);
    expect(await app(other, ['SET', 'more', '1'])).toEqual(['OK']);
    await small.remove(other.id, ctx());
  });

  test('an upgrade restarts with the newer server; one that cannot start leaves all as it was', async () => {
    const newer: EngineFound = { ...found[0]!, series: '99.0' };
    const broken: EngineFound = { ...found[0]!, series: '99.1', path: '/bin/false' };
    const both = redisServers({
      runtime: trial.runtime,
      directory: directory(),
      found: [found[0]!, newer, broken],
      engine: 'redis',
    });
    expect(await both.versions()).toEqual(['99.1', '99.0', series()]);
    await both.upgrade({ ...spec, version: '99.0' }, spec.version, ctx());
    expect(await app(spec, ['GET', 'four'])).toEqual(['4']);
    await expect(both.upgrade({ ...spec, version: '99.1' }, '99.0', ctx())).rejects.toThrow(
      /did not start with the new data/,
    );
    expect(await app(spec, ['GET', 'four'])).toEqual(['4']);
    await expect(driver.upgrade({ ...spec, version: '99.2' }, spec.version, ctx())).rejects.toMatchObject({
      reason: 'unsupported',
    });
    await settle(driver, spec);
  });

  test('something else of that name is left alone', async () => {
    const stranger = { ...spec, id: 'db_stranger', port: 18015 };
    spawnSync('mkdir', ['-p', `${directory()}/db_stranger/data`]);
    expect((await driver.observe(stranger, ctx())).state).toBe('foreign');
    await expect(driver.ensure(stranger, ctx())).rejects.toMatchObject({ reason: 'conflict' });
    await driver.remove('db_stranger', ctx());
    expect(existsSync(`${directory()}/db_stranger/data`)).toBe(true);
  });

  test('a control plane killed at any moment: creation, restore and removal converge', async () => {
    const id = 'db_killed';
    const victim = specOf('redis', series(), 18016, { id, tenant: 16 });
    for (const delay of [0, 100, 250, 600]) {
      const child = spawnProgram(killedProgram, [
        JSON.stringify({
          options: trial.options,
          found,
          spec: victim,
          directory: directory(),
          backupOf: spec.id,
          restoreId: `killed_${delay}`,
        }),
      ]);
      await once(child.stdout!, 'data');
      await sleep(delay);
      child.kill('SIGKILL');
      await once(child, 'exit');
      await settle(driver, victim);
      expect(await app(victim, ['SET', 'lives', 'yes'])).toEqual(['OK']);
      await driver.restore(
        victim,
        { id: `again_${delay}`, server_id: spec.id, backup_id: 'bkp_one', until: null },
        ctx(),
      );
      expect(await app(victim, ['MGET', 'one', 'lives'])).toEqual([['1', null]]);
      if (delay < 200) await driver.remove(id, ctx());
    }
    await driver.remove(id, ctx());
    expect((await driver.list(ctx())).includes(id)).toBe(false);
    expect(readdirSync(directory()).filter((name) => name.includes('killed'))).toEqual([]);
    expect(processesWith(`${id}/conf`)).toEqual([]);
  });
});

// Makes the server and restores into it, without end.
const killedProgram = `
  const { openLocalRuntime } = require('./drivers/runtime/local.ts');
  const { redisServers } = require('./test/support/databases/hosted_servers.ts');
  const { driverContext } = require('./core/driver.ts');
  const { options, found, spec, directory, backupOf, restoreId } = JSON.parse(process.argv[1]);
  (async () => {
    const runtime = await openLocalRuntime(options);
    const driver = redisServers({ runtime, directory, found, engine: 'redis' });
    console.log('ready');
    while (true) {
      await driver.ensure(spec, driverContext(20000));
      const source = { id: restoreId + Math.random(), server_id: backupOf, backup_id: 'bkp_one', until: null };
      await driver.restore(spec, source, driverContext(20000));
    }
  })().catch((error) => { console.error(error); process.exit(1); });
`;
