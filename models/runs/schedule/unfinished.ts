// Runs of a schedule whose commands have not ended. One whose command has ended, and whose output is still being
// stored, is none of them. Their rows are locked before that of the schedule, as the end of a run does it
// (migrations/0052_cron_schedules.ts).
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';
import type { RunStatus } from '../../../schema/types';

export interface UnfinishedRun {
  id: string;
  status: RunStatus;
}

const UNFINISHED = named(`select id, status from runs where trigger_id = $1
  and status in ('queued', 'starting', 'running') and exit_code is null and deleted_at is null
  order by id for update`);

/** The runs, oldest first, as they are until the end of the transaction. */
export function lockUnfinished(sql: Sql, scheduleId: string): Promise<UnfinishedRun[]> {
  return sql.query<UnfinishedRun>(UNFINISHED, [scheduleId]);
}
