// Runs that the platform cancels itself.
import type { Sql } from '../../../core/context';
import { changeRows, NEW_VERSION } from '../../../db/loop_rows';

const CANCEL = `status = case status when 'queued' then 'canceled' else status end,
  finished_at = case status when 'queued' then now() end,
  variables = case status when 'queued' then null else variables end,
  cancel_requested_at = now(), status_reason = $2, ${NEW_VERSION}`;

/** Cancels runs: at once where they have not begun, else their job stops them. @param reason a sentence for users */
export async function cancelRuns(sql: Sql, runs: readonly { id: string }[], reason: string): Promise<void> {
  if (!runs.length) return;
  const values = [runs.map(({ id }) => id), reason];
  await changeRows(sql, { table: 'runs', set: CANCEL, where: 'id = any($1) and cancel_requested_at is null', values });
}
