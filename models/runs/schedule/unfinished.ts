// Runs of a schedule that have not finished. Their rows are locked before that of the schedule, as the end of a run
// does it (migrations/0052_cron_schedules.ts).
import type { Sql } from '../../../core/context';
import { changeRows, NEW_VERSION } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { RunStatus } from '../../../schema/types';

export interface UnfinishedRun {
  id: string;
  status: RunStatus;
}

const UNFINISHED = named(`select id, status from runs where trigger_id = $1
  and status in ('queued', 'starting', 'running') and deleted_at is null order by id for update`);

/** The runs, oldest first, as they are until the end of the transaction. */
export function lockUnfinished(sql: Sql, scheduleId: string): Promise<UnfinishedRun[]> {
  return sql.query<UnfinishedRun>(UNFINISHED, [scheduleId]);
}

const CANCEL = `status = case status when 'queued' then 'canceled' else status end,
  finished_at = case status when 'queued' then now() end,
  variables = case status when 'queued' then null else variables end,
  cancel_requested_at = now(), status_reason = $2, ${NEW_VERSION}`;

/** Cancels runs: at once where they have not begun, else their job stops them. @param reason a sentence for users */
export async function cancelReplaced(sql: Sql, runs: readonly UnfinishedRun[], reason: string): Promise<void> {
  if (!runs.length) return;
  const values = [runs.map(({ id }) => id), reason];
  await changeRows(sql, { table: 'runs', set: CANCEL, where: 'id = any($1) and cancel_requested_at is null', values });
}
