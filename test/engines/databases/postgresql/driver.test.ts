/** @tier heavy @quarter 4 @covers drivers/database/postgresql */
// Real servers, real clients: every PostgreSQL of this host.
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseServer } from '../../../../drivers/database';
import { parseLogLine } from '../../../../drivers/database/postgresql/log';
import { serverDirectoryOf } from '../../../../drivers/hosted_server/server_directory';
import { ctx } from '../../../support/databases/database_server';
import {
  asUser,
  from,
  openEngineTrial,
  postgresqlSpec,
  refusal,
  rows,
  untilDone,
  type EngineTrial,
} from '../../../support/engines';
import { processesWith } from '../../../support/processes/processes';
import { until } from '../../../support/builds/runtime';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const installed = existing();
const offered = process.env.CI
  ? ['15', '18']
  : ['15', '18'].filter((series) => series === '18' || installed.includes(series));
const absent = ['15', '18'].filter((series) => !offered.includes(series));

for (const series of absent) test.skip(`PostgreSQL ${series}: not installed on this host`, () => undefined);

describe.each(offered)('PostgreSQL %s', (version) => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  let port: number;
  const reader = { username: 'reader', password: 'readers-word', access: 'read_only' as const };
  const writer = { username: 'writer', password: 'writers-word', access: 'read_write' as const };
  const second = { username: 'second', password: 'seconds-word', access: 'admin' as const };
  const as = ({ username, password }: { username: string; password: string }) => ({ user: username, password });

  beforeAll(async () => {
    one = await openEngineTrial({ gigabyteBytes: 2 ** 26 });
    port = one.firstPort;
    spec = postgresqlSpec(version, port, { storage_gb: 16 });
    spec.users.push(reader, writer, second);
    // Looked for in all processes of the machine, on which other tests run.
    for (const user of spec.users) user.password += `-${process.pid}`;
    await untilDone((context) => one.driver.ensure(spec, context));
  });
  afterAll(async () => {
    await one.close();
    expect(one.trial.errors).toEqual([]);
  });

  test('is as wanted, and a second call changes nothing', async () => {
    const before = readFileSync(path.join(one.directory, `${spec.id}/conf/postgresql.conf`), 'utf8');
    await one.driver.ensure(spec, ctx());
    expect(await one.driver.observe(spec, ctx())).toMatchObject({
      state: 'running',
      differs: null,
      full: false,
      reason: null,
    });
    expect(readFileSync(path.join(one.directory, `${spec.id}/conf/postgresql.conf`), 'utf8')).toBe(before);
    expect(await one.driver.list(ctx())).toEqual([spec.id]);
    expect(
      await rows(
        spec,
        `select current_setting('data_checksums') as sums, current_setting('max_connections') as connections,
          current_setting('server_encoding') as encoding, current_setting('password_encryption') as word,
          current_setting('authentication_timeout') as patience`,
      ),
    ).toEqual([{ sums: 'on', connections: '23', encoding: 'UTF8', word: 'scram-sha-256', patience: '10s' }]);
  });

  test('TLS is required, and the certificate is that of the spec', async () => {
    expect(await refusal(spec, { ssl: false })).toBe('28000');
    expect(await rows(spec, 'select ssl, version from pg_stat_ssl where pid = pg_backend_pid()')).toEqual([
      { ssl: true, version: 'TLSv1.3' },
    ]);
  });

  test('users may what their access says, also with tables that others make later', async () => {
    await rows(
      spec,
      `create schema shop; create table shop.one (id int primary key,
        note text); create table two (id serial primary key, note text)`,
      as(second),
    );
    await rows(
      spec,
      `alter table shop.one add column more int; insert into shop.one values (1, 'a', 2); insert into two (note)
        values ('b')`,
    );
    expect(await rows(spec, 'select id from shop.one', as(reader))).toEqual([{ id: 1 }]);
    expect(await refusal(spec, as(reader), 'insert into two (note) values (1)')).toBe('42501');
    expect(await refusal(spec, as(reader), 'create table mine (id int)')).toBe('42501');
    expect(await refusal(spec, as(writer), "insert into two (note) values ('c')")).toBeNull();
    expect(await refusal(spec, as(writer), 'update shop.one set note = note; delete from two')).toBeNull();
    expect(await refusal(spec, as(writer), 'drop table two')).toBe('42501');
  });

  test('users cannot become more than they are, and see no verifier of a password', async () => {
    for (const user of spec.users) {
      expect(await refusal(spec, as(user), 'select rolpassword from pg_authid')).toBe('42501');
      expect(await refusal(spec, as(user), 'set role platform_admin')).toBe('42501');
      expect(await refusal(spec, as(user), 'create role evil superuser login')).toBe('42501');
      expect(await refusal(spec, as(user), "alter system set archive_command = 'true'")).toBe('42501');
      expect(await refusal(spec, as(user), "copy (select 1) to program 'id'")).toBe('42501');
      expect(await refusal(spec, as(user), "select pg_read_file('postgresql.auto.conf')")).toBe('42501');
      expect(await refusal(spec, as(user), 'drop database app')).toBe('42501');
      // Programs that make databases connect to `postgres` first; nothing can be made there.
      const elsewhere = { ...as(user), database: 'postgres' };
      expect(await refusal(spec, elsewhere)).toBe(user.access === 'admin' ? null : '42501');
      for (const object of ['table t (a int)', 'temp table t (a int)', 'schema s'])
        expect(await refusal(spec, elsewhere, `create ${object}`)).toBe('42501');
    }
    expect(await refusal(spec, { user: 'platform_admin', password: spec.admin_password })).toBe('28000');
    expect(await refusal(spec, { user: 'platform_replication', password: spec.admin_password })).toBe('28000');
  });

  test('a rotated password locks the old one out, and ends its sessions', async () => {
    const rotated = {
      ...spec,
      users: spec.users.map((user) => (user === writer ? { ...writer, password: 'another-word' } : user)),
    };
    const held = asUser(spec, as(writer), (client) => client.query('select pg_sleep(20)')).catch(
      (error: { code: string }) => error.code,
    );
    await sleep(300);
    await one.driver.ensure(rotated, ctx());
    expect(await held).toBe('57P01');
    expect(await refusal(spec, as(writer))).toBe('28P01');
    expect(await refusal(spec, { user: 'writer', password: 'another-word' })).toBeNull();
    await one.driver.ensure(spec, ctx());
    expect(await refusal(spec, as(writer))).toBeNull();
  });

  test('a user that is not wanted any more goes, what it made stays', async () => {
    await one.driver.ensure({ ...spec, users: spec.users.filter((user) => user !== second) }, ctx());
    expect(await refusal(spec, as(second))).toBe('28P01');
    expect(await rows(spec, 'select id from shop.one')).toEqual([{ id: 1 }]);
    await one.driver.ensure(spec, ctx());
  });

  test('sources that are not allowed are refused; one that is not any more loses its sessions', async () => {
    const elsewhere = from('127.0.0.9');
    expect(await refusal(spec, elsewhere)).toBe('28000');
    const open = { ...spec, allowed_sources: ['127.0.0.9/32', '2001:db8::/32'] };
    await one.driver.ensure(open, ctx());
    expect(await refusal(spec, elsewhere)).toBeNull();
    expect(await refusal(spec, from('127.0.0.10'))).toBe('28000');
    const held = asUser(spec, elsewhere, (client) => client.query('select pg_sleep(20)')).catch(
      (error: { code: string }) => error.code,
    );
    await sleep(300);
    await one.driver.ensure({ ...spec, allowed_sources: ['192.0.2.0/24'] }, ctx());
    expect(await held).toBe('57P01');
    await one.driver.ensure(spec, ctx());
    await expect(one.driver.ensure({ ...spec, allowed_sources: ['all all trust'] }, ctx())).rejects.toMatchObject({
      reason: 'invalid',
    });
  });

  test('another package is another size', async () => {
    const larger = { ...spec, size: { memory_mb: 512, cpus: 1, max_connections: 40 } };
    expect((await one.driver.observe(larger, ctx())).differs).not.toBeNull();
    await one.driver.ensure(larger, ctx());
    expect(
      await rows(
        spec,
        "select current_setting('shared_buffers') as buffers, current_setting('max_connections') as connections",
      ),
    ).toEqual([{ buffers: '128MB', connections: '43' }]);
    await one.driver.ensure(spec, ctx());
  });

  test('stops and starts; killed, it comes back with its data', async () => {
    await one.driver.ensure({ ...spec, running: false }, ctx());
    expect(await one.driver.observe({ ...spec, running: false }, ctx())).toMatchObject({
      state: 'stopped',
      differs: null,
    });
    expect(await refusal(spec, {})).toBe('ECONNREFUSED');
    await one.driver.ensure(spec, ctx());
    const [postmaster] = processesWith(serverDirectoryOf(one, spec.id).data).filter(
      ({ args }) => /bin\/postgres -D/.test(args) && !args.includes('sh -c') && !args.includes('bwrap'),
    );
    process.kill(postmaster!.pid, 'SIGKILL');
    await until(async () => (await one.driver.observe(spec, ctx())).state === 'failed');
    await one.driver.ensure(spec, ctx());
    expect(await rows(spec, 'select id from shop.one')).toEqual([{ id: 1 }]);
  });

  test('metrics and log', async () => {
    await rows(spec, 'select pg_sleep(1.1)');
    const { connections, memory_bytes, cpu_seconds, transactions } = await one.driver.metrics(spec, ctx());
    expect(connections).toBeGreaterThanOrEqual(0);
    expect(transactions).toBeGreaterThan(0);
    expect(memory_bytes).toBeGreaterThan(1 << 20);
    expect(cpu_seconds).toBeGreaterThan(0);
    const first = await one.driver.readLog(spec.id, null);
    let chunk = first;
    const texts = first.lines.map(({ text }) => text);
    while (chunk.more)
      texts.push(...(chunk = await one.driver.readLog(spec.id, chunk.position)).lines.map(({ text }) => text));
    expect(texts.join('\n')).not.toContain(one.directory);
    expect(texts.map(parseLogLine)).toContainEqual(
      expect.objectContaining({
        source: 'slow_query',
        username: 'app',
        database: 'app',
        message: expect.stringContaining('pg_sleep') as unknown,
      }),
    );
    for (const word of [spec.admin_password, ...spec.users.map(({ password }) => password), 'SCRAM-SHA-256$'])
      expect(texts.join('\n')).not.toContain(word);
  });

  test('no password is in an argument list or in a file that others read', () => {
    for (const { password } of spec.users) expect(processesWith(password)).toEqual([]);
    expect(spawnSync('grep', ['-rl', spec.users[0]!.password, one.directory], { encoding: 'utf8' }).stdout).toBe('');
  });

  test('over its storage it only reads; who switches that off meets a limit that nobody switches off', async () => {
    const bytes = (await one.driver.observe(spec, ctx())).storage_used_bytes!;
    const small = { ...spec, storage_gb: (bytes + 40 * 2 ** 20) / 2 ** 26 };
    await rows(spec, 'create table big (t text)');
    const fill = "insert into big select repeat('x', 1000) from generate_series(1, 2000)";
    for (let round = 0; !(await one.driver.observe(small, ctx())).full && round < 40; round++) {
      await rows(spec, fill);
      await one.driver.ensure(small, ctx());
    }
    expect(await refusal(spec, {}, "insert into two (note) values ('d')")).toBe('25006');
    expect((await one.driver.observe(small, ctx())).full).toBe(true);
    await asUser(spec, {}, async (client) => {
      await client.query('set default_transaction_read_only = off');
      await client.query('delete from two');
      for (let round = 0; round < 8; round++) await client.query(fill);
    });
    await one.driver.ensure(small, ctx());
    expect(await refusal(spec, {}, 'set default_transaction_read_only = off; set transaction_read_only = off')).toBe(
      '0A000',
    );
    expect(await refusal(spec, {}, "insert into two (note) values ('e')")).toBe('25006');
    expect(await rows(spec, 'select id from shop.one')).toEqual([{ id: 1 }]);
    await one.driver.ensure(spec, ctx());
    expect((await one.driver.observe(spec, ctx())).full).toBe(false);
    await rows(spec, 'drop table big');
  });

  test('what is not ours is left alone; data are never made twice', async () => {
    mkdirSync(path.join(one.directory, 'db_foreign'));
    const foreign = { ...spec, id: 'db_foreign', port: port + 50 };
    expect(await one.driver.observe(foreign, ctx())).toMatchObject({ state: 'foreign' });
    await expect(one.driver.ensure(foreign, ctx())).rejects.toMatchObject({ reason: 'conflict' });
    await one.driver.remove('db_foreign', ctx());
    expect(readdirSync(one.directory)).toContain('db_foreign');
    const lost = { ...spec, id: 'db_lost', port: port + 51 };
    await untilDone((context) => one.driver.ensure(lost, context));
    await one.driver.ensure({ ...lost, running: false }, ctx());
    const { data } = serverDirectoryOf(one, 'db_lost');
    spawnSync('mv', [data, path.join(path.dirname(data), 'elsewhere')]);
    await expect(one.driver.ensure(lost, ctx())).rejects.toMatchObject({ reason: 'conflict' });
    await one.driver.remove('db_lost', ctx());
    await one.driver.remove('db_lost', ctx());
    expect(readdirSync(one.directory)).not.toContain('db_lost');
  });

  test('servers cannot reach each other', async () => {
    const other = {
      ...postgresqlSpec(version, port + 52),
      id: `db_two_${version}`,
      tenant: 12,
      users: [{ username: 'app', password: 'word-of-the-other', access: 'admin' as const }],
    };
    await untilDone((context) => one.driver.ensure(other, context));
    expect(await refusal(other, { password: spec.users[0]!.password })).toBe('28P01');
    expect(await refusal(other, as(reader))).toBe('28P01');
    await one.driver.remove(`db_two_${version}`, ctx());
  });
});

function existing(): string[] {
  try {
    return readdirSync('/usr/lib/postgresql');
  } catch {
    return [];
  }
}
