/** @tier heavy @quarter 4 @covers drivers/database/postgresql */
// The pooler in front of a real server, with clients that verify its certificate.
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { Client } from 'pg';
import type { DatabaseServer } from '../../../drivers/database';
import type { Desired } from '../../../core/driver';
import type { ObservedListener, PoolDriver, PoolSpec } from '../../../drivers/endpoint';
import { openPooler } from '../../../drivers/endpoint/pgbouncer';
import { hostFacts } from '../../../drivers/host';
import { ctx, settle } from '../../support/databases/database_server';
import { asUser, from, openEngineTrial, postgresqlSpec, refusal, rows, type EngineTrial } from '../../support/engines';
import { processesWith, signalAll } from '../../support/processes/processes';
import { until } from '../../support/builds/runtime';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const id = 'dbe_pool';
const present = readdirSync('/usr/sbin').includes('pgbouncer') || Boolean(process.env.CI);

(present ? describe : describe.skip)(`pgbouncer${present ? '' : ' (not installed)'}`, () => {
  let engine: EngineTrial;
  let driver: PoolDriver;
  let server: DatabaseServer;
  let directory: string;
  let [port, otherPort] = [0, 0];

  beforeAll(async () => {
    engine = await openEngineTrial();
    [port, otherPort] = [engine.firstPort, engine.firstPort + 1];
    directory = path.join(engine.trial.root, 'endpoints');
    driver = openPooler({
      runtime: engine.trial.runtime,
      directory,
      found: async () => (await hostFacts()).programs.pgbouncer ?? null,
    });
    server = postgresqlSpec(engine.found[0]?.series ?? '', engine.firstPort + 2);
    await settle(engine.driver, server);
  }, 60_000);
  afterAll(() => engine?.close(), 30_000);

  /** What the job makes of a server. */
  async function pooled(more: Partial<PoolSpec> = {}): Promise<Desired<PoolSpec>> {
    const { tenant, tls } = server;
    return {
      id,
      spec: {
        tenant,
        port,
        running: true,
        allowed_sources: [],
        mode: 'transaction',
        size: 2,
        database_name: 'app',
        server: await engine.driver.pooled!(server),
        tls,
        ...more,
      },
    };
  }

  async function reconcile(more: Partial<PoolSpec> = {}): Promise<ObservedListener> {
    const wanted = await pooled(more);
    await driver.ensure(wanted, await driver.observe(wanted, ctx()), ctx());
    const seen = await driver.observe(wanted, ctx());
    if (seen.state !== 'present' || !seen.upToDate) throw new Error(JSON.stringify(seen));
    return seen.observed;
  }

  const pids = () =>
    processesWith(`${directory}/${id}/conf/pgbouncer.ini`)
      .filter(({ args }) => args.startsWith('/usr/sbin/pgbouncer'))
      .map(({ pid }) => pid);
  /** As clients see the server through the pool. */
  const pool = (): DatabaseServer => ({ ...server, port });

  async function rotate(password: string): Promise<void> {
    server = { ...server, users: [{ username: 'app', password, access: 'admin' }, ...server.users.slice(1)] };
    await settle(engine.driver, server);
  }

  test('many clients share few connections, and no password is on the disk', async () => {
    await expect(driver.observe(await pooled(), ctx())).resolves.toEqual({ state: 'absent' });
    expect(await reconcile()).toEqual({ state: 'running', reason: null });
    const clients = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const client = new Client({
          host: '127.0.0.1',
          port,
          database: 'app',
          user: 'app',
          password: 'first-word',
          ssl: { ca: server.tls.certificate, servername: 'localhost' },
        });
        await client.connect();
        return client;
      }),
    );
    const seen = await Promise.all(
      clients.map(
        async (client) =>
          (await client.query<{ pid: number }>('select pg_backend_pid() as pid, pg_sleep(0.02)')).rows[0]?.pid,
      ),
    );
    expect(new Set(seen).size).toBeLessThanOrEqual(2);
    const [{ count } = { count: 0 }] = await rows(
      server,
      `select count(*)::int as count from pg_stat_activity where backend_type = 'client backend'
        and client_addr is null and usename = 'app'`,
    );
    expect(count).toBeLessThanOrEqual(2);
    await Promise.all(clients.map((client) => client.end()));
    const files = readdirSync(path.join(directory, id, 'conf')).map((name) =>
      readFileSync(path.join(directory, id, 'conf', name), 'utf8'),
    );
    expect(files.join('')).toContain('SCRAM-SHA-256$4096:');
    expect(files.join('')).not.toContain('first-word');
  });

  test('nobody gets in without TLS, with another password, as the administrator, or to another database', async () => {
    const verdicts = await Promise.all(
      [
        { ssl: false },
        { password: 'guess' },
        { user: 'root', password: 'x' },
        { user: 'platform_admin', password: 'x' },
        { user: 'platform_replication', password: server.admin_password },
        { database: 'pgbouncer' },
        { database: 'postgres' },
      ].map((more) => refusal(pool(), more)),
    );
    expect(verdicts.filter((code) => code === null)).toEqual([]);
  });

  test('a client of a session finds nothing of the one before, and the role that it acts as', async () => {
    const [before] = pids();
    await reconcile({ mode: 'session', size: 1 });
    expect(pids()).toEqual([before]);
    const first = await rows(
      pool(),
      `set role none; set work_mem = '1MB'; create temp table left_over (); prepare one as select 1;
        select pg_advisory_lock(7)`,
    ).catch((error: unknown) => error);
    expect(first).not.toBeInstanceOf(Error);
    const [seen] = await rows(
      pool(),
      `select current_user::text as who, current_setting('work_mem') <> '1MB' as reset,
        to_regclass('left_over')::text as left_over, (select count(*)::int
        from pg_prepared_statements) as prepared, (select count(*)::int from pg_locks
        where locktype = 'advisory') as locks`,
    );
    expect(seen).toEqual({ who: 'app', reset: true, left_over: null, prepared: 0, locks: 0 });
  });

  test('a further user is let in at once, and nobody is disturbed', async () => {
    const [before] = pids();
    await asUser(pool(), {}, async (client) => {
      server = {
        ...server,
        users: [...server.users, { username: 'reader', password: 'reads-only', access: 'read_only' }],
      };
      await settle(engine.driver, server);
      expect(await refusal(pool(), { user: 'reader', password: 'reads-only' })).toBe('08P01');
      await reconcile({ mode: 'session' });
      expect(await refusal(pool(), { user: 'reader', password: 'reads-only' })).toBeNull();
      await client.query('select 1');
    });
    expect(pids()).toEqual([before]);
  });

  test('an old password is locked out, with the sessions that it opened', async () => {
    await reconcile();
    await asUser(pool(), {}, async (client) => {
      await client.query('select 1');
      await rotate('second-word');
      // The server lets the old one in no more, so the pooler has no connection for it.
      const waiting = expect(client.query('select 1')).rejects.toThrow();
      await reconcile();
      await waiting;
    });
    expect(await refusal(pool(), { password: 'first-word' })).toBe('08P01');
    expect(await refusal(pool(), {})).toBeNull();
    const before = pids();
    server = { ...server, users: server.users.slice(0, 1) };
    await settle(engine.driver, server);
    await reconcile();
    expect([await refusal(pool(), { user: 'reader', password: 'reads-only' }), pids()]).toEqual(['08P01', before]);
  });

  test('sources are let in, and sessions from where nobody may come any more end', async () => {
    expect(await refusal(pool(), from('127.0.0.9'))).not.toBeNull();
    await reconcile({ allowed_sources: ['127.0.0.8/30'] });
    await asUser(pool(), from('127.0.0.9'), async (client) => {
      await client.query('select 1');
      await reconcile({ allowed_sources: ['127.0.0.16/30'] });
      await expect(client.query('select 1')).rejects.toThrow();
    });
    expect(await refusal(pool(), from('127.0.0.9'))).not.toBeNull();
    expect([await refusal(pool(), from('127.0.0.17')), await refusal(pool(), {})]).toEqual([null, null]);
    await expect(reconcile({ allowed_sources: ['127.0.0.16 255.255.255.0 trust'] })).rejects.toMatchObject({
      reason: 'invalid',
    });
  });

  test('killed, it is seen and comes back; the server may come and go', async () => {
    await reconcile();
    signalAll(pids());
    const wanted = await pooled();
    // Its end is noticed a moment after it has come.
    await until(
      async () =>
        ((await driver.observe(wanted, ctx())) as { observed?: { state: string } }).observed?.state === 'failed',
    );
    expect(await driver.observe(wanted, ctx())).toMatchObject({
      upToDate: false,
      observed: { reason: expect.stringContaining('SIGKILL') },
    });
    expect(pids()).toEqual([]);
    await reconcile();
    expect(await refusal(pool(), {})).toBeNull();
    // Who comes while the server is restarted waits for it.
    await settle(engine.driver, { ...server, running: false });
    const waiting = rows(pool(), 'select 1 as one', { connectionTimeoutMillis: 30_000 });
    await settle(engine.driver, server);
    expect(await waiting).toEqual([{ one: 1 }]);
  });

  test('a control plane that comes later finds it, and has nothing to do', async () => {
    await reconcile();
    const before = pids();
    await engine.trial.reopen();
    const found = async () => (await hostFacts()).programs.pgbouncer ?? null;
    const later = openPooler({ runtime: engine.trial.runtime, directory, found });
    const wanted = await pooled();
    expect(await later.observe(wanted, ctx())).toMatchObject({ state: 'present', upToDate: true });
    await later.ensure(wanted, { state: 'absent' }, ctx());
    expect(pids()).toEqual(before);
    driver = later;
  });

  test('stopped, nothing listens; a port that somebody else has is told', async () => {
    await reconcile({ running: false }).catch(() => undefined);
    expect(await driver.observe(await pooled({ running: false }), ctx())).toMatchObject({
      state: 'present',
      upToDate: true,
      observed: { state: 'stopped' },
    });
    expect(await refusal(pool(), {})).toBe('ECONNREFUSED');
    const other = createServer().listen(otherPort, '127.0.0.1');
    await expect(reconcile({ port: otherPort })).rejects.toMatchObject({ reason: 'transient' });
    await new Promise((resolve) => other.close(resolve));
    await reconcile({ port: otherPort });
  });

  test('a name that somebody else has is left alone; without its program it says what to install', async () => {
    const place = mkdtempSync(path.join(directory, 'other'));
    rmSync(place, { recursive: true });
    writeFileSync(path.join(directory, 'dbe_foreign'), '');
    const wanted = { ...(await pooled()), id: 'dbe_foreign' };
    expect(await driver.observe(wanted, ctx())).toMatchObject({ state: 'foreign' });
    await expect(driver.ensure(wanted, { state: 'absent' }, ctx())).rejects.toMatchObject({ reason: 'conflict' });
    await driver.remove(wanted, { state: 'absent' }, ctx());
    expect(readdirSync(directory)).toContain('dbe_foreign');
    rmSync(path.join(directory, 'dbe_foreign'));
    const without = openPooler({ runtime: engine.trial.runtime, directory, found: () => Promise.resolve(null) });
    await expect(without.ensure({ ...wanted, id: 'dbe_without' }, { state: 'absent' }, ctx())).rejects.toMatchObject({
      reason: 'unsupported',
      message: expect.stringContaining('Install the package pgbouncer'),
    });
    await without.remove({ ...wanted, id: 'dbe_without' }, { state: 'absent' }, ctx());
  });

  test('it goes without a trace', async () => {
    const wanted = await pooled({ port: otherPort });
    const listed = [];
    for await (const owned of driver.list(ctx())) listed.push(owned.owner_id);
    expect(listed).toEqual([id]);
    for (let turn = 0; turn < 2; turn += 1) await driver.remove(wanted, await driver.observe(wanted, ctx()), ctx());
    expect([await driver.observe(wanted, ctx()), readdirSync(directory), pids()]).toEqual([
      { state: 'absent' },
      [],
      [],
    ]);
    expect((await engine.trial.runtime.list()).filter((unit) => unit.startsWith('dbe_'))).toEqual([]);
  });
});
