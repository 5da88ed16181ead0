// Roles that the spec does not name, memberships and settings: they are not part of a dump of a database.
import type { Cluster } from '../cluster';
import { inSession, sqlIdentifier, type Session } from '../session';
import { asLoader } from './loader';

const ofTenant = (role: string) => `not ${role}.rolsuper and ${role}.rolname !~ '^(pg|platform)_'`;

/** Values of these settings are lists in the notation of the server, which quotes what needs it. */
const lists = [
  'search_path',
  'temp_tablespaces',
  'local_preload_libraries',
  'session_preload_libraries',
  'restrict_nonsystem_relation_kind',
];

/** Roles that own objects, though no user has them any more, and memberships that users granted each other. */
export async function copyRoles(old: Cluster, staging: Cluster): Promise<void> {
  const { names, memberships } = await inSession(old, {}, async (session) => ({
    names: await stringsOf(
      session,
      `select format('create role %I %s', r.rolname, case when r.rolcanlogin then 'login' else 'nologin' end) as text,
        r.rolname as name from pg_roles r where ${ofTenant('r')}`,
    ),
    memberships: await stringsOf(
      session,
      `select format('grant %I to %I%s', r.rolname, u.rolname,
          case when m.admin_option then ' with admin option' else '' end) as text, '' as name
        from pg_auth_members m join pg_roles r on r.oid = m.roleid join pg_roles u on u.oid = m.member
        where ${ofTenant('r')} and ${ofTenant('u')}`,
    ),
  }));
  await inSession(staging, { data: staging.serverDirectory.data }, async (session) => {
    const present = (await stringsOf(session, 'select rolname as name, rolname as text from pg_roles')).map(
      ({ name }) => name,
    );
    for (const { name, text } of names) if (!present.includes(name)) await session.query(text);
    for (const { text } of memberships) await session.query(text);
  });
}

/**
 * What users set for themselves. Each is set by the role itself, which may set what it could before and no more: the
 * values are theirs. Settings unknown to the new version are skipped.
 */
export async function copySettings(old: Cluster, staging: Cluster, database: string): Promise<void> {
  const { rows } = await inSession(old, {}, (session) =>
    session.query<{ role: string; here: boolean; name: string; value: string }>(
      `select r.rolname as role, s.setdatabase <> 0 as here, split_part(setting, '=', 1) as name,
          substr(setting, strpos(setting, '=') + 1) as value
        from pg_db_role_setting s join pg_roles r on r.oid = s.setrole, unnest(s.setconfig) setting
        where ${ofTenant('r')} and split_part(setting, '=', 1) not in ('role', 'session_authorization')`,
    ),
  );
  await asLoader(staging, database, async (session) => {
    for (const { role, here, name, value } of rows) {
      await session.query('begin');
      try {
        await session.query(`set local role ${sqlIdentifier(role)}`);
        await setFor(session, `${sqlIdentifier(role)}${here ? ` in database ${sqlIdentifier(database)}` : ''}`, {
          name,
          value,
        });
        await session.query('commit');
      } catch {
        await session.query('rollback');
      }
    }
  });
}

async function setFor(
  session: Session,
  target: string,
  { name, value }: { name: string; value: string },
): Promise<void> {
  const isList = lists.includes(name);
  if (isList) await session.query('select pg_catalog.set_config($1, $2, true)', [name, value]);
  const { rows } = await session.query<{ setting: string }>(
    `select pg_catalog.format(case when $3 then 'set %I from current' else 'set %I to %L' end, $1::text, $2::text)
      as setting`,
    [name, value, isList],
  );
  await session.query(`alter role ${target} ${rows[0]?.setting}`);
}

async function stringsOf(session: Session, query: string): Promise<{ name: string; text: string }[]> {
  return (await session.query<{ name: string; text: string }>(query)).rows;
}
