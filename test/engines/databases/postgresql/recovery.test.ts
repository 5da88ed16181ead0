/** @tier heavy @quarter 3 @covers drivers/database/postgresql */
// Backups and points in time of real PostgreSQL servers.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DatabaseServer, RestoreFrom } from '../../../../drivers/database';
import { ctx } from '../../../support/databases/database_server';
import {
  notesOf,
  openEngineTrial,
  postgresqlSpec,
  refusal,
  restoreFrom,
  rows,
  serverTime,
  untilDone,
  type EngineTrial,
} from '../../../support/engines';
import { fileNeeds } from '../../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const version = '15';
const isThere = existsSync(`/usr/lib/postgresql/${version}/bin/pg_basebackup`);

(isThere || process.env.CI ? describe : describe.skip)(`backups of PostgreSQL ${version}`, () => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  let port: number;
  const ensure = (wanted: DatabaseServer) => untilDone((context) => one.driver.ensure(wanted, context));
  const restore = (wanted: DatabaseServer, id: string, more: Partial<RestoreFrom>) =>
    untilDone((context) => one.driver.restore(wanted, restoreFrom(spec, id, more), context));

  const timeline = async () =>
    String((await rows(spec, 'select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline'))[0]?.timeline);

  beforeAll(async () => {
    one = await openEngineTrial();
    port = one.firstPort;
    spec = postgresqlSpec(version, port, { archive: true, replicas: [] });
    await ensure(spec);
    await rows(spec, "create table notes (note text primary key); insert into notes values ('a')");
  });
  afterAll(async () => {
    await one.close();
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
    const before = await serverTime(spec);
    await rows(spec, 'delete from notes');
    const after = await serverTime(spec);
    await rows(spec, "insert into notes values ('c')");
    const window = await one.driver.window(spec.id, ctx());
    expect(window!.earliest < before && after < window!.latest).toBe(true);
    await restore(spec, 'rst_one', { until: before });
    expect(await notesOf(spec)).toEqual(['a', 'b']);
    await rows(spec, "insert into notes values ('d')");
    await restore(spec, 'rst_one', { until: before });
    expect(await notesOf(spec)).toEqual(['a', 'b', 'd']);
    await restore(spec, 'rst_two', { until: after });
    expect(await notesOf(spec)).toEqual([]);
    await restore(spec, 'rst_three', { until: await serverTime(spec) });
    expect(await notesOf(spec)).toEqual([]);
    await expect(restore(spec, 'rst_four', { until: '2020-01-01T00:00:00Z' })).rejects.toMatchObject({
      reason: 'invalid',
    });
    await restore(spec, 'rst_five', { backup_id: 'bkp_one' });
    expect(await notesOf(spec)).toEqual(['a']);
    expect(readdirSync(path.join(one.directory, spec.id)).filter((name) => /aside|next|before/.test(name))).toEqual([]);
  });

  test('a timeline from a time without an archive keeps its number', async () => {
    const archive = path.join(one.directory, spec.id, 'archive');
    const [system = ''] = readdirSync(archive);
    await untilDone((context) => one.driver.backup(spec, 'bkp_first', context));
    await ensure({ ...spec, archive: false });
    // Nobody keeps the history of the timeline that begins here.
    await untilDone((context) =>
      one.driver.restore(
        { ...spec, archive: false },
        { id: 'rst_dark', server_id: spec.id, backup_id: 'bkp_first', until: null },
        context,
      ),
    );
    const dark = await timeline();
    expect(readdirSync(path.join(archive, system))).not.toContain(`${dark}.history.gz`);
    await ensure(spec);
    await rows(spec, "insert into notes values ('dark')");
    await untilDone((context) => one.driver.backup(spec, 'bkp_dark', context));
    const inTheDark = await serverTime(spec);
    await rows(spec, "insert into notes values ('later')");
    for (const [id, backup_id] of [
      ['rst_out', 'bkp_first'],
      ['rst_again', 'bkp_first'],
    ] as const) {
      await restore(spec, id, { backup_id });
      expect(parseInt(await timeline(), 16)).toBeGreaterThan(parseInt(dark, 16));
      await rows(spec, "insert into notes values ('other')");
    }
    await restore(spec, 'rst_dark_again', { until: inTheDark });
    expect(await notesOf(spec)).toContain('dark');
    expect(await notesOf(spec)).not.toContain('later');
    expect(await notesOf(spec)).not.toContain('other');
    await rows(spec, "delete from notes where note = 'dark'");
    for (const id of ['bkp_first', 'bkp_dark']) await one.driver.removeBackup(spec.id, id, ctx());
  });

  test('a copy is a server of its own, with users of its own', async () => {
    await rows(spec, "insert into notes values ('for the copy')");
    const copy = {
      ...postgresqlSpec(version, port + 1),
      id: 'db_copy_postgresql',
      tenant: 12,
      // Fewer than the log says that the original has.
      size: { ...spec.size, max_connections: 5 },
      users: [{ username: 'app', password: 'word-of-the-copy', access: 'admin' as const }],
    };
    await untilDone((context) => one.driver.backup(spec, 'bkp_two', context));
    await restore(copy, 'rst_copy', { until: await serverTime(spec) });
    expect(await notesOf(copy)).toEqual(['a', 'for the copy']);
    expect(await refusal(copy, { password: spec.users[0]!.password })).toBe('28P01');
    await rows(copy, 'drop table notes');
    expect(await notesOf(spec)).toEqual(['a', 'for the copy']);
    await one.driver.remove(copy.id, ctx());
    await one.driver.removeBackup(spec.id, 'bkp_two', ctx());
  });
});
