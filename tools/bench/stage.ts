// What the measures of a run share: the data directory, the data, the settings of the service.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { openEmbedded } from '../../server/platform/embedded';
import type { Plan } from './plan';
import { startApi } from './processes';
import { seed, type Seed } from './seed';

export interface Stage {
  dataDir: string;
  data: Seed;
  plan: Plan;
}

/**
 * Every check is made; only the numbers are so high that nothing is refused.
 * The worker would compete with the faces for the rows that POST makes: it is left out where there is POST.
 */
export const OPEN = {
  LOG_LEVEL: 'info',
  VOLUME_DRIVER: 'directory',
  PREFERRED_NODE: 'host',
  PREFERRED_PYTHON: 'host',
  RATE_LIMIT_READ: '10000000',
  RATE_LIMIT_WRITE: '10000000',
  RATE_LIMIT_FAILED_AUTH: '10000000',
  QUOTAS: '{"volumes":1000000,"volume_storage_gb":1000000000}',
};
export const FACES = { ...OPEN, WORKER: 'separate' };

/** A new data directory, filled; gone when `run` has ended. */
export async function onStage(plan: Plan, node: string, run: (stage: Stage) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-'));
  chmodSync(dataDir, 0o711); // as root, the database runs as another user
  // Servers that are stopping may still write.
  const clear = (): void => rmSync(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  process.once('exit', clear);
  try {
    await run({ dataDir, data: await fill(dataDir, plan, node), plan });
  } finally {
    clear();
  }
}

/** The first start makes tables and owner. */
async function fill(dataDir: string, plan: Plan, node: string): Promise<Seed> {
  const api = await startApi({ node }, dataDir, FACES);
  try {
    return await withDatabase(dataDir, (url) => seed(url, plan.size));
  } finally {
    await api.stop();
  }
}

/** The embedded database of the directory, for as long as `run` takes. */
export async function withDatabase<T>(dataDir: string, run: (url: string) => Promise<T>): Promise<T> {
  const database = await openEmbedded({ dataDir });
  try {
    return await run(database.url);
  } finally {
    await database.close();
  }
}

/** Takes from the worker what writes have left for it: making volumes is another story, and fills the disk. */
export function settle(url: string): Promise<unknown> {
  return withClient(url, (client) => client.query('update volumes set next_at = null where next_at is not null'));
}

export async function withClient<T>(url: string, run: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}
