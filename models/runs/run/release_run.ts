// The run of the release command of a deployment: created once, and found again by the deployment.
import type { Sql } from '../../../core/context';
import { mintId, timeOfId } from '../../../core/ids';
import { named } from '../../../db/statement';
import type { RunStatus } from '../../../schema/types';
import { cancelRuns } from './cancel';

export interface ReleaseRun {
  id: string;
  status: RunStatus;
  status_reason: string | null;
  exit_code: number | null;
  signal: string | null;
  exceeded_limit: 'memory' | 'time' | 'output' | 'disk' | null;
}

const FIND = named(`select id, status, status_reason, exit_code, signal, exceeded_limit from runs
  where trigger_type = 'release' and trigger_id = $1`);

/** null where the release command of the deployment was not started yet. */
export async function findReleaseRun(sql: Sql, deploymentId: string): Promise<ReleaseRun | null> {
  return (await sql.query<ReleaseRun>(FIND, [deploymentId]))[0] ?? null;
}

interface NewReleaseRun {
  deployment: { id: string; fence: number; release_id: string };
  command: string;
  /** Process type whose size it has. */
  process_type: string;
  timeout_seconds: number;
}

// The lock is what a cancellation of the deployment waits for.
const INSERT = named(`insert into runs (id, project_id, application_id, preview_id, release_id, deployment_id, command,
    process_type, application_type, timeout_seconds, trigger_type, trigger_id, created_at, updated_at)
  select $1, d.project_id, d.application_id, d.preview_id, d.release_id, d.id, $5, $6,
    coalesce(p.application_type, a.application_type), $7, 'release', d.id, $8, $8
  from deployments d join applications a on a.id = d.application_id
    left join processes p on p.application_id = a.id and p.type = $6
  where d.id = $2 and d.fence = $3 and d.release_id = $4 and d.status = 'deploying' and d.deleted_at is null
    and not exists (select 1 from runs u where u.application_id = d.application_id
      and u.preview_id is not distinct from d.preview_id and u.trigger_type = 'release'
      and u.status in ('queued', 'starting', 'running'))
  for share of d returning id`);

/**
 * Queues the run. Quotas of runs do not count it: a deployment has one at most.
 * @returns false where the deployment was canceled, another worker holds it, or the canceled release command of an
 * earlier deployment has not ended
 */
export async function queueReleaseRun(
  sql: Sql,
  { deployment, command, process_type, timeout_seconds }: NewReleaseRun,
): Promise<boolean> {
  const id = mintId('run');
  const made = await sql.query(INSERT, [
    ...[id, deployment.id, deployment.fence, deployment.release_id],
    ...[command, process_type, timeout_seconds, timeOfId(id).toISOString()],
  ]);
  if (made.length) sql.due('runs');
  return made.length > 0;
}

const UNFINISHED = named(`select id from runs where trigger_type = 'release' and trigger_id = $1
  and status in ('queued', 'starting', 'running')`);

/** Cancels the run, where there is one. @returns whether it has to end yet @param reason a sentence for users */
export async function cancelReleaseRun(sql: Sql, deploymentId: string, reason: string): Promise<boolean> {
  const unfinished = await sql.query<{ id: string }>(UNFINISHED, [deploymentId]);
  await cancelRuns(sql, unfinished, reason);
  return unfinished.length > 0;
}

const OUTPUT = named(`select message from log_lines where deployment_id = $1 and step = 'release' and source = 'app'
  order by at desc, seq desc limit $2`);

/** The last lines that the release command of a deployment printed, oldest first. */
export async function lastReleaseOutput(sql: Sql, deploymentId: string, limit: number): Promise<string[]> {
  const lines = await sql.query<{ message: string }>(OUTPUT, [deploymentId, limit]);
  return lines.map(({ message }) => message).reverse();
}
