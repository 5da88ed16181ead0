// A real server: as wanted, reached over TLS, stopped, killed and started again.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createConnection } from 'mysql2/promise';
import type { EngineFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../../drivers/database';
import { driverContext } from '../../../core/driver';
import { serverAccessOf, withServer } from '../../../drivers/database/mariadb/connection';
import { serverDirectoryOf } from '../../../drivers/hosted_server/server_directory';
import { ctx, newCertificate, settle, specOf, withinMs } from '../../support/databases/database_server';
import type { Servers } from '../../support/databases/hosted_servers';
import {
  answersFor,
  connectAs,
  describeMariadb,
  openMariadbTrial,
  type MariadbTrial,
} from '../../support/databases/mariadb_trial';
import { reachedAsAdmin, runClient } from '../../support/databases/stock_mariadb';
import { processesWith } from '../../support/processes/processes';
import { until, type Trial } from '../../support/builds/runtime';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(60_000);

describeMariadb('mariadb', () => {
  let mariadb: MariadbTrial;
  let trial: Trial;
  let driver: Servers;
  let found: EngineFound[];
  let spec: DatabaseServer;
  beforeAll(async () => {
    mariadb = await openMariadbTrial();
    ({ trial, driver, found } = mariadb);
    spec = specOf('mariadb', found[0]!.series, 18021, { tenant: 21, database_name: 'my_app' });
  });
  afterAll(() => mariadb.close());

  const as = (username: string, password: string, statements: string[], of = spec) =>
    answersFor(of, username, password, statements);
  const app = (...statements: string[]) => as('app', spec.users[0]!.password, statements);

  test('a server is made, started and as wanted', async () => {
    expect((await driver.observe(spec, ctx())).state).toBe('absent');
    const begin = Date.now();
    const seen = await settle(driver, spec);
    const { memory_bytes } = await driver.metrics(spec, ctx());
    console.info(
      `mariadb: made and started in ${Date.now() - begin} ms, ${Math.round(memory_bytes! / 1e6)} MB, ` +
        `${Math.round(seen.storage_used_bytes! / 1e6)} MB of disk`,
    );
    expect(seen).toMatchObject({ state: 'running', differs: null, full: false, reason: null });
    expect(
      await app(
        'CREATE TABLE t (id INT PRIMARY KEY, word TEXT)',
        `INSERT INTO t VALUES (1, 'one'), (2, 'zwei ü 😀')`,
        'SELECT * FROM t',
      ),
    ).toEqual([
      'ok',
      'ok',
      [
        { id: 1, word: 'one' },
        { id: 2, word: 'zwei ü 😀' },
      ],
    ]);
  });

  test('time zones have names, also in a server that was made without', async () => {
    const [moment, zone] = ['2026-07-01 12:00:00', 'America/New_York'];
    const convert = `SELECT CAST(CONVERT_TZ('${moment}', 'UTC', '${zone}') AS CHAR) AS t`;
    const known = [`SET time_zone = 'Europe/Berlin'`, convert];
    expect(await app(...known)).toEqual(['ok', [{ t: '2026-07-01 08:00:00' }]]);
    const empty = 'TRUNCATE time_zone; TRUNCATE time_zone_name; TRUNCATE time_zone_transition; FLUSH TABLES';
    runClient('mariadb', { ...reachedAsAdmin(mariadb.directory, spec), database: 'mysql' }, ['-e', empty]);
    await settle(driver, { ...spec, running: false });
    const begin = Date.now();
    await settle(driver, spec);
    console.info(`mariadb: started, and its time zones filled, in ${Date.now() - begin} ms`);
    expect(await app(...known)).toEqual(['ok', [{ t: '2026-07-01 08:00:00' }]]);
    // Those of another version of the host's zones.
    const note = path.join(mariadb.directory, spec.id, 'time_zones.json');
    writeFileSync(note, JSON.stringify({ version: 'an older one' }));
    expect((await driver.observe(spec, ctx())).differs).toBe('time zones');
    expect((await settle(driver, spec)).differs).toBeNull();
    // A server without them is a server.
    writeFileSync(note, JSON.stringify({ version: 'an older one', failed_at: Date.now() }));
    expect((await driver.observe(spec, ctx())).differs).toBeNull();
    writeFileSync(note, JSON.stringify({ version: 'an older one', failed_at: 0 }));
    await settle(driver, spec);
  });

  test('on this host TLS is the choice of the client', async () => {
    const cipher = `SHOW SESSION STATUS LIKE 'Ssl_cipher'`;
    const [encrypted] = await app(cipher);
    expect(encrypted).toEqual([{ Variable_name: 'Ssl_cipher', Value: expect.stringMatching(/./) }]);
    const plain = await createConnection({
      host: '127.0.0.1',
      port: spec.port,
      user: 'app',
      password: spec.users[0]!.password,
      connectTimeout: 3_000,
    });
    expect((await plain.query(cipher))[0]).toEqual([{ Variable_name: 'Ssl_cipher', Value: '' }]);
    plain.destroy();
  });

  test('with a wrong password and without a name nobody comes in', async () => {
    for (const [user, password] of [
      ['app', 'wrong'],
      ['', ''],
      ['root', ''],
      ['mysql', ''],
      [`platform_${spec.id}`, spec.admin_password],
    ] as const)
      expect(await as(user, password, ['SELECT 1'])).toEqual(['ER_ACCESS_DENIED_ERROR']);
  });

  test.each([
    'SET GLOBAL read_only = 0',
    'SHOW BINARY LOGS',
    `SELECT * FROM mysql.global_priv`,
    'CREATE DATABASE other',
    'CREATE DATABASE myxapp',
    `GRANT ALL ON my_app.* TO someone@'%' IDENTIFIED BY 'x'`,
    'CREATE USER someone',
    `SELECT 'x' INTO OUTFILE '/tmp/outfile'`,
    `LOAD DATA INFILE '/etc/passwd' INTO TABLE t`,
    'SHUTDOWN',
    `INSTALL SONAME 'server_audit'`,
    'FLUSH TABLES WITH READ LOCK',
    'SET GLOBAL max_connections = 1',
  ])('an admin cannot %s', async (statement) => {
    expect(await app(statement)).toEqual([
      expect.stringMatching(
        /^ER_(SPECIFIC_ACCESS_DENIED|DBACCESS_DENIED|TABLEACCESS_DENIED|ACCESS_DENIED|CANT_CREATE_USER)/,
      ),
    ]);
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
      await as('writer', 'w-word', [
        `INSERT INTO t VALUES (3, 'three')`,
        'DELETE FROM t WHERE id = 3',
        'CREATE TABLE no (id INT)',
        'DROP TABLE t',
      ]),
    ).toEqual(['ok', 'ok', ...Array(2).fill('ER_TABLEACCESS_DENIED_ERROR')]);
    expect(await as('reader', 'r-word', ['SELECT COUNT(*) AS n FROM t', 'DELETE FROM t'])).toEqual([
      [{ n: 2 }],
      'ER_TABLEACCESS_DENIED_ERROR',
    ]);
    spec = { ...spec, users: spec.users.slice(0, 1) };
    await settle(driver, spec);
    expect(await as('reader', 'r-word', ['SELECT 1'])).toEqual(['ER_ACCESS_DENIED_ERROR']);
  });

  test('a rotation ends sessions and the old password; a password that the tenant set itself is undone', async () => {
    const old = spec.users[0]!.password;
    const session = await connectAs(spec, 'app', old);
    session.on('error', () => undefined);
    spec = { ...spec, users: [{ ...spec.users[0]!, password: 'second-word' }] };
    await settle(driver, spec);
    await expect(session.query('SELECT 1')).rejects.toThrow();
    expect(await as('app', old, ['SELECT 1'])).toEqual(['ER_ACCESS_DENIED_ERROR']);
    expect(await app(`SET PASSWORD = PASSWORD('my own')`)).toEqual(['ok']);
    expect((await driver.observe(spec, ctx())).differs).toBe('users');
    await settle(driver, spec);
    expect(await app('SELECT 1 AS one')).toEqual([[{ one: 1 }]]);
    spec = { ...spec, admin_password: `another-administrators-word-${process.pid}` };
    await settle(driver, spec);
    expect(await app('SELECT 1 AS one')).toEqual([[{ one: 1 }]]);
  });

  test('two passwords are valid during a rotation, and no session is lost to it', async () => {
    const user = spec.users[0]!;
    const withUser = (changed: object): void => void (spec = { ...spec, users: [{ ...user, ...changed }] });
    const before = await connectAs(spec, 'app', user.password);
    before.on('error', () => undefined);
    withUser({ password: 'third-word', previous_password: user.password });
    await settle(driver, spec);
    await before.query('SELECT 1');
    expect(await as('app', user.password, ['SELECT 1 AS one'])).toEqual([[{ one: 1 }]]);
    expect(await app('SELECT 1 AS one')).toEqual([[{ one: 1 }]]);
    expect(await as('app', 'no-word', ['SELECT 1'])).toEqual(['ER_ACCESS_DENIED_ERROR']);
    const since = await connectAs(spec, 'app', 'third-word');
    withUser({ password: 'third-word' });
    await settle(driver, spec);
    await since.query('SELECT 1');
    await since.end();
    await expect(before.query('SELECT 1')).rejects.toThrow();
    expect(await as('app', user.password, ['SELECT 1'])).toEqual(['ER_ACCESS_DENIED_ERROR']);
  });

  test('passwords are in no argument list and in no log', async () => {
    for (const word of ['second-word', spec.admin_password]) expect(processesWith(word)).toEqual([]);
    const { lines } = await driver.readLog(spec.id, null);
    expect(JSON.stringify(lines)).toMatch(/ready for connections/);
    expect(JSON.stringify(lines)).not.toMatch(/second-word|administrators-word/);
  });

  test('a new certificate without a restart', async () => {
    const before = (await trial.runtime.find(`${spec.id}.server`))!.pid;
    spec = { ...spec, tls: newCertificate() };
    expect((await driver.observe(spec, ctx())).differs).toBe('certificate');
    await settle(driver, spec);
    expect(await app('SELECT 1 AS one')).toEqual([[{ one: 1 }]]);
    expect((await trial.runtime.find(`${spec.id}.server`))!.pid).toBe(before);
  });

  test('stopped and started, killed and started, grown: committed rows are there', async () => {
    await settle(driver, { ...spec, running: false });
    expect((await driver.observe({ ...spec, running: false }, ctx())).state).toBe('stopped');
    await settle(driver, spec);
    expect(await app(`INSERT INTO t VALUES (6, 'six')`)).toEqual(['ok']);
    const server = processesWith(`${spec.id}/conf/my.cnf`).filter(({ args }) => args.startsWith(found[0]!.path));
    expect(server).toHaveLength(1);
    process.kill(server[0]!.pid, 'SIGKILL');
    await until(async () => (await driver.observe(spec, ctx())).state === 'failed');
    spec = { ...spec, size: { memory_mb: 512, cpus: 1, max_connections: 30 } };
    await settle(driver, spec);
    expect(await app('SELECT COUNT(*) AS n FROM t')).toEqual([[{ n: 3 }]]);
  });

  test('stopped while it starts: ends at once, and its rows are there', async () => {
    const stopped = { ...spec, running: false };
    for (let i = 0; i < 3; i++) {
      await settle(driver, stopped);
      const cut = new AbortController();
      const starting = driver.ensure(spec, driverContext(withinMs, cut.signal)).catch(() => undefined);
      await until(async () => ['starting', 'running'].includes((await driver.observe(spec, ctx())).state));
      cut.abort();
      await starting;
      // Within less than the grace time of a server that answers.
      await settle(driver, stopped);
    }
    await settle(driver, spec);
    expect(await app('SELECT COUNT(*) AS n FROM t')).toEqual([[{ n: 3 }]]);
  });

  test('a statement ends with the time of its step', async () => {
    const access = serverAccessOf(serverDirectoryOf({ directory: mariadb.directory }, spec.id));
    const waited = withServer(access, spec, (query) => query('SELECT SLEEP(60)'), driverContext(500));
    await expect(waited).rejects.toMatchObject({ reason: 'transient', message: 'The step did not finish in time.' });
  });

  test('what the engine cannot do here is said', async () => {
    const replica = {
      ...spec,
      id: 'rep_mariadb',
      replica_of: { server_id: spec.id, port: spec.port, password: spec.admin_password },
    };
    await expect(driver.ensure(replica, ctx())).rejects.toMatchObject({ reason: 'unsupported' });
    await expect(driver.upgrade(spec, '10.6', ctx())).rejects.toMatchObject({ reason: 'unsupported' });
    await expect(driver.ensure({ ...spec, version: '5.5' }, ctx())).rejects.toMatchObject({ reason: 'unsupported' });
    expect(await driver.window(spec.id, ctx())).toBeNull();
  });
});
