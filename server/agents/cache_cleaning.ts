// Removes caches of builds where an operator has asked for it: the next build makes them again, and takes longer.
import { mkdir, readdir, rename } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { CacheCleaning } from '../../core/catalog/installation_reports';
import { repeatWork } from '../../core/process/background';
import { removeTree } from '../../core/process/remove_tree';
import { measureUsedRoom } from '../../drivers/machine/measure';
import { applicationsBeingDeployed } from '../../models/applications/being_deployed';
import { loadReports, saveReport } from '../../models/base/installation_report';
import type { Platform } from '../platform/platform';

const CHECK_EVERY_MS = 5_000;
const MEASURE_WITHIN_MS = 10 * 60_000;
/** Of caches that were moved aside, beside those of applications. */
const ASIDE = '.cleaned';

type Parts = Pick<Platform, 'database' | 'log'> & { caches: string };

/** @param parts `caches`: directory with one of each application */
export function startCacheCleaning(parts: Parts, cleaned: () => void): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const failure = 'the build caches could not be cleaned';
  const work = repeatWork({ name: 'cache_cleaning', everyMs: CHECK_EVERY_MS, log: parts.log, failure }, async () => {
    const reports = await loadReports<CacheCleaning>(parts.database, 'cache cleaning');
    const wanted = reports.find(({ machine }) => machine === os.hostname())?.facts;
    if (wanted?.ended_at !== null || stopping.signal.aborted) return;
    await carryOut(parts, wanted, stopping.signal);
    cleaned();
  });
  return {
    async stop() {
      stopping.abort();
      await work.stop();
    },
  };
}

async function carryOut({ database, caches }: Parts, wanted: CacheCleaning, signal: AbortSignal): Promise<void> {
  const save = (facts: Partial<CacheCleaning>): Promise<void> =>
    saveReport(database, { machine: os.hostname(), name: 'cache cleaning' }, { ...wanted, ...facts });
  try {
    const found = await cleanCaches({ database, caches }, signal);
    await save({ ...found, ended_at: new Date().toISOString(), problem: null });
  } catch (error) {
    // Cut off by a stop: the next start goes on.
    if (signal.aborted) return;
    const problem = 'The build caches could not be cleaned. The log of the service says why.';
    await save({ ended_at: new Date().toISOString(), problem });
    throw error;
  }
}

/**
 * Those of applications that are being deployed stay. They are moved aside while no deployment can begin, which takes
 * no time, and removed after that: builds find either all of their cache, or none.
 */
export async function cleanCaches(
  { database, caches }: Pick<Parts, 'database' | 'caches'>,
  signal: AbortSignal,
): Promise<Pick<CacheCleaning, 'applications' | 'freed_bytes' | 'kept'>> {
  const aside = path.join(caches, ASIDE);
  await mkdir(aside, { recursive: true, mode: 0o700 });
  const names = (await readdir(caches)).filter((name) => !name.startsWith('.'));
  const found = (await Promise.all(names.map((name) => cachesOf(caches, name)))).flat();
  const moved = new Set<string>();
  const kept = new Set<string>();
  await database.transaction(async (sql) => {
    const busy = await applicationsBeingDeployed(sql);
    for (const { application, cache } of found) {
      if (busy.has(application)) kept.add(application);
      else if (await moveAside(path.join(caches, application, cache), path.join(aside, `${application}.${cache}`)))
        moved.add(application);
    }
  });
  const { bytes: freed_bytes } = await measureUsedRoom(aside, MEASURE_WITHIN_MS, signal);
  await removeTree(aside);
  return { applications: moved.size, freed_bytes, kept: kept.size };
}

/** Not the layers of images, which instances run on. */
async function cachesOf(caches: string, application: string): Promise<{ application: string; cache: string }[]> {
  const names = await readdir(path.join(caches, application)).catch(() => []);
  return names.filter((name) => /^\w+$/.test(name)).map((cache) => ({ application, cache }));
}

async function moveAside(from: string, to: string): Promise<boolean> {
  // What an earlier cleaning has not removed has the name.
  await removeTree(to);
  return rename(from, to).then(
    () => true,
    () => false,
  );
}
