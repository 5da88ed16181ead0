// The run of a due time, within the limits that requests have.
import type { Config } from '../../../core/config';
import { mintId, timeOfId } from '../../../core/ids';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { checkQuotas, requireParentRoom } from '../../base/quota';
import { recordEvent } from '../../projects/activity';
import { Run } from '../run';
import { requireRelease } from '../run/release';

/** Fields of a schedule that its runs have. */
export interface DueSchedule {
  id: string;
  project_id: string;
  application_id: string;
  command: string;
  process_type: string | null;
  application_type: string | null;
  timeout_seconds: number;
}

const INSERT =
  named(`insert into runs (id, project_id, application_id, release_id, deployment_id, command, process_type,
    application_type, timeout_seconds, status_reason, trigger_type, trigger_id, created_at, updated_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'schedule', $11, $12, $12)`);

/**
 * Queues the run of a schedule, whose application is locked.
 * @param note what its `status_reason` says until it ends
 * @returns its id
 * @throws invalid_state without a release in service, reference_not_found, quota_exceeded
 */
export async function startRunOf(
  ctx: { sql: Session; config: Config },
  schedule: DueSchedule,
  note: string | null,
): Promise<string> {
  const { id: scheduleId, project_id, application_id, command, process_type, timeout_seconds } = schedule;
  const release = await requireRelease(ctx.sql, { id: application_id, status: '' }, null, process_type);
  await checkQuotas(ctx, Run, project_id, {});
  await requireParentRoom(ctx, Run, application_id);
  const id = mintId(Run.idPrefix);
  await ctx.sql.query(INSERT, [
    ...[id, project_id, application_id, release.id, release.deployment_id, command, release.process_type],
    ...[schedule.application_type ?? release.application_type, timeout_seconds, note, scheduleId],
    timeOfId(id).toISOString(),
  ]);
  ctx.sql.due(Run.table);
  await recordEvent(ctx.sql, Run.table, { id, project_id } as { id: string }, 'created');
  return id;
}
