// A real server: as wanted, reached over TLS, backed up, restored, over its storage; and what is killed in the middle.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createConnection, type Connection } from 'mysql2/promise';
import type { EngineFound } from '../../core/host_facts';
import type { DatabaseServer } from '../../drivers/database';
import { driverContext } from '../../drivers/driver';
import { hostFacts } from '../../drivers/host';
import { ctx, newCertificate, openServerTrial, settle, specOf, withinMs } from '../support/database_server';
import { processesWith, spawnProgram } from '../support/processes';
import { until, type Trial } from '../support/runtime';
import { mariadbServers, type Servers } from '../support/hosted_servers';

const there =
  spawnSync('mariadbd', ['--version'], { env: { PATH: `${process.env.PATH}:/usr/sbin` } }).status === 0 ||
  process.env.CI !== undefined;
const describeServer = there ? describe : describe.skip;

jest.setTimeout(60_000);

describeServer(there ? 'mariadb' : 'mariadb (mariadb-server is not installed)', () => {
  let trial: Trial;
  let driver: Servers;
  let found: EngineFound[];
  let spec: DatabaseServer;
  const directory = () => `${trial.root}/databases`;
  beforeAll(async () => {
    trial = await openServerTrial();
    found = (await hostFacts()).mariadb;
    driver = mariadbServers({ runtime: trial.runtime, directory: directory(), found });
    spec = specOf('mariadb', found[0]!.series, 18021, { tenant: 21, database_name: 'my_app' });
  });
  afterAll(async () => {
    for (const id of await driver.list(ctx())) await driver.remove(id, ctx());
    expect(processesWith(directory())).toEqual([]);
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  function connect(username: string, password: string, of = spec): Promise<Connection> {
    return createConnection({
      host: '127.0.0.1',
      port: of.port,
      user: username,
      password,
      database: of.database_name!,
      ssl: { ca: of.tls.certificate },
      connectTimeout: 3_000,
    });
  }

  /** What a tenant's client is answered: rows, or the code of the error. */
  async function as(username: string, password: string, statements: string[], of = spec): Promise<unknown[]> {
    const connection = await connect(username, password, of).catch((error: NodeJS.ErrnoException) =>
      String(error.code),
    );
    if (typeof connection === 'string') return [connection];
    const answers: unknown[] = [];
    for (const one of statements)
      answers.push(
        await connection.query(one).then(
          ([rows]) => (Array.isArray(rows) ? rows : 'ok'),
          (error: NodeJS.ErrnoException) => error.code,
        ),
      );
    connection.destroy();
    return answers;
  }
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

  test('without TLS, with a wrong password and without a name nobody comes in', async () => {
    const plain = createConnection({
      host: '127.0.0.1',
      port: spec.port,
      user: 'app',
      password: spec.users[0]!.password,
      connectTimeout: 3_000,
    });
    await expect(plain).rejects.toThrow();
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
    const session = await connect('app', old);
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

  test('a backup that cannot be read: the data from before are back', async () => {
    await driver.backup(spec, 'bkp_bad', ctx());
    writeFileSync(`${directory()}/backups/${spec.id}/bkp_bad/dump.sql.gz`, 'this is no dump');
    await expect(
      driver.restore(spec, { id: 'restore_2', server_id: spec.id, backup_id: 'bkp_bad', until: null }, ctx()),
    ).rejects.toThrow(/from before are back/);
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
    expect(await app('SELECT COUNT(*) AS n FROM t')).toEqual([[{ n: 4 }]]);
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
    expect(await app('SELECT COUNT(*) AS n FROM t')).toEqual([[{ n: 4 }]]);
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
    expect(await as('app', 'first-word', ['SELECT COUNT(*) AS n FROM t'], victim)).toEqual([[{ n: 2 }]]);
    await driver.remove(victim.id, ctx());
    expect(readdirSync(directory()).filter((name) => name.includes('killed'))).toEqual([]);
  });
});

// Makes the server and restores into it, without end.
const killedProgram = `
  const { openLocalRuntime } = require('./drivers/runtime/local.ts');
  const { mariadbServers } = require('./test/support/hosted_servers.ts');
  const { driverContext } = require('./drivers/driver.ts');
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
