// Whether the control database answers, and whether its schema is that of this version.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../core/config';
import { missingOperator } from '../../core/catalog/missing_operator';
import { StartupError } from '../../core/startup_error';
import { openControlDatabase, type ControlDatabase } from '../../db/control_database';
import { requireCompatibleSchema, pendingMigrations } from '../../db/migrate';
import { countOperators } from '../../models/identity/operator';
import { openEmbedded } from '../platform/embedded';
import { MIGRATIONS } from '../platform/platform';
import type { Finding } from './finding';

export async function database(config: Config): Promise<Finding[]> {
  if (!isMade(config))
    return [
      {
        check: 'database',
        status: 'warning',
        detail: 'the embedded server does not exist yet; the first start creates it',
      },
    ];
  return withDatabase(config, (opened) => checkDatabase(opened, config.databaseUrl ? 'DATABASE_URL' : 'embedded'));
}

/** Whether there is a database to look at: the embedded one is made by the first start. */
export function isMade({ databaseUrl, dataDir }: Config): boolean {
  const home = path.join(dataDir, 'postgres');
  return databaseUrl !== null || (existsSync(home) && readdirSync(home).some((name) => name.startsWith('data-')));
}

/** Runs with the database open, the embedded one beside a running service too. */
export async function withDatabase<T>(config: Config, run: (opened: ControlDatabase) => Promise<T>): Promise<T> {
  const engine = config.databaseUrl
    ? { url: config.databaseUrl, close: async () => {} }
    : await openEmbedded({ dataDir: config.dataDir, user: config.postgresUser, binaries: config.pgBin ?? undefined });
  const opened = openControlDatabase(engine.url, { poolSize: 1, name: 'platform-api doctor' });
  try {
    return await run(opened);
  } finally {
    await opened.close();
    await engine.close();
  }
}

async function checkDatabase(opened: ControlDatabase, source: string): Promise<Finding[]> {
  const [row] = await opened.query<{ version: string }>(
    { name: 'doctor', text: `select current_setting('server_version') as version` },
    [],
  );
  const reached: Finding = {
    check: 'database',
    status: 'ok',
    detail: `PostgreSQL ${row?.version} answers (${source})`,
  };
  return [reached, await migrations(opened)];
}

async function migrations(database: ControlDatabase): Promise<Finding> {
  const check = 'migrations';
  try {
    await requireCompatibleSchema(database.knex, MIGRATIONS);
  } catch (error) {
    if (error instanceof StartupError) return { check, status: 'failed', detail: error.message };
    throw error;
  }
  const pending = await pendingMigrations(database, MIGRATIONS);
  if (pending.length) return { check, status: 'warning', detail: `the next start will apply ${pending.join(', ')}` };
  return { check, status: 'ok', detail: 'up to date' };
}

/** Nothing before the first start has made an operator, and nothing on a schema that does not know them yet. */
export async function operators(config: Config): Promise<Finding[]> {
  if (!isMade(config)) return [];
  return withDatabase(config, async (opened) => {
    if ((await pendingMigrations(opened, MIGRATIONS)).length) return [];
    const count = await countOperators(opened);
    return count ? [] : [{ check: 'operators', status: 'warning', detail: missingOperator() }];
  });
}
