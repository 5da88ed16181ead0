// The only function that creates deployments: for requests, pushes, rollbacks and previews.
import { problem } from '../../../core/errors';
import { mintId, timeOfId } from '../../../core/ids';
import type { DeployedSource } from '../../applications/application/source';
import type { Session } from '../../../db/control_database';
import { changeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { ActorType, DeploymentTrigger, PromotedDeployment } from '../../../schema/types';

/** The deployment whose files are taken over. */
export type PromotedFrom = Omit<PromotedDeployment, '__typename'>;

export interface NewDeployment {
  application: { id: string; project_id: string };
  preview_id?: string | null;
  /** A snapshot: later changes of the application do not affect a queued deployment. */
  source: DeployedSource;
  branch: string | null;
  /** Full, as the remote has it: it is built, whatever the branch has become by then. */
  commit_sha: string | null;
  image?: string | null;
  trigger: DeploymentTrigger;
  /** An Actor, see models/projects/activity.ts `actorOf` and `PLATFORM`. */
  created_by: { type: ActorType; id: string | null; name: string };
  clear_cache?: boolean;
  /** Whose files it runs, where they are built already. Without it its own. */
  artifact_id?: string | null;
  /** Which data directory has them. */
  files_on?: string | null;
  source_deployment_id?: string | null;
  commit_message?: string | null;
  commit_author?: string | null;
  promoted_from?: PromotedFrom | null;
  /** Of the deployment that was built, where there is one. */
  plan?: object | null;
}

// The count is raised first: the row lock serializes deployments, so that each gets a unique number.
const COUNT = named(
  `update applications set deployment_count = deployment_count + 1
    where id = $1 and project_id = $2 and deleted_at is null returning deployment_count as number`,
);

const INSERT =
  named(`insert into deployments (id, project_id, application_id, preview_id, number, branch, commit_sha, image,
    clear_cache, trigger,
    source_deployment_id, commit_message, commit_author, created_by, source, plan, artifact_id, created_at,
      updated_at, files_on, promoted_from)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, $19, $20) returning *`);

const CANCELED = `status = 'canceled', status_reason = $4, finished_at = now(),
  observed_generation = observed_generation + 1`;
const OLDER_PUSHES = `application_id = $1 and preview_id is not distinct from $2 and number < $3
  and status = 'queued' and trigger in ('push', 'pull_request') and deleted_at is null`;

/**
 * A new row in status `queued`, due at once. Takes the application's lock until the end of the transaction. A push
 * cancels the pushes that still wait before it.
 * @throws not_found where the application has gone
 */
export function queueDeployment(sql: Session, input: NewDeployment): Promise<{ id: string; number: number }> {
  return sql.transaction(async (session) => {
    const { application, preview_id = null, trigger } = input;
    const [counted] = await session.query<{ number: number }>(COUNT, [application.id, application.project_id]);
    if (!counted) throw problem('not_found');
    if (trigger === 'push' || trigger === 'pull_request')
      await cancelOlderPushes(session, application.id, preview_id, counted.number);
    const [row] = await session.query<{ id: string; number: number }>(INSERT, valuesOf(input, counted.number));
    session.due('deployments');
    return row as { id: string; number: number };
  });
}

/**
 * Cancels the pushes of the application, or of its preview, that are queued before the deployment of this number. The
 * row lock decides between cancellation and activation.
 */
async function cancelOlderPushes(
  sql: Session,
  applicationId: string,
  previewId: string | null,
  number: number,
): Promise<void> {
  const reason = `Canceled: a newer push is deployed instead (deployment ${number}).`;
  const values = [applicationId, previewId, number, reason];
  await changeRows(sql, { table: 'deployments', set: CANCELED, where: OLDER_PUSHES, values });
}

// The id is made under the lock, so that ids and numbers have the same order.
function valuesOf(input: NewDeployment, number: number): unknown[] {
  const { application, preview_id = null, branch, commit_sha, image = null, clear_cache = false, trigger } = input;
  const { source_deployment_id = null, commit_message = null, commit_author = null, plan = null } = input;
  const id = mintId('dep');
  return [
    id,
    application.project_id,
    application.id,
    preview_id,
    number,
    branch,
    commit_sha,
    image,
    clear_cache,
    trigger,
    source_deployment_id,
    commit_message,
    commit_author,
    JSON.stringify(input.created_by),
    JSON.stringify(input.source),
    plan && JSON.stringify(plan),
    input.artifact_id ?? id,
    timeOfId(id).toISOString(),
    input.files_on ?? null,
    input.promoted_from ? JSON.stringify(input.promoted_from) : null,
  ];
}
