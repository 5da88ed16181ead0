/** @tier heavy @quarter 3 @covers drivers/database/postgresql */
// The control plane and the server, killed in the middle of what they do.
import { spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseServer, RestoreFrom } from '../../../../drivers/database';
import { postgresqlContext, systemIdentifierOf, type Cluster } from '../../../../drivers/database/postgresql/cluster';
import { configure } from '../../../../drivers/database/postgresql/configuration';
import { clusterOf } from '../../../../drivers/database/postgresql/ensure';
import { startPostgres, stopPostgres } from '../../../../drivers/database/postgresql/server';
import { ownerOf, serverDirectoryOf } from '../../../../drivers/hosted_server/server_directory';
import { ctx } from '../../../support/databases/database_server';
import {
  notesOf,
  openEngineTrial,
  postgresqlSpec,
  restoreFrom,
  rows,
  serverTime,
  untilDone,
  type EngineTrial,
} from '../../../support/engines';
import { kill, processesWith, spawnProgram } from '../../../support/processes/processes';
import { until } from '../../../support/builds/runtime';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const version = '15';
const isThere = existsSync(`/usr/lib/postgresql/${version}/bin/pg_basebackup`);

(isThere || process.env.CI ? describe : describe.skip)(`PostgreSQL ${version}, killed in the middle`, () => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  let port: number;
  const ensure = (wanted: DatabaseServer) => untilDone((context) => one.driver.ensure(wanted, context));
  const restore = (wanted: DatabaseServer, id: string, more: Partial<RestoreFrom>) =>
    untilDone((context) => one.driver.restore(wanted, restoreFrom(spec, id, more), context));

  beforeAll(async () => {
    one = await openEngineTrial();
    port = one.firstPort;
    spec = postgresqlSpec(version, port, { archive: true, replicas: [] });
    await ensure(spec);
    await rows(spec, "create table notes (note text primary key); insert into notes values ('a')");
    await untilDone((context) => one.driver.backup(spec, 'bkp_base', context));
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  const program = (call: string) => `
    const { openLocalRuntime } = require('./drivers/runtime/local');
    const { postgresqlServers } = require('./test/support/databases/hosted_servers');
    const { hostFacts } = require('./drivers/host');
    const { driverContext } = require('./core/driver');
    const [runtimeOptions, directory, spec] = process.argv.slice(1).map((one) => JSON.parse(one));
    void (async () => {
      const runtime = await openLocalRuntime(runtimeOptions);
      const driver = postgresqlServers({ runtime, directory, found: (await hostFacts()).postgresql });
      console.log('begun');
      await driver.${call};
      console.log('done');
      process.exit(0);
    })().catch((error) => { console.error(error); process.exit(1); });`;
  const begin = (call: string, of: DatabaseServer): ChildProcess =>
    spawnProgram(
      program(call),
      [one.trial.options, one.directory, of].map((each) => JSON.stringify(each)),
    );
  const killedAfter = async (call: string, of: DatabaseServer, ms: number) => {
    const child = begin(call, of);
    const isBegun = new Promise((resolve) => child.stdout!.once('data', resolve));
    await isBegun;
    await sleep(ms);
    await kill(child);
  };

  test('in the middle of making a server', async () => {
    const fresh = { ...postgresqlSpec(version, port + 5), id: 'db_fresh', tenant: 16 };
    for (const ms of [50, 300, 700, 1_000]) await killedAfter('ensure(spec, driverContext(30000))', fresh, ms);
    await ensure(fresh);
    expect(await rows(fresh, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(readdirSync(path.join(one.directory, fresh.id)).filter((name) => name.startsWith('.next'))).toEqual([]);
    await one.driver.remove(fresh.id, ctx());
    await until(() => processesWith(fresh.id).length === 0);
  });

  test('in the middle of a backup', async () => {
    for (const ms of [100, 400]) await killedAfter("backup(spec, 'bkp_killed', driverContext(30000))", spec, ms);
    await untilDone((context) => one.driver.backup(spec, 'bkp_killed', context));
    expect(
      readdirSync(path.join(one.directory, 'backups', spec.id)).filter((name) => name.startsWith('.draft')),
    ).toEqual([]);
    await one.driver.removeBackup(spec.id, 'bkp_killed', ctx());
    await one.driver.removeBackup(spec.id, 'bkp_killed', ctx());
  });

  test('in the middle of a restore, with the server killed as well', async () => {
    await rows(spec, "delete from notes; insert into notes values ('kept')");
    const until = await serverTime(spec);
    await rows(spec, 'delete from notes');
    const call =
      `restore(spec, { id: 'rst_killed', server_id: spec.id, backup_id: null, until: '${until}' }, ` +
      'driverContext(30000))';
    for (const ms of [200, 700, 1_300, 1_900]) {
      await killedAfter(call, spec, ms);
      for (const { pid } of processesWith(serverDirectoryOf(one, spec.id).data)) spawnSync('kill', ['-9', String(pid)]);
    }
    await restore(spec, 'rst_killed', { until });
    expect(await notesOf(spec)).toEqual(['kept']);
    expect(readdirSync(path.join(one.directory, spec.id)).filter((name) => /aside|next|before/.test(name))).toEqual([]);
  });

  test('while it verifies data, when the server takes no clients yet: that one is not up to date', async () => {
    const engine = postgresqlContext({ ...one, runtime: one.trial.runtime });
    await startPrivately(await clusterOf(engine, spec, ctx()));
    await until(async () => (await one.driver.observe(spec, ctx())).state === 'running');
    expect((await one.driver.observe(spec, ctx())).differs).toBe('it takes no clients yet');
    await ensure(spec);
    expect((await one.driver.observe(spec, ctx())).differs).toBeNull();
    expect(await rows(spec, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('a restore that nobody goes on with leaves what was there', async () => {
    const until = await serverTime(spec);
    await rows(spec, "insert into notes values ('later')");
    await killedAfter(
      `restore(spec, { id: 'rst_left', server_id: spec.id, backup_id: null, until: '${until}' }, driverContext(30000))`,
      spec,
      900,
    );
    await ensure(spec);
    expect(['later', undefined]).toContain((await notesOf(spec)).find((note) => note === 'later'));
    expect(await notesOf(spec)).toContain('kept');
  });

  test('in the middle of an upgrade', async () => {
    const old = { ...postgresqlSpec(version, port + 6), id: 'db_old', tenant: 17 };
    await ensure(old);
    // It does not load as it is: a second way follows the first one.
    await rows(
      old,
      `create table notes (note text, at timestamptz, check (at > now()));
        insert into notes values ('kept', now() + interval '1 second')`,
    );
    for (const ms of [300, 1_500, 2_500, 4_000, 5_500])
      await killedAfter(`upgrade({ ...spec, version: '18' }, '${version}', driverContext(30000))`, old, ms);
    const newer = { ...old, version: '18' };
    await untilDone((context) => one.driver.upgrade(newer, version, context));
    expect(await notesOf(newer)).toEqual(['kept']);
    expect(await one.driver.observe(newer, ctx())).toMatchObject({ state: 'running', differs: null });
    await one.driver.remove(old.id, ctx());
  });
});

async function startPrivately(cluster: Cluster): Promise<void> {
  const { data } = cluster.serverDirectory;
  const [identifier, owner] = [await systemIdentifierOf(data), await ownerOf(cluster.serverDirectory)];
  await stopPostgres(cluster, 'server', ctx());
  await configure(cluster, data, identifier, owner, { kind: 'private' }, ctx());
  await startPostgres(cluster, 'server', data, ctx());
}
