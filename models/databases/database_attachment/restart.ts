// Applications that use a login of which the server has a new password: they get it, and are started again with it.
import type { Config } from '../../../core/config';
import type { Sql } from '../../../core/context';
import type { SecretBox } from '../../../core/secrets';
import type { Application } from '../../applications/application';
import { isKept } from '../../base/bin';
import { createCurrentRelease } from '../../deployments/run_application';
import { createRelease } from '../../deployments/release';
import { changeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { refreshVariables } from './variables';

const LOCK_DATABASE = named('select id from databases where id = $1 for no key update');
const APPLICATIONS = named(
  `select distinct a.application_id as id from database_attachments a where a.user_id = $1 order by 1`,
);
const LOCK_APPLICATION = named(
  `select id, status, current_deployment_id, deleted_at is not null as is_deleted from applications a
    where id = $1 and (deleted_at is null or ${isKept('a')}) for no key update`,
);
// Stopped applications get a release with the new variables at their next start, new ones with their first deployment.
// A restore from the bin starts the release that it finds.
const LIVE = new Set<string>(['running', 'crashed', 'restarting', 'starting']);
const RESTART = `status = case when status = 'starting' then status else 'restarting' end, status_reason = null,
  observed_generation = observed_generation + 1`;
const PREVIEWS = named(`select id, current_deployment_id from previews
  where application_id = $1 and deleted_at is null and current_deployment_id is not null and release_id is not null
    order by id for no key update`);
const UNDER_WAY = named(`select id, preview_id from deployments
  where application_id = $1 and deleted_at is null and status = 'deploying' and release_id is not null
    order by id for no key update`);
interface Parts {
  sql: Sql;
  secrets: SecretBox;
}

type Held = Pick<Application, 'id' | 'status' | 'current_deployment_id'> & { is_deleted: boolean };

/** In one transaction with what says that the server has the password: it happens once. */
export async function restartForUsers(
  parts: { sql: Sql; secrets: SecretBox; config: Config },
  databaseId: string,
  userIds: readonly string[],
): Promise<void> {
  if (!userIds.length) return;
  const { sql } = parts;
  await sql.query(LOCK_DATABASE, [databaseId]);
  const applications = new Set<string>();
  for (const user_id of userIds) {
    await refreshVariables(parts, { database_id: databaseId, user_id });
    for (const { id } of await sql.query<{ id: string }>(APPLICATIONS, [user_id])) applications.add(id);
  }
  for (const id of [...applications].sort()) await restart(parts, id);
}

async function restart(parts: Parts, id: string): Promise<void> {
  const { sql } = parts;
  const [application] = await sql.query<Held>(LOCK_APPLICATION, [id]);
  if (!application) return;
  if (application.is_deleted) {
    if (application.current_deployment_id) await createCurrentRelease(parts, application, null);
    return;
  }
  if (application.current_deployment_id && LIVE.has(application.status)) {
    await createCurrentRelease(parts, application, null);
    await changeRows(sql, { table: 'applications', set: RESTART, where: 'id = $1', values: [id] });
  }
  await restartPreviews(parts, id);
  await renewDeployments(parts, id);
}

/** Previews run with the variables of their application. */
async function restartPreviews({ sql, secrets }: Parts, application_id: string): Promise<void> {
  for (const { id, current_deployment_id } of await sql.query<{ id: string; current_deployment_id: string }>(PREVIEWS, [
    application_id,
  ])) {
    const release = await createRelease(sql, secrets, {
      application_id,
      preview_id: id,
      deployment_id: current_deployment_id,
    });
    await changeRows(sql, { table: 'previews', set: 'release_id = $2', where: 'id = $1', values: [id, release] });
  }
}

/** Gives a new release to deployments that are about to go into service: theirs has the old variables. */
async function renewDeployments({ sql, secrets }: Parts, application_id: string): Promise<void> {
  for (const { id, preview_id } of await sql.query<{ id: string; preview_id: string | null }>(UNDER_WAY, [
    application_id,
  ])) {
    const release = await createRelease(sql, secrets, { application_id, preview_id, deployment_id: id });
    await changeRows(sql, { table: 'deployments', set: 'release_id = $2', where: 'id = $1', values: [id, release] });
  }
}
