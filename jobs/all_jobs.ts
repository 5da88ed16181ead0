// The folder is the registry: every file that exports `job` adds a kind to the loop, with its declarations.
import { createRequire } from 'node:module';
import { layerFiles } from '../core/layer_files';
import type { Sql } from '../core/context';
import type { UnitOwner } from '../models/applications/unit_owner';
import type { HostParts, Leftovers, LogSource } from './declarations';
import type { HostDrivers, Job } from './job';

/** Every job of this folder and of its groups, by file name. @throws Error where two jobs have one table */
export function allJobs(): Job[] {
  const load = createRequire(__filename);
  const files = layerFiles(__dirname, /^[a-z_]+\.(ts|js)$/);
  const jobs = files.flatMap((file) => (load(file) as { job?: Job }).job ?? []);
  if (new Set(jobs.map(({ table }) => table)).size < jobs.length) throw new Error('jobs: two jobs work on one table');
  return jobs;
}

/** Whose units are whose. */
export function unitOwners(jobs: readonly Job[] = allJobs()): UnitOwner[] {
  return jobs.flatMap(({ table, units }) => (units ? [{ table, ...units }] : []));
}

export function allLeftovers(jobs: readonly Job[] = allJobs()): Leftovers[] {
  return jobs.flatMap(({ leftovers = [] }) => leftovers);
}

/** Logs of all kinds that there are now. */
export async function allLogs(sql: Sql, drivers: HostDrivers, jobs: readonly Job[] = allJobs()): Promise<LogSource[]> {
  return (await Promise.all(jobs.map((job) => job.logs?.(sql, drivers) ?? Promise.resolve([])))).flat();
}

/** Host drivers that are opened by kinds; the host opens the others itself. */
type KindDrivers = Omit<
  HostDrivers,
  | 'source'
  | 'gitProviders'
  | 'builder'
  | 'runtime'
  | 'workloads'
  | 'tasks'
  | 'ingress'
  | 'nameserver'
  | 'registry'
  | 'cdn'
  | 'directories'
  | 'shipper'
  | 'facts'
>;

/** Opens the drivers of all kinds that declare host drivers (`openDrivers`). */
export async function openKindDrivers(host: HostParts, jobs: readonly Job[] = allJobs()): Promise<KindDrivers> {
  const opened: Partial<HostDrivers> = {};
  for (const job of jobs) Object.assign(opened, await job.openDrivers?.(host));
  return opened as KindDrivers;
}
