/** @tier heavy @quarter 4 @covers drivers/database/mariadb */
// What a real server holds: backed up, restored, over its storage; and what is killed in the middle.
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineFound } from '../../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../../../drivers/database';
import { ctx, settle, specOf } from '../../../support/databases/database_server';
import { mariadbServers, type Servers } from '../../../support/databases/hosted_servers';
import {
  answersFor,
  describeMariadb,
  openMariadbTrial,
  type MariadbTrial,
} from '../../../support/databases/mariadb_trial';
import { spawnProgram } from '../../../support/processes/processes';
import { until, type Trial } from '../../../support/builds/runtime';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(60_000);

describeMariadb('data of mariadb', () => {
  let mariadb: MariadbTrial;
  let trial: Trial;
  let driver: Servers;
  let found: EngineFound[];
  let spec: DatabaseServer;
  const directory = () => mariadb.directory;
  const app = (...statements: string[]) => answersFor(spec, 'app', spec.users[0]!.password, statements);
  beforeAll(async () => {
    mariadb = await openMariadbTrial();
    ({ trial, driver, found } = mariadb);
    spec = specOf('mariadb', found[0]!.series, 18023, { tenant: 23, database_name: 'my_app' });
    await settle(driver, spec);
    const rows = [`INSERT INTO t VALUES (1, 'one'), (2, 'zwei ü 😀')`];
    expect(await app('CREATE TABLE t (id INT PRIMARY KEY, word TEXT)', ...rows)).toEqual(['ok', 'ok']);
  });
  afterAll(() => mariadb.close());

  test('a restored backup brings lost rows back; the same restore again finds that it is done', async () => {
    await app('CREATE PROCEDURE two() SELECT 2 AS two', 'CREATE VIEW v AS SELECT id FROM t');
    const made = await driver.backup(spec, 'bkp_one', ctx());
    expect(made.manifest).toMatchObject({ engine: 'mariadb', server_id: spec.id, series: spec.version });
    expect(await driver.backup(spec, 'bkp_one', ctx())).toEqual(made);
    await app('DROP PROCEDURE two', 'DROP TABLE t', 'CREATE TABLE later (id INT)');
    const from = { id: 'restore_1', server_id: spec.id, backup_id: 'bkp_one', until: null };
    await driver.restore(spec, from, ctx());
    await settle(driver, spec);
    expect(await app('SELECT * FROM t WHERE id = 2', 'SELECT COUNT(*) AS n FROM v', 'SELECT * FROM later')).toEqual([
      [{ id: 2, word: 'zwei ü 😀' }],
      [{ n: 2 }],
      'ER_NO_SUCH_TABLE',
    ]);
    expect(await app('CALL two()')).toEqual([[[{ two: 2 }], expect.anything()]]);
    await app(`INSERT INTO t VALUES (4, 'four')`);
    await driver.restore(spec, from, ctx());
    expect(await app('SELECT COUNT(*) AS n FROM t')).toEqual([[{ n: 3 }]]);
  });

  test('a value of 64 MB in the smallest package comes back from a backup', async () => {
    // Most of its bytes are written as two.
    const value = `REPEAT(UNHEX('00275C1A0D0A60'), 9000000)`;
    const digest = 'SELECT LENGTH(a) AS bytes, MD5(a) AS digest FROM large';
    expect(await app('CREATE TABLE large (a LONGBLOB)', `INSERT INTO large VALUES (${value})`)).toEqual(['ok', 'ok']);
    const before = await app(digest);
    expect(before).toEqual([[{ bytes: 63_000_000, digest: expect.anything() }]]);
    await driver.backup(spec, 'bkp_large', ctx());
    await driver.restore(spec, { id: 'restore_l', server_id: spec.id, backup_id: 'bkp_large', until: null }, ctx());
    await settle(driver, spec);
    expect(await app(digest)).toEqual(before);
    await app('DROP TABLE large');
  });

  test('a backup that cannot be read: the data from before are back', async () => {
    await driver.backup(spec, 'bkp_bad', ctx());
    writeFileSync(`${directory()}/backups/${spec.id}/bkp_bad/dump.sql.gz`, 'this is no dump');
    await expect(
      driver.restore(spec, { id: 'restore_2', server_id: spec.id, backup_id: 'bkp_bad', until: null }, ctx()),
    ).rejects.toThrow(/did not start with the new data/);
    await settle(driver, spec);
    expect(await app('SELECT COUNT(*) AS n FROM t')).toEqual([[{ n: 3 }]]);
    const { stream, file_name } = await driver.openBackup(spec.id, 'bkp_one');
    expect(file_name).toBe(`${spec.id}-bkp_one.gz`);
    expect(((await once(stream, 'data')) as [Buffer])[0].subarray(0, 2).toString('hex')).toBe('1f8b');
  });

  test('over its storage: reads and deletions go on, writes do not; with room again they do', async () => {
    const used = (await driver.observe(spec, ctx())).storage_used_bytes!;
    const small = mariadbServers({
      runtime: trial.runtime,
      directory: directory(),
      found,
      gigabyteBytes: used + (4 << 20),
    });
    const word = 'x'.repeat(1 << 20);
    await app(
      'CREATE TABLE big (id INT, word LONGTEXT)',
      ...Array.from({ length: 8 }, (_, i) => `INSERT INTO big VALUES (${i}, '${word}')`),
    );
    await until(async () => (await small.observe(spec, ctx())).differs === 'storage limit');
    expect((await settle(small, spec)).full).toBe(true);
    expect(
      await app(
        `INSERT INTO t VALUES (5, 'five')`,
        'CREATE TABLE more (id INT)',
        'UPDATE t SET word = 1',
        'SELECT COUNT(*) AS n FROM t',
        'DELETE FROM t WHERE id = 4',
        'TRUNCATE big',
        'DROP TABLE big',
      ),
    ).toEqual([...Array(3).fill('ER_TABLEACCESS_DENIED_ERROR'), [{ n: 3 }], 'ok', 'ok', 'ok']);
    const roomy = mariadbServers({ runtime: trial.runtime, directory: directory(), found });
    expect((await settle(roomy, spec)).full).toBe(false);
    expect(await app(`INSERT INTO t VALUES (4, 'four')`)).toEqual(['ok']);
  });

  test('a control plane killed while it makes and restores: converges', async () => {
    const victim = specOf('mariadb', spec.version, 18022, {
      id: 'db_killed_mariadb',
      tenant: 22,
      database_name: 'my_app',
    });
    for (const delay of [300, 2_500]) {
      const child = spawnProgram(killedProgram, [
        JSON.stringify({ options: trial.options, found, spec: victim, directory: directory(), backupOf: spec.id }),
      ]);
      await once(child.stdout!, 'data');
      await sleep(delay);
      child.kill('SIGKILL');
      await once(child, 'exit');
      await settle(driver, victim);
    }
    await driver.restore(victim, { id: 'restore_9', server_id: spec.id, backup_id: 'bkp_one', until: null }, ctx());
    await settle(driver, victim);
    expect(await answersFor(victim, 'app', 'first-word', ['SELECT COUNT(*) AS n FROM t'])).toEqual([[{ n: 2 }]]);
    await driver.remove(victim.id, ctx());
    expect(readdirSync(directory()).filter((name) => name.includes('killed'))).toEqual([]);
  });
});

// Makes the server and restores into it, without end.
const killedProgram = `
  const { openLocalRuntime } = require('./drivers/runtime/local.ts');
  const { mariadbServers } = require('./test/support/databases/hosted_servers.ts');
  const { driverContext } = require('./core/driver.ts');
  const { options, found, spec, directory, backupOf } = JSON.parse(process.argv[1]);
  (async () => {
    const runtime = await openLocalRuntime(options);
    const driver = mariadbServers({ runtime, directory, found });
    console.log('ready');
    while (true) {
      await driver.ensure(spec, driverContext(20000));
      const source = { id: 'killed' + Math.random(), server_id: backupOf, backup_id: 'bkp_one', until: null };
      await driver.restore(spec, source, driverContext(20000));
    }
  })().catch((error) => { console.error(error); process.exit(1); });
`;
