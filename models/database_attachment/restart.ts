// Applications that use a login of which the server has a new password: they get it, and are started again with it.
import type { Config } from '../../core/config';
import type { Sql } from '../../core/context';
import type { SecretBox } from '../../core/secrets';
import type { Application } from '../application';
import { releaseAnew } from '../application/run';
import { named } from '../statement';
import { refreshVariables } from './variables';

const HOLD = named('select id from databases where id = $1 for no key update');
const APPLICATIONS = named(`select distinct a.application_id as id from database_attachments a where a.user_id = $1 order by 1`);
// Of those that rest, a start makes a release of what is set then; of those that are deployed for the first time, the deployment does.
const LIVE = named(`select id, status, current_deployment_id from applications
  where id = $1 and deleted_at is null and current_deployment_id is not null and status in ('running', 'crashed', 'restarting', 'starting') for no key update`);
const RESTART = named(`update applications set status = case when status = 'starting' then status else 'restarting' end, status_reason = null,
    version = version + 1, updated_at = greatest(now(), updated_at), generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null where id = $1`);
const NOTIFY = named(`select pg_notify('due', 'applications')`);

/** In one transaction with what says that the server has the password: it happens once. */
export async function restartForUsers(parts: { sql: Sql; secrets: SecretBox; config: Config }, databaseId: string, userIds: readonly string[]): Promise<void> {
  if (!userIds.length) return;
  const { sql } = parts;
  await sql.query(HOLD, [databaseId]);
  const applications = new Set<string>();
  for (const user_id of userIds) {
    await refreshVariables(parts, { database_id: databaseId, user_id });
    for (const { id } of await sql.query<{ id: string }>(APPLICATIONS, [user_id])) applications.add(id);
  }
  for (const id of [...applications].sort()) await restart(parts, id);
}

async function restart(parts: { sql: Sql; secrets: SecretBox }, id: string): Promise<void> {
  const { sql } = parts;
  const [application] = await sql.query<Pick<Application, 'id' | 'status' | 'current_deployment_id'>>(LIVE, [id]);
  if (!application) return;
  await releaseAnew(parts, application, null);
  await sql.query(RESTART, [id]);
  await sql.query(NOTIFY, []);
}
