// Cancellation of deployments. The row lock decides between cancellation and activation.
import type { Session } from '../../../db/control_database';
import { changeRows } from '../../../db/loop_rows';

const CANCELED = `status = 'canceled', status_reason = $4, finished_at = now(),
  observed_generation = observed_generation + 1`;
const OLDER_PUSHES = `application_id = $1 and preview_id is not distinct from $2 and number < $3
  and status = 'queued' and trigger in ('push', 'pull_request') and deleted_at is null`;

/** Cancels the pushes of the application, or of its preview, that are queued before the deployment of this number. */
export async function cancelOlderPushes(
  sql: Session,
  applicationId: string,
  previewId: string | null,
  number: number,
): Promise<void> {
  const reason = `Canceled: a newer push is deployed instead (deployment ${number}).`;
  const values = [applicationId, previewId, number, reason];
  await changeRows(sql, { table: 'deployments', set: CANCELED, where: OLDER_PUSHES, values });
}
