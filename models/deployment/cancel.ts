// The end of deployments that nobody waits for any more. The row decides: whoever holds it canceled or activated it.
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';

const OLDER_PUSHES = named(`update deployments set status = 'canceled', status_reason = $4, finished_at = now(),
    version = version + 1, updated_at = greatest(now(), updated_at), generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null
  where application_id = $1 and preview_id is not distinct from $2 and number < $3 and status = 'queued' and trigger in ('push', 'pull_request') and deleted_at is null`);

/** Cancels the pushes of the application, or of its preview, that wait for their turn before the deployment of this number. */
export async function cancelOlderPushes(
  sql: Session,
  applicationId: string,
  previewId: string | null,
  number: number,
): Promise<void> {
  await sql.query(OLDER_PUSHES, [
    applicationId,
    previewId,
    number,
    `Canceled: a newer push is deployed instead (deployment ${number}).`,
  ]);
}
