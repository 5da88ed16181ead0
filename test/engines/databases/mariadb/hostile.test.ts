/** @tier heavy @quarter 2 @covers drivers/database/mariadb */
// What the platform does in a tenant's server with rights of its own meets names, values and code of the tenant. None
// of it may run with these rights, or bring some to the tenant.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createConnection } from 'mysql2/promise';
import type { DatabaseServer } from '../../../../drivers/database';
import { ctx, settle, specOf } from '../../../support/databases/database_server';
import {
  answersFor,
  describeMariadb,
  openMariadbTrial,
  type MariadbTrial,
} from '../../../support/databases/mariadb_trial';
import { reachedAsAdmin, runClient } from '../../../support/databases/stock_mariadb';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(300_000);

const written = `/tmp/platform-written-${process.pid}`;

describeMariadb('a hostile tenant of mariadb', () => {
  let mariadb: MariadbTrial;
  let spec: DatabaseServer;
  let accounts: string;
  let restores = 0;
  const app = (...statements: string[]): Promise<unknown[]> => answersFor(spec, 'app', 'first-word', statements);
  const asAdmin = (statement: string): string =>
    runClient('mariadb', reachedAsAdmin(mariadb.directory, spec), ['-N', '-r', '-e', statement]).toString();
  const rights = (): string =>
    asAdmin(
      `SELECT User, Host, JSON_VALUE(Priv, '$.access') FROM mysql.global_priv ORDER BY 1, 2; SELECT * FROM mysql.db;
        SELECT Table_name, Table_priv, User FROM mysql.tables_priv; SELECT * FROM mysql.procs_priv;
        SELECT * FROM mysql.columns_priv; SELECT * FROM mysql.func; SELECT * FROM mysql.plugin;
        SELECT COUNT(*) FROM mysql.proxies_priv; SELECT * FROM mysql.roles_mapping; SHOW DATABASES;
        SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES WHERE VARIABLE_NAME IN
          ('general_log', 'secure_file_priv', 'max_allowed_packet', 'init_connect', 'event_scheduler')`,
    );

  /** Backs up, changes the text of the dump, and restores it. */
  async function roundTrip(change: (text: string) => string = (text) => text): Promise<void> {
    const id = `bkp_${++restores}`;
    await mariadb.driver.backup(spec, id, ctx());
    const file = `${mariadb.directory}/backups/${spec.id}/${id}/dump.sql.gz`;
    writeFileSync(file, gzipSync(Buffer.from(change(gunzipSync(readFileSync(file)).toString('latin1')), 'latin1')));
    const from = { server_id: spec.id, backup_id: id, until: null };
    try {
      await mariadb.driver.restore(spec, { id: `restore_${restores}`, ...from }, ctx());
    } finally {
      await settle(mariadb.driver, spec);
    }
  }

  beforeAll(async () => {
    mariadb = await openMariadbTrial();
    // As a pattern, which a GRANT takes it for, it is the engine's own database too.
    spec = specOf('mariadb', mariadb.found[0]!.series, 18026, { tenant: 26, database_name: 'mysq_' });
    await settle(mariadb.driver, spec);
    accounts = rights();
  });
  afterEach(() => {
    expect(rights()).toBe(accounts);
    expect(existsSync(written)).toBe(false);
  });
  afterAll(async () => {
    rmSync(written, { force: true });
    await mariadb.close();
  });

  test('views, triggers, functions and events run neither while a dump is made nor while it is loaded', async () => {
    expect(
      await app(
        'CREATE TABLE ran (who TEXT) ENGINE = MyISAM',
        'CREATE TABLE t (a INT)',
        'INSERT INTO t VALUES (1)',
        `CREATE FUNCTION tell () RETURNS INT DETERMINISTIC SQL SECURITY INVOKER
           BEGIN INSERT INTO ran VALUES (CURRENT_USER()); RETURN 1; END`,
        'CREATE SQL SECURITY INVOKER VIEW v AS SELECT tell() AS a, (SELECT tell()) AS b FROM t WHERE tell() = 1',
        'CREATE ALGORITHM = TEMPTABLE SQL SECURITY INVOKER VIEW w AS SELECT a, COUNT(*) FROM v GROUP BY tell()',
        'CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.a = tell()',
        'CREATE EVENT ev ON SCHEDULE EVERY 1 SECOND DO DO tell()',
      ),
    ).toEqual(Array(8).fill('ok'));
    await roundTrip();
    expect(await app('SELECT * FROM ran', 'SELECT a FROM t', 'SELECT a FROM v')).toEqual([[], [{ a: 1 }], [{ a: 1 }]]);
  });

  test('names and values that look like commands of the client or ends of statements', async () => {
    const commands = [`\\! touch ${written}`, `system touch ${written}`, `tee ${written}`, `source /etc/passwd`];
    const nasty = ['delimiter x', '*/;; CREATE TABLE pwned (a INT);;', `'; CREATE TABLE pwned (a INT); -- `];
    for (const [i, text] of [...commands, ...nasty].entries()) {
      const quoted = text.replaceAll('\\', '\\\\').replaceAll("'", "''");
      expect(
        await app(
          `CREATE TABLE \`n${i}\n${text}\nx\` (a TEXT COMMENT '\n${quoted}\n')`,
          `INSERT INTO \`n${i}\n${text}\nx\` VALUES ('\n${quoted}\n')`,
          `CREATE PROCEDURE p${i} () COMMENT '\n${quoted}\n' BEGIN /*\n${text.replaceAll('*/', '')}\n*/
             SELECT '\n${quoted}\n', \`\n${text}\n\` FROM t; END`,
          `CREATE TRIGGER \`t${i}\n${text}\nx\` BEFORE DELETE ON t FOR EACH ROW SET @a = '*/;;\n${quoted}\n'`,
          `ALTER DATABASE COMMENT '\n${quoted}\n'`,
        ),
      ).toEqual(Array(5).fill('ok'));
    }
    await roundTrip();
    expect(await app('SELECT * FROM pwned', 'SELECT COUNT(*) AS n FROM `n0\n\\! touch ' + written + '\nx`')).toEqual([
      'ER_NO_SUCH_TABLE',
      [{ n: 1 }],
    ]);
  });

  test('a string that ends elsewhere in another character set is no statement', async () => {
    const { port, database_name } = spec;
    const login = { user: 'app', password: 'first-word', database: database_name! };
    const connection = await createConnection({ host: '127.0.0.1', port, charset: 'GBK_CHINESE_CI', ...login });
    // In GBK the second byte of this character is a backslash.
    await connection.query(
      `CREATE PROCEDURE split () SELECT '縗' -- ';; CREATE TABLE pwned AS SELECT USER();; SELECT 1;;`,
    );
    await connection.end();
    await roundTrip();
    await roundTrip((text) => text.replace(/^\\C .*\n/gm, ''));
    expect(await app('SELECT * FROM pwned', 'CALL split()')).toEqual(['ER_NO_SUCH_TABLE', expect.anything()]);
  });

  test('statements that the client was led to run have the rights of nobody', async () => {
    await app('CREATE TABLE gained (definer TEXT, statement TEXT)');
    const tries = [
      `GRANT ALL PRIVILEGES ON *.* TO app@'%' WITH GRANT OPTION`,
      `GRANT SUPER, FILE ON *.* TO app@'%'`,
      `CREATE USER evil@'%'`,
      'CREATE DATABASE evil',
      `SELECT COUNT(*) FROM mysql.user INTO @a`,
      'INSERT INTO mysql.db SELECT * FROM mysql.db',
      `SELECT 1 INTO OUTFILE '${written}'`,
      `SELECT IF(LOAD_FILE('/etc/passwd') IS NULL, JSON_VALUE('x', y), 1)`,
      'SET GLOBAL general_log = 1',
      `INSTALL SONAME 'ha_federatedx'`,
      `CREATE FUNCTION sys_exec RETURNS INT SONAME 'x.so'`,
      'FLUSH PRIVILEGES',
    ];
    const accountsTried = ['platform_' + spec.id, 'platform_load_' + spec.id, 'root', 'mysql', 'mariadb.sys'];
    const text = tries.map((one, i) => [
      ...accountsTried.flatMap((name) => [
        `CREATE DEFINER='${name}'@'localhost' PROCEDURE try${i} (OUT ok INT) SQL SECURITY DEFINER
          BEGIN SET ok = 0; EXECUTE IMMEDIATE ${quote(one)}; SET ok = 1; END;;`,
        `CREATE PROCEDURE outer${i} () BEGIN DECLARE ok INT DEFAULT 0;
          DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN END; CALL try${i}(ok);
          IF ok THEN INSERT INTO gained VALUES (${quote(name)}, ${quote(one)}); END IF; END;;`,
        `CALL outer${i}();;`,
        `DROP PROCEDURE try${i};;`,
        `DROP PROCEDURE outer${i};;`,
      ]),
    ]);
    const statements = ['DELIMITER ;;', ...text.flat(), 'DELIMITER ;', ''].join('\n');
    await roundTrip((dump) => dump + statements);
    expect(await app('SELECT * FROM gained')).toEqual([[]]);
  });

  test.each(['platform_', 'platform_load_', 'platform_dump_'])('code of %s stays in no database', async (prefix) => {
    const code = `CREATE DEFINER='${prefix}${spec.id}'@'localhost' VIEW lent AS SELECT 1 AS a;\n`;
    await expect(roundTrip((dump) => dump + code)).rejects.toMatchObject({
      message: expect.stringMatching(/did not start with the new data/),
      cause: { message: 'The backup holds code that would run with rights of the platform.' },
    });
    expect(await app('SELECT * FROM lent')).toEqual(['ER_NO_SUCH_TABLE']);
  });

  test.each([`\\! touch ${written}`, `system touch ${written}`, `tee ${written}`, 'source /etc/passwd'])(
    'the client does not run %s',
    async (command) => {
      await expect(roundTrip((dump) => `${dump}${command}\n;\n`)).rejects.toThrow(/did not start with the new data/);
    },
  );

  test('what stops a restore is named, without rows, and the data from before are back', async () => {
    const wrong = `INSERT INTO t VALUES ('secret row', 1, 2);\n`;
    await expect(roundTrip((dump) => dump + wrong)).rejects.toMatchObject({
      cause: {
        message: expect.stringMatching(
          /^The backup could not be loaded\. ERROR 1136 \(21S01\) at line \d+: Column count doesn't match .*\.$/,
        ),
      },
    });
    expect(await app('SELECT a FROM t')).toEqual([[{ a: 1 }]]);
  });
});

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
