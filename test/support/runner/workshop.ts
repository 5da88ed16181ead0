// A database and a directory of volumes for tests of the loop, and what the API would write into them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig } from '../../../core/config';
import { mintId } from '../../../core/ids';
import { createLog, type LogLevel } from '../../../core/log/log';
import { secretBox } from '../../../core/secrets';
import { directoryVolumes } from '../../../drivers/volume/directory';
import { loopImageVolumes } from '../../../drivers/volume/loop_image';
import type { LoopParts, Values } from '../../../jobs/job';
import { describeTables, openControlDatabase, type ControlDatabase } from '../../../db/control_database';
import { listen } from '../../../server/platform/listener';
import { openProbes } from '../../../server/platform/probes';
import { createTestDatabase } from '../databases/database';

/** What one GB of a volume counts in these tests. */
export const UNIT_BYTES = 1 << 20;

export interface Workshop {
  url: string;
  directory: string;
  database: ControlDatabase;
  parts: LoopParts;
  /** Volumes as the API inserts them. */
  addVolumes(count: number, values?: Values): Promise<string[]>;
  /** A write of desired fields, as the API makes it. */
  change(table: string, id: string, values: Values): Promise<void>;
  row<Row = Values>(table: string, id: string): Promise<Row | undefined>;
  rows<Row = Values>(text: string, values?: unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

export async function openWorkshop(): Promise<Workshop> {
  const { url, drop } = await createTestDatabase();
  const directory = mkdtempSync(path.join(tmpdir(), 'platform-api-volumes-'));
  const parts = await openParts(url, directory, 'silent');
  const { database } = parts;
  await database.knex('accounts').insert({ id: 'acc_1', name: 'tests' });
  await database.knex('projects').insert({
    id: 'prj_1',
    account_id: 'acc_1',
    name: 'tests',
    default_region: 'local',
    created_at: new Date(),
    updated_at: new Date(),
  });
  const rows: Workshop['rows'] = async (text, values = []) =>
    (await database.knex.raw<{ rows: never[] }>(text, values as string[])).rows;
  return {
    ...{ url, directory, database, parts, rows },
    addVolumes: (count, values) => addVolumes(database, count, values),
    change: (table, id, values) => change(database, table, id, values),
    row: async (table, id) => (await database.knex(table).where({ id }).first()) as never,
    async close() {
      await database.close();
      await drop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** What a loop is given, here and in child processes. */
export async function openParts(url: string, directory: string, level: LogLevel): Promise<LoopParts> {
  const log = createLog(level);
  const database = openControlDatabase(url, { poolSize: 8 });
  await describeTables(database);
  const config = loadConfig({ PLATFORM_DATA_DIR: directory });
  const place = { directory, sizeUnitBytes: UNIT_BYTES };
  const driver = directoryVolumes(place);
  const volumes = { default: driver, byName: new Map([driver, loopImageVolumes(place)].map((one) => [one.name, one])) };
  return {
    ...{ database, log, drivers: { volumes, host: null } },
    config,
    secrets: secretBox([{ id: 'test', key: Buffer.alloc(32, 1) }]),
    probes: openProbes(config),
    listen: (handlers) => listen(url, handlers, log),
  };
}

/** Waits until `check` holds. @throws Error with what was waited for when it takes too long */
export async function until(what: string, check: () => Promise<boolean>, withinMs = 15_000): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain: ${what}`);
    await sleep(25);
  }
}

async function addVolumes(database: ControlDatabase, count: number, values: Values = {}): Promise<string[]> {
  const made = Array.from({ length: count }, () => ({
    id: mintId('vol'),
    created_at: new Date(),
    updated_at: new Date(),
    project_id: 'prj_1',
    size_gb: 2,
    region: 'local',
    ...values,
  }));
  await database.knex('volumes').insert(made.map((row) => ({ name: row.id.replace('_', '-'), ...row })));
  await database.knex.raw(`select pg_notify('due', 'volumes')`);
  return made.map(({ id }) => id);
}

async function change(database: ControlDatabase, table: string, id: string, values: Values): Promise<void> {
  const { knex } = database;
  const bumped = { generation: knex.raw('generation + 1'), next_at: knex.raw('now()'), attempts: 0, deadline_at: null };
  await knex.transaction(async (trx) => {
    await trx(table)
      .where({ id })
      .update({ ...bumped, ...values });
    await trx.raw(`select pg_notify('due', ?)`, [table]);
  });
}
