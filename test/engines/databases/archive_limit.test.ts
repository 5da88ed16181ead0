/** @tier heavy @quarter 4 @covers drivers/database/postgresql */
// The limit of what a PostgreSQL server archives: the window of points in time becomes shorter, backups stay.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseServer } from '../../../drivers/database';
import { ctx } from '../../support/databases/database_server';
import { openEngineTrial, postgresqlSpec, rows, untilDone, type EngineTrial } from '../../support/engines';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

jest.setTimeout(240_000);

const version = '15';
const isThere = existsSync(`/usr/lib/postgresql/${version}/bin/pg_basebackup`);
const gigabyteBytes = 2 ** 28;

(isThere || process.env.CI ? describe : describe.skip)(`the archive of PostgreSQL ${version}`, () => {
  let one: EngineTrial;
  let spec: DatabaseServer;
  beforeAll(async () => {
    one = await openEngineTrial({ gigabyteBytes });
    spec = postgresqlSpec(version, one.firstPort, { archive: true, storage_gb: 1 });
    await ensure();
    await rows(spec, 'create table notes (note text primary key)');
  });
  afterAll(async () => {
    await one?.close();
    expect(one?.trial.errors).toEqual([]);
  });

  const ensure = () => untilDone((context) => one.driver.ensure(spec, context));
  const backup = async (id: string): Promise<{ wal_file: string; taken_at: string }> => {
    const { manifest } = await untilDone((context) => one.driver.backup(spec, id, context));
    return manifest as { wal_file: string; taken_at: string };
  };
  const restore = (id: string, to: { backup_id?: string; until?: string }) =>
    untilDone((context) =>
      one.driver.restore(spec, { id, server_id: spec.id, backup_id: null, until: null, ...to }, context),
    );
  const add = (note: string) => rows(spec, `insert into notes values ('${note}')`);
  const notes = async () => (await rows(spec, 'select note from notes order by note')).map(({ note }) => note);
  const now = async (): Promise<string> => {
    await sleep(30);
    return new Date().toISOString();
  };
  const archive = (): string => {
    const all = path.join(one.directory, spec.id, 'archive');
    return path.join(all, readdirSync(all)[0]!);
  };
  /** As if the server had written a file of the log so large. */
  const fill = (walFile: string): void => {
    const file = path.join(archive(), `${walFile}.partial.gz`);
    expect(spawnSync('fallocate', ['-l', String(8 * gigabyteBytes + 1), file]).status).toBe(0);
  };
  /** As from before an upgrade: its log, which would fit, is none of this archive. */
  const addBackupOfAnother = (like: string): void => {
    const all = path.join(one.directory, 'backups', spec.id);
    cpSync(path.join(all, like), path.join(all, 'bkp_other'), { recursive: true });
    const file = path.join(all, 'bkp_other', 'manifest.json');
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as object;
    const other = { id: 'bkp_other', system_identifier: '1', wal_file: '0000000100000000000000F0' };
    writeFileSync(file, JSON.stringify({ ...manifest, ...other, taken_at: new Date().toISOString() }));
  };
  const logFiles = (): string[] => readdirSync(archive()).filter((file) => /^[0-9A-F]{24}/.test(file));
  const differs = async () => (await one.driver.observe(spec, ctx())).differs;

  test('the window begins with the oldest backup whose log fits, older backups stay', async () => {
    await add('one');
    const first = await backup('bkp_one');
    await add('two');
    addBackupOfAnother('bkp_one');
    const second = await backup('bkp_two');
    await add('three');
    const moment = await now();
    await rows(spec, 'delete from notes');
    expect((await one.driver.window(spec.id, ctx()))?.earliest).toBe(first.taken_at);
    expect(await differs()).toBeNull();
    fill(first.wal_file);
    expect(await differs()).toBe('the limit of its archive');
    await ensure();
    expect(await differs()).toBeNull();
    expect((await one.driver.window(spec.id, ctx()))?.earliest).toBe(second.taken_at);
    expect(logFiles().filter((file) => file.slice(8, 24) < second.wal_file.slice(8, 24))).toEqual([]);
    await restore('rst_moment', { until: moment });
    expect(await notes()).toEqual(['one', 'three', 'two']);
    await restore('rst_first', { backup_id: 'bkp_one' });
    expect(await notes()).toEqual(['one']);
  });

  test('where the log of none fits, it begins anew with the next one', async () => {
    const third = await backup('bkp_three');
    fill(third.wal_file);
    await ensure();
    expect(logFiles()).toEqual([]);
    expect(await one.driver.window(spec.id, ctx())).toBeNull();
    const fourth = await backup('bkp_four');
    await add('four');
    const moment = await now();
    await rows(spec, 'delete from notes');
    expect((await one.driver.window(spec.id, ctx()))?.earliest).toBe(fourth.taken_at);
    await restore('rst_anew', { until: moment });
    expect(await notes()).toEqual(['four', 'one']);
    await restore('rst_third', { backup_id: 'bkp_three' });
    expect(await notes()).toEqual(['one']);
  });
});
