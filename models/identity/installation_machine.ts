// The machines and processes of the installation, for its operators: what they report, and what is asked now.
import type { Context } from '../../core/context';
import { daysUntilFull } from '../../core/disk_trend';
import { problem } from '../../core/errors';
import type { InstallationBackups, MachineFacts } from '../../core/catalog/installation_control';
import type {
  CacheCleaning,
  DiskSamples,
  DiskUsed,
  DiskUse,
  ProcessReport,
} from '../../core/catalog/installation_reports';
import { named } from '../../db/statement';
import { loadReports, saveReport, type Report } from '../base/installation_report';
import { noteChange } from '../base/row';
import { promisedCapacity } from '../reference/capacity';
import { promisedMemory } from '../reference/promised_memory';
import { requireOperator } from './operator';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const SILENT_SECONDS = 120;

const CLOCK = named('select extract(epoch from clock_timestamp())::float8 as now');
const TASKS = named(`select id as name, observed ->> 'at' as last_run_at, next_at as next_run_at,
    case when attempts > 0 then last_error end as last_error from schedules where deleted_at is null order by id`);
const WAITING = named(`select greatest(0, coalesce(max(extract(epoch from now() - next_at)), 0))::float8 as seconds
  from schedules where next_at < now() and (lease_until is null or lease_until < now())`);

export interface Disk extends DiskUsed {
  days_until_full: number | null;
  measured_since: string | null;
}

export interface Machine extends Omit<MachineFacts, 'disks'> {
  database_clock_ahead_seconds: number;
  memory_of_instances_bytes: number;
  memory_of_databases_bytes: number;
  promised_storage_bytes: number;
  disks: Disk[];
}

/** @throws role_not_permitted */
export async function loadMachine(ctx: Context): Promise<Machine> {
  await requireOperator(ctx);
  if (ctx.installation === null) throw problem('engine_unavailable');
  const [facts, databases, instancesMb, samples] = await Promise.all([
    ctx.installation.machine(),
    promisedCapacity(ctx.sql),
    promisedMemory(ctx.sql),
    loadReports<DiskSamples>(ctx.sql, 'disks'),
  ]);
  const own = samples.find(({ machine }) => machine === facts.name)?.facts.samples ?? [];
  return {
    ...facts,
    database_clock_ahead_seconds: await clockAhead(ctx),
    memory_of_instances_bytes: instancesMb * MIB,
    memory_of_databases_bytes: databases.memory_mb * MIB,
    promised_storage_bytes: databases.storage_gb * GIB,
    disks: facts.disks.map((disk) => withTrend(disk, own)),
  };
}

/** Half of the way there and back does not count. */
async function clockAhead(ctx: Context): Promise<number> {
  const before = Date.now();
  const [clock] = await ctx.sql.query<{ now: number }>(CLOCK, []);
  const middle = (before + Date.now()) / 2_000;
  return Math.round(((clock?.now ?? middle) - middle) * 1_000) / 1_000;
}

function withTrend(disk: DiskUsed, samples: DiskSamples['samples']): Disk {
  const known = samples.flatMap(({ at, disks }) => {
    const then = disks.find(({ mount }) => mount === disk.mount);
    return then ? [{ at, used: then.used_bytes }] : [];
  });
  const now = { at: new Date().toISOString(), used: disk.used_bytes };
  const days_until_full = daysUntilFull([...known, now], disk.size_bytes);
  return { ...disk, days_until_full, measured_since: known[0]?.at ?? null };
}

/** Kinds that the cleaning removes, and those that are counted in others, too. */
const CLEANED: ReadonlySet<string> = new Set(['build_caches']);
const PARTS: ReadonlySet<string> = new Set(['bin', 'logs_in_the_control_database']);

export interface MachineDiskUse {
  machine: string;
  measured_at: string;
  seconds: number;
  kinds: (DiskUse['kinds'][number] & { is_cleaned: boolean; is_part: boolean })[];
  projects: DiskUse['projects'];
  cleaning: CacheCleaning | null;
}

/** @throws role_not_permitted */
export async function loadDiskUse(ctx: Context): Promise<MachineDiskUse[]> {
  await requireOperator(ctx);
  const [used, cleanings] = await Promise.all([
    loadReports<DiskUse>(ctx.sql, 'disk use'),
    loadReports<CacheCleaning>(ctx.sql, 'cache cleaning'),
  ]);
  return used.map(({ machine, facts: { started_at, ended_at, kinds, projects } }) => ({
    ...{ machine, measured_at: started_at, projects },
    seconds: Math.round((Date.parse(ended_at) - Date.parse(started_at)) / 1_000),
    kinds: [...kinds]
      .sort((one, other) => other.bytes - one.bytes)
      .map((kind) => ({ ...kind, is_cleaned: CLEANED.has(kind.kind), is_part: PARTS.has(kind.kind) })),
    cleaning: cleanings.find((one) => one.machine === machine)?.facts ?? null,
  }));
}

/** Asks a machine to remove its build caches. A second call while it does changes nothing. @throws not_found */
export async function cleanBuildCaches(ctx: Context, machine: string): Promise<CacheCleaning> {
  await requireOperator(ctx);
  const [used, cleanings] = await Promise.all([
    loadReports<DiskUse>(ctx.sql, 'disks'),
    loadReports<CacheCleaning>(ctx.sql, 'cache cleaning'),
  ]);
  if (!used.some((one) => one.machine === machine)) throw problem('not_found', 'No machine of this name has reported.');
  noteChange(ctx, { type: 'installation', id: 'installation', name: machine });
  const last = cleanings.find((one) => one.machine === machine)?.facts;
  if (last?.ended_at === null) return last;
  const wanted: CacheCleaning = {
    ...{ requested_at: new Date().toISOString(), ended_at: null },
    ...{ applications: 0, freed_bytes: 0, kept: 0, problem: null },
  };
  await saveReport(ctx.sql, { machine, name: 'cache cleaning' }, wanted);
  return wanted;
}

export interface Processes {
  processes: (Omit<ProcessReport, 'work'> & {
    machine: string;
    reported_at: string;
    is_silent: boolean;
    work: Work[];
  })[];
  tasks: { name: string; last_run_at: string | null; next_run_at: string | null; last_error: string | null }[];
  waiting_seconds: number;
}

interface Work {
  name: string;
  every_seconds: number;
  runs: number;
  failures: number;
  last_run_at: string | null;
  last_success_at: string | null;
  last_error: string | null;
}

/** @throws role_not_permitted */
export async function loadProcesses(ctx: Context): Promise<Processes> {
  await requireOperator(ctx);
  const [reports, tasks, [waiting]] = await Promise.all([
    loadReports<ProcessReport>(ctx.sql, 'process'),
    ctx.sql.query<Processes['tasks'][number]>(TASKS, []),
    ctx.sql.query<{ seconds: number }>(WAITING, []),
  ]);
  return { processes: reports.map(processOf), tasks, waiting_seconds: waiting?.seconds ?? 0 };
}

function processOf({
  machine,
  facts,
  reported_at,
  age_seconds,
}: Report<ProcessReport>): Processes['processes'][number] {
  const work = facts.work.map(({ everyMs, lastRunAt, lastSuccessAt, lastError, ...rest }) => ({
    ...rest,
    every_seconds: everyMs / 1_000,
    last_run_at: timeOf(lastRunAt),
    last_success_at: timeOf(lastSuccessAt),
    last_error: lastError,
  }));
  return { ...facts, machine, reported_at, is_silent: age_seconds > SILENT_SECONDS, work };
}

const timeOf = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

/** @throws role_not_permitted */
export async function loadBackups(ctx: Context): Promise<InstallationBackups> {
  await requireOperator(ctx);
  if (ctx.installation === null) throw problem('engine_unavailable');
  return ctx.installation.backups();
}
