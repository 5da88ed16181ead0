/** @tier heavy @quarter 1 @covers drivers/database/mariadb */
// What people keep in a database that few think of: it is in a backup as it was, or the backup says what is not.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createConnection } from 'mysql2/promise';
import { driverContext } from '../../../../core/driver';
import type { DatabaseServer, ServerUser } from '../../../../drivers/database';
import { settle, specOf } from '../../../support/databases/database_server';
import { oddObjects } from '../../../support/databases/mariadb_oddities';
import {
  answersFor,
  describeMariadb,
  openMariadbTrial,
  type MariadbTrial,
} from '../../../support/databases/mariadb_trial';
import {
  contentOf,
  openStockMariadb,
  reachedAsAdmin,
  runClient,
  type Content,
} from '../../../support/databases/stock_mariadb';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(600_000);

// A thousand tables take minutes where six others run beside.
const ctx = () => driverContext(500_000);

describeMariadb('oddities of mariadb', () => {
  let mariadb: MariadbTrial;
  let spec: DatabaseServer;
  let content: Content;
  const userOf = (username: string): ServerUser => ({ username, password: `word of ${username}`, access: 'admin' });
  const as = (server: DatabaseServer, ...statements: string[]): Promise<unknown[]> =>
    answersFor(server, 'app', userOf('app').password, statements);
  const backupFile = (id: string): Buffer =>
    gunzipSync(readFileSync(`${mariadb.directory}/backups/${spec.id}/${id}/dump.sql.gz`));

  beforeAll(async () => {
    mariadb = await openMariadbTrial();
    const size = { memory_mb: 2048, cpus: 2, max_connections: 20 };
    const users = [userOf('app'), userOf('reports')];
    const version = mariadb.found[0]!.series;
    spec = specOf('mariadb', version, 18024, { tenant: 24, database_name: 'my_app', size, users });
    await settle(mariadb.driver, spec);
    for (const { by, charset, statements } of oddObjects) await make(by, charset, statements);
    content = contentOf(reachedAsAdmin(mariadb.directory, spec));
  });
  afterAll(() => mariadb.close());

  async function make(by: string, charset: string | undefined, statements: string[]): Promise<void> {
    const { port, database_name } = spec;
    const login = { user: by, password: userOf(by).password, database: database_name! };
    const connection = await createConnection({ host: '127.0.0.1', port, charset, ...login });
    for (const statement of statements)
      await connection.query(statement).catch((error: Error) => {
        throw new Error(`${statement}: ${error.message}`);
      });
    await connection.end();
  }

  test('a restore in place brings back what was there', async () => {
    const { manifest } = await mariadb.driver.backup(spec, 'bkp_odd', ctx());
    expect(manifest.missing).toBeUndefined();
    await mariadb.driver.restore(
      spec,
      { id: 'restore_odd', server_id: spec.id, backup_id: 'bkp_odd', until: null },
      ctx(),
    );
    await settle(mariadb.driver, spec);
    expect(contentOf(reachedAsAdmin(mariadb.directory, spec))).toEqual(content);
    expect(await as(spec, 'SELECT COUNT(*) AS n FROM history FOR SYSTEM_TIME ALL')).toEqual([[{ n: 3 }]]);
  });

  test('a copy has all of it, and what belongs to a user whom it lacks works', async () => {
    const copy = { ...spec, id: 'db_odd_copy', port: 18025, tenant: 25, users: [userOf('app')] };
    const from = { id: 'copy', server_id: spec.id, backup_id: 'bkp_odd', until: null };
    await mariadb.driver.restore(copy, from, ctx());
    await settle(mariadb.driver, copy);
    expect(contentOf(reachedAsAdmin(mariadb.directory, copy))).toEqual(content);
    expect(await as(copy, 'SELECT * FROM of_reports', 'CALL `count``s`()')).toEqual([
      [{ n: 3 }],
      [[{ n: 3 }], expect.anything()],
    ]);
    expect(await answersFor(copy, 'reports', '', ['SELECT 1'])).toEqual([expect.stringMatching(/^ER_/)]);
    await mariadb.driver.remove(copy.id, ctx());
  });

  test('the stock client loads a downloaded backup into a stock server', async () => {
    const stock = await openStockMariadb('my_app');
    try {
      const zones = execFileSync('mariadb-tzinfo-to-sql', ['/usr/share/zoneinfo'], {
        maxBuffer: 64 << 20,
        stdio: 'pipe',
      });
      runClient('mariadb', { ...stock, database: 'mysql' }, [], zones);
      for (const name of ['app', 'reports'])
        runClient('mariadb', stock, [
          '-e',
          `CREATE USER ${name}@'%' ACCOUNT LOCK; GRANT ALL ON my_app.* TO ${name}@'%'`,
        ]);
      runClient('mariadb', stock, ['--comments', '--max-allowed-packet=1G'], backupFile('bkp_odd'));
      expect(contentOf(stock)).toEqual(content);
    } finally {
      stock.close();
    }
  });

  test('a dump as it was made before, without what the platform adds, is loaded too', async () => {
    const file = `${mariadb.directory}/backups/${spec.id}/bkp_odd/dump.sql.gz`;
    const kept = readFileSync(file);
    const plain = backupFile('bkp_odd')
      .toString('latin1')
      .replace(/^(\\C|\/\*M!100200|ALTER DATABASE) .*\n/gm, '');
    writeFileSync(file, gzipSync(Buffer.from(plain, 'latin1')));
    const from = { id: 'restore_plain', server_id: spec.id, backup_id: 'bkp_odd', until: null };
    await mariadb.driver.restore(spec, from, ctx());
    writeFileSync(file, kept);
    await settle(mariadb.driver, spec);
    expect(contentOf(reachedAsAdmin(mariadb.directory, spec))).toMatchObject({
      rows: content.rows,
      checksums: content.checksums,
    });
    expect(await as(spec, 'SELECT * FROM of_reports')).toEqual([[{ n: 3 }]]);
  });

  test('a user that is deleted leaves what it made, and nobody can log in as it', async () => {
    spec = { ...spec, users: [userOf('app')] };
    await settle(mariadb.driver, spec);
    expect(await as(spec, 'SELECT * FROM of_reports')).toEqual([[{ n: 3 }]]);
    const { password } = userOf('reports');
    expect(await answersFor(spec, 'reports', password, ['SELECT 1'])).toEqual([expect.stringMatching(/^ER_/)]);
    expect((await mariadb.driver.observe(spec, ctx())).differs).toBeNull();
  });

  test('a view of what is gone is left out of a backup, and named', async () => {
    await as(
      spec,
      'CREATE TABLE gone (a INT)',
      'CREATE VIEW `on ``gone` AS SELECT a FROM gone',
      'CREATE VIEW on_that AS SELECT a FROM `on ``gone`',
      'DROP TABLE gone',
      'CREATE VIEW round AS SELECT 1 AS a',
      'CREATE VIEW and_round AS SELECT a FROM round',
      'CREATE OR REPLACE VIEW round AS SELECT a FROM and_round',
      'CREATE TABLE gone (a INT) ENGINE = MyISAM',
      'CREATE TABLE over_gone (a INT) ENGINE = MERGE UNION = (gone)',
      'DROP TABLE gone',
    );
    const { manifest } = await mariadb.driver.backup(spec, 'bkp_gone', ctx());
    expect(manifest.missing).toBe(
      'Left out: the views `on `gone`, `on_that`, `over_gone`, which refer to something that does not exist or may ' +
        'not be read.',
    );
    expect(backupFile('bkp_gone').toString('latin1')).not.toMatch(/on_that|on ``gone|over_gone/);
    const from = { id: 'restore_gone', server_id: spec.id, backup_id: 'bkp_gone', until: null };
    await mariadb.driver.restore(spec, from, ctx());
    await settle(mariadb.driver, spec);
    expect(await as(spec, 'SELECT * FROM of_reports', 'SELECT * FROM on_that')).toEqual([
      [{ n: 3 }],
      'ER_NO_SUCH_TABLE',
    ]);
  });

  test('history by transactions, which no dump holds: the backup says so', async () => {
    await as(
      spec,
      `CREATE TABLE precise (a INT, s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START,
        e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING`,
    );
    const { manifest } = await mariadb.driver.backup(spec, 'bkp_precise', ctx());
    expect(manifest.missing).toMatch(/the history of all tables, .* of the table `precise`\.$/);
  });

  test('a thousand tables', async () => {
    const make = `CREATE TABLE many_', i, ' (a INT)`;
    const count = `SELECT COUNT(*) AS n FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'many%'`;
    expect(
      await as(spec, `BEGIN NOT ATOMIC FOR i IN 1..1000 DO EXECUTE IMMEDIATE CONCAT('${make}'); END FOR; END`, count),
    ).toEqual(['ok', [{ n: 1000 }]]);
    await mariadb.driver.backup(spec, 'bkp_many', ctx());
    const from = { id: 'restore_many', server_id: spec.id, backup_id: 'bkp_many', until: null };
    await mariadb.driver.restore(spec, from, ctx());
    await settle(mariadb.driver, spec);
    expect(await as(spec, count)).toEqual([[{ n: 1000 }]]);
  });

  test('zones of time have names, before and after a restore', async () => {
    expect(
      await as(
        spec,
        `SET time_zone = 'Europe/Berlin'`,
        `SELECT CONVERT_TZ('2026-07-01 12:00:00', 'UTC', 'America/New_York') AS t`,
      ),
    ).toEqual(['ok', [{ t: expect.anything() }]]);
  });
});
