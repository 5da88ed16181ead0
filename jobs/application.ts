// Applications: their instances are brought to what is wanted, and their status follows from them. Woken by whatever
// changes an instance, a process type or a deployment.
import path from 'node:path';
import { Application } from '../models/application';
import { freeLeases } from '../db/lease';
import { isDeploying, stackOfApplication, type StackPlace } from '../models/stack';
import { removeStack } from '../models/stack_removal';
import { bringUp } from './application/stack';
import { applicationStatus, showProcesses } from './application/status';
import { removeDirectory } from './deployment/row';
import {
  around,
  gone,
  progressing,
  settled,
  type HostDrivers,
  type Job,
  type JobContext,
  type LoopRow,
  type Outcome,
} from './job';

interface ApplicationRow extends LoopRow {
  project_id: string;
  status: Application['status'];
  current_deployment_id: string | null;
}

/** Of which nothing is to run. */
const AT_REST = new Set<string>(['new', 'deploying', 'stopping', 'stopped']);
const MOVING = new Set<string>(Application.states.transitional);
/** Changes are told; these are in case nobody heard them. */
const INSURANCE_MS = 60_000;
const MOVING_MS = 5_000;
const GOING_MS = 1_000;

export const job: Job<ApplicationRow> = {
  table: Application.table,
  host: true,
  prepare: (sql) => freeLeases(sql, Application.table),
  states: Application.states,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : keepUp(row, ctx)),
};

async function keepUp(row: ApplicationRow, ctx: JobContext): Promise<Outcome> {
  const place = placeOf(row);
  const stack = await stackOfApplication(ctx.sql, row.id);
  // A deployment, a stop or a start came since the row was read.
  if (stack?.status !== row.status) return progressing(0);
  const { processes, present } = stack;
  const wants = processes.map((process) => ({
    ...process,
    instances: AT_REST.has(row.status) ? 0 : process.instances,
  }));
  const asWanted = await bringUp(place, wants, present, ctx);
  await showProcesses(processes, present, AT_REST, row.status, ctx);
  const { status, current_deployment_id } = row;
  const next = applicationStatus({
    status,
    current_deployment_id,
    processes,
    present,
    deploying: await isDeploying(ctx.sql, place),
  });
  const columns = next.status === status && (next.status_reason ?? null) === (row.status_reason ?? null) ? {} : next;
  if (!asWanted || next.status !== status || MOVING.has(next.status))
    return progressing(next.status === status ? MOVING_MS : 0, columns);
  return settled(columns, next.status === 'new' || next.status === 'stopped' ? null : around(INSURANCE_MS));
}

async function tearDown(row: ApplicationRow, ctx: JobContext): Promise<Outcome> {
  if (await removeStack(ctx.sql, placeOf(row))) return progressing(GOING_MS);
  const { source, directories } = ctx.drivers.host as HostDrivers;
  await source.removeMirror(row.id, ctx);
  await removeDirectory(path.join(directories.caches, row.id));
  return gone;
}

function placeOf({ id, project_id }: ApplicationRow): StackPlace {
  return { application_id: id, project_id, preview_id: null };
}
