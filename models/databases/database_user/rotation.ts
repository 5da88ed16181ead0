// The end of a rotation: the previous password is removed when no application needs it, or when it expires.
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { wakeDatabase } from '../database/wake';

const OPEN = named('select id from database_users where database_id = $1 and previous_password is not null limit 1');

// An instance has the variables of its release. A release command and candidates of a deployment that began before may
// have old ones too.
const ENDED = named(`update database_users u set previous_password = null, previous_login = null, previous_until = null
  where u.database_id = $1 and u.previous_password is not null and u.applied_version = u.version
    and (u.previous_until <= now() or not exists (
      select 1 from database_attachments t where t.user_id = u.id and (
        exists (select 1 from instances i join releases r on r.id = i.release_id
          where i.application_id = t.application_id and r.created_at < u.applied_at)
        or exists (select 1 from deployments d where d.application_id = t.application_id and d.status = 'deploying'
          and d.deleted_at is null and d.created_at < u.applied_at))))
  returning u.id`);

const UNAPPLIED =
  named(`update database_users set previous_password = null, previous_login = null, previous_until = null
  where database_id = $1 and previous_password is not null and applied_version < version returning username`);

/**
 * Ends rotations that have not reached the server: the new password takes the place of the previous one at once, for
 * the user's own login. @returns names of the users
 */
export async function endUnappliedRotations(sql: Session, databaseId: string): Promise<string[]> {
  return (await sql.query<{ username: string }>(UNAPPLIED, [databaseId])).map(({ username }) => username);
}

/**
 * Takes previous passwords out of the rows that no attached application runs with any more; the job of the database
 * takes them out of the server. Answers whether a rotation is still under way.
 */
export function endRotations(sql: Session, databaseId: string): Promise<boolean> {
  return sql.transaction(async (session) => {
    if (!(await session.query(OPEN, [databaseId])).length) return false;
    const ended = await session.query(ENDED, [databaseId]);
    if (ended.length) await wakeDatabase(session, databaseId);
    return (await session.query(OPEN, [databaseId])).length > 0;
  });
}
