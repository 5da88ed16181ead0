// Backups, points in time, replicas and upgrades of real PostgreSQL servers, and all of it killed in the middle.
import { spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerSpec } from '../../drivers/database';
import { openPostgresql } from '../../drivers/database/postgresql/open';
import { ctx } from '../support/database_server';
import { openEngineTrial, postgresqlSpec, refusal, rows, untilDone, type EngineTrial } from '../support/engines';
import { kill, processesWith, spawnProgram } from '../support/processes';
import { until } from '../support/runtime';

jest.setTimeout(90_000);

const version = '15';
const isThere = existsSync(`/usr/lib/postgresql/${version}/bin/pg_basebackup`);
const port = 24_300;
const word = 'administrators-word';

(isThere || process.env.CI ? describe : describe.skip)(`PostgreSQL ${version} with its tools`, () => {
  let one: EngineTrial;
  let spec: ServerSpec;
  const ensure = (wanted: ServerSpec) => untilDone((context) => one.driver.ensure(wanted, context));
  const restore = (wanted: ServerSpec, id: string, more: { backup_id?: string; until?: string; server_id?: string }) =>
    untilDone((context) => one.driver.restore(wanted, { id, server_id: spec.id, backup_id: null, until: null, ...more }, context));
  const notes = async (of: ServerSpec) => (await rows(of, 'select note from notes order by note')).map(({ note }) => note);
  const at = async () => {
    await sleep(30);
    return String((await rows(spec, "select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') as now"))[0]?.now);
  };

  beforeAll(async () => {
    one = await openEngineTrial();
    spec = postgresqlSpec(version, port, { archive: true, replicas: [] });
    await ensure(spec);
    await rows(spec, "create table notes (note text primary key); insert into notes values ('a')");
  });
  afterAll(async () => {
    await one.trial.close();
    expect(one.trial.errors).toEqual([]);
  });

  test('a backup: made once, found again, downloaded as a dump that pg_restore reads', async () => {
    expect(await one.driver.window(spec.id, ctx())).toBeNull();
    const made = await untilDone((context) => one.driver.backup(spec, 'bkp_one', context));
    expect(made.size_bytes).toBeGreaterThan(100_000);
    expect(await one.driver.backup(spec, 'bkp_one', ctx())).toEqual(made);
    const { stream, file_name } = await one.driver.openBackup(spec.id, 'bkp_one');
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const file = path.join(one.trial.root, file_name);
    writeFileSync(file, Buffer.concat(chunks));
    expect(spawnSync('pg_restore', ['--list', file], { encoding: 'utf8' }).stdout).toContain('TABLE DATA public notes');
    expect(file_name).toMatch(/^app-\d{8}T\d{6}Z\.dump$/);
  });

  test('rows that were deleted come back from a point in time, and go again with a second restore', async () => {
    await rows(spec, "insert into notes values ('b')");
    const before = await at();
    await rows(spec, 'delete from notes');
    const after = await at();
    await rows(spec, "insert into notes values ('c')");
    const window = await one.driver.window(spec.id, ctx());
    expect(window!.earliest < before && after < window!.latest).toBe(true);
    await restore(spec, 'rst_one', { until: before });
    expect(await notes(spec)).toEqual(['a', 'b']);
    await rows(spec, "insert into notes values ('d')");
    await restore(spec, 'rst_one', { until: before });
    expect(await notes(spec)).toEqual(['a', 'b', 'd']);
    await restore(spec, 'rst_two', { until: after });
    expect(await notes(spec)).toEqual([]);
    await restore(spec, 'rst_three', { until: await at() });
    expect(await notes(spec)).toEqual([]);
    await expect(restore(spec, 'rst_four', { until: '2020-01-01T00:00:00Z' })).rejects.toMatchObject({ reason: 'invalid' });
    await restore(spec, 'rst_five', { backup_id: 'bkp_one' });
    expect(await notes(spec)).toEqual(['a']);
    expect(readdirSync(path.join(one.directory, spec.id)).filter((name) => /aside|next|before/.test(name))).toEqual([]);
  });

  test('a copy is a server of its own, with users of its own', async () => {
    await rows(spec, "insert into notes values ('for the copy')");
    const copy = { ...postgresqlSpec(version, port + 1), id: 'db_copy', tenant: 12, users: [{ username: 'app', password: 'word-of-the-copy', access: 'admin' as const }] };
    await untilDone((context) => one.driver.backup(spec, 'bkp_two', context));
    await restore(copy, 'rst_copy', { until: await at() });
    expect(await notes(copy)).toEqual(['a', 'for the copy']);
    expect(await refusal(copy, { password: spec.users[0]!.password })).toBe('28P01');
    await rows(copy, 'drop table notes');
    expect(await notes(spec)).toEqual(['a', 'for the copy']);
    await one.driver.remove(copy.id, ctx());
    await one.driver.removeBackup(spec.id, 'bkp_two', ctx());
  });

  test('a replica follows, reads only, and becomes a server of its own; the primary is as before', async () => {
    const primary = { ...spec, replicas: ['rep_one'] };
    const replica: ServerSpec = { ...spec, id: 'rep_one', tenant: 13, port: port + 2, archive: false, replicas: undefined, replica_of: { server_id: spec.id, port, password: word } };
    await ensure(primary);
    await ensure(replica);
    await rows(spec, "insert into notes values ('streamed')");
    await until(async () => (await notes(replica)).includes('streamed'));
    expect(await one.driver.observe(replica, ctx())).toMatchObject({ state: 'running', differs: null, replication_lag_seconds: 0 });
    expect(await refusal(replica, {}, "insert into notes values ('x')")).toBe('25006');
    await untilDone((context) => one.driver.promote(replica, context));
    await untilDone((context) => one.driver.promote(replica, context));
    const promoted = { ...replica, replica_of: null };
    await ensure(promoted);
    await ensure(spec);
    await rows(promoted, "insert into notes values ('alone')");
    expect(await notes(spec)).not.toContain('alone');
    expect(await one.driver.observe(promoted, ctx())).toMatchObject({ state: 'running', differs: null, replication_lag_seconds: null });
    await one.driver.remove('rep_one', ctx());
  });

  test('an upgrade keeps data, users and rights; what it cannot do it says', async () => {
    const other = { ...postgresqlSpec(version, port + 3), id: 'db_old', tenant: 14 };
    other.users.push({ username: 'reader', password: 'readers-word', access: 'read_only' });
    await ensure(other);
    await rows(other, "create table notes (note text primary key, n serial); insert into notes select 'n' || g from generate_series(1, 1000) g");
    await rows(other, "set role none; alter role app set work_mem = '3MB'");
    const newer = { ...other, version: '18' };
    await expect(one.driver.ensure(newer, ctx())).rejects.toMatchObject({ reason: 'conflict' });
    await untilDone((context) => one.driver.upgrade(newer, version, context));
    expect(await rows(newer, "select count(*)::int as n, split_part(version(), ' ', 2)::float::int as major, current_setting('work_mem') as memory from notes")).toEqual([{ n: 1000, major: 18, memory: '3MB' }]);
    expect(await rows(newer, 'select count(*)::int as n from notes', { user: 'reader', password: 'readers-word' })).toEqual([{ n: 1000 }]);
    expect(await refusal(newer, { user: 'reader', password: 'readers-word' }, 'delete from notes')).toBe('42501');
    await ensure(newer);
    await expect(one.driver.backup(newer, 'bkp_new', ctx())).rejects.toMatchObject({ reason: 'unsupported', message: expect.stringContaining('postgresql-client-18') as unknown });
    await one.driver.remove(other.id, ctx());
  });

  test('an upgrade that fails leaves the old version with its data', async () => {
    const broken = { ...postgresqlSpec(version, port + 4), id: 'db_broken', tenant: 15 };
    await ensure(broken);
    await rows(broken, 'create table notes (note text); insert into notes values (1)');
    const { found } = one;
    const lacking = openPostgresql({ runtime: one.trial.runtime, directory: one.directory, found: found.map((each) => (each.series === '18' ? { ...each, path: '/nowhere/bin/postgres', source: 'system' as const } : each)) });
    await expect(untilDone((context) => lacking.upgrade({ ...broken, version: '18' }, version, context))).rejects.toMatchObject({ reason: 'invalid' });
    expect(await notes(broken)).toEqual(['1']);
    await one.driver.remove(broken.id, ctx());
  });

  describe('a control plane that is killed', () => {
    const program = (call: string) => `
      const { openLocalRuntime } = require('./drivers/runtime/local');
      const { openPostgresql } = require('./drivers/database/postgresql/open');
      const { hostFacts } = require('./drivers/host');
      const { driverContext } = require('./drivers/driver');
      const [runtimeOptions, directory, spec] = process.argv.slice(1).map((one) => JSON.parse(one));
      void (async () => {
        const runtime = await openLocalRuntime(runtimeOptions);
        const driver = openPostgresql({ runtime, directory, found: (await hostFacts()).postgresql });
        console.log('begun');
        await driver.${call};
        console.log('done');
        process.exit(0);
      })().catch((error) => { console.error(error); process.exit(1); });`;
    const begin = (call: string, of: ServerSpec): ChildProcess => spawnProgram(program(call), [one.trial.options, one.directory, of].map((each) => JSON.stringify(each)));
    const killedAfter = async (call: string, of: ServerSpec, ms: number) => {
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
      expect(readdirSync(path.join(one.directory, 'backups', spec.id)).filter((name) => name.startsWith('.draft'))).toEqual([]);
      await one.driver.removeBackup(spec.id, 'bkp_killed', ctx());
      await one.driver.removeBackup(spec.id, 'bkp_killed', ctx());
    });

    test('in the middle of a restore, with the server killed as well', async () => {
      await rows(spec, "delete from notes; insert into notes values ('kept')");
      const until = await at();
      await rows(spec, 'delete from notes');
      const call = `restore(spec, { id: 'rst_killed', server_id: spec.id, backup_id: null, until: '${until}' }, driverContext(30000))`;
      for (const ms of [200, 700, 1_300, 1_900]) {
        await killedAfter(call, spec, ms);
        for (const { pid } of processesWith(`${one.directory}/${spec.id}/data`)) spawnSync('kill', ['-9', String(pid)]);
      }
      await restore(spec, 'rst_killed', { until });
      expect(await notes(spec)).toEqual(['kept']);
      expect(readdirSync(path.join(one.directory, spec.id)).filter((name) => /aside|next|before/.test(name))).toEqual([]);
    });

    test('a restore that nobody goes on with leaves what was there', async () => {
      const until = await at();
      await rows(spec, "insert into notes values ('later')");
      await killedAfter(`restore(spec, { id: 'rst_left', server_id: spec.id, backup_id: null, until: '${until}' }, driverContext(30000))`, spec, 900);
      await ensure(spec);
      expect(['later', undefined]).toContain((await notes(spec)).find((note) => note === 'later'));
      expect(await notes(spec)).toContain('kept');
    });
  });
});
