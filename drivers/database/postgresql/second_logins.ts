// The login of the new password during a rotation, and afterwards: PostgreSQL has one password per role. Its sessions
// assume the user's own role as their first act, so that privileges, policies, ownership and `current_user` are the
// user's. What belongs to the login is copied: settings, the limit of connections, the end of validity. Only
// `session_user` differs (docs/decisions/0037).
import type { ServerUser } from '../../database';
import { sqlIdentifier, type Session } from './session';

const OBJECT_LENGTH_MAX = 200;

/** Ensures that the role `login` is equal to the role `user`. */
export async function ensureSecondLogin(session: Session, login: string, user: string): Promise<void> {
  await ensureMembership(session, login, user);
  await copySettings(session, login, user);
  await copyLimits(session, login, user);
}

/** Takes from second logins what only the user should own: a dump would name them. `session` is in the database. */
export async function releaseSecondLogins(session: Session, users: readonly ServerUser[]): Promise<void> {
  for (const { username, second_of } of users) {
    if (second_of === undefined || !(await ownsAnything(session, username))) continue;
    await session.query('begin');
    await session.query(`reassign owned by ${sqlIdentifier(username)} to ${sqlIdentifier(second_of)}`);
    await session.query(`drop owned by ${sqlIdentifier(username)}`);
    await session.query('commit');
  }
}

// SQLVALUEFUNCTION: how expressions are stored; 12 is SESSION_USER (src/include/nodes/primnodes.h). Bodies of functions
// are text, or since version 14 stored like expressions.
const SESSION_USER_USE = `
  select 'the function ' || p.oid::regprocedure as object from pg_proc p
    where pronamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    and (prosrc ~* '\\msession_user\\M' or to_jsonb(p) ->> 'prosqlbody' like $1)
  union all select format('the policy %I of %s', polname, polrelid::regclass) from pg_policy
    where concat(polqual::text, polwithcheck::text) like $1
  union all select 'the view ' || ev_class::regclass from pg_rewrite where ev_action::text like $1
    and ev_class not in (select oid from pg_class
      where relnamespace in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace))
  union all select 'a default of ' || adrelid::regclass from pg_attrdef where adbin::text like $1
  union all select 'a constraint of ' || conrelid::regclass from pg_constraint where conbin::text like $1
  union all select 'a trigger of ' || tgrelid::regclass from pg_trigger where tgqual::text like $1
  limit 1`;

/** What would tell a second login from its user. `session` is in the database. */
export async function sessionUserUse(session: Session): Promise<string | null> {
  const { rows } = await session.query<{ object: string }>(SESSION_USER_USE, ['%{SQLVALUEFUNCTION :op 12 %']);
  if (rows[0] === undefined) return null;
  return `${rows[0].object.slice(0, OBJECT_LENGTH_MAX)} asks for session_user; current_user is the same for all logins`;
}

async function ensureMembership(session: Session, login: string, user: string): Promise<void> {
  const { rows } = await session.query<{ role: string }>(
    `select g.rolname as role from pg_auth_members m join pg_roles g on g.oid = m.roleid
      join pg_roles u on u.oid = m.member where u.rolname = $1`,
    [login],
  );
  const present = rows.map(({ role }) => role);
  if (present.length === 1 && present[0] === user) return;
  await session.query('begin');
  if (!present.includes(user)) await session.query(`grant ${sqlIdentifier(user)} to ${sqlIdentifier(login)}`);
  for (const role of present)
    if (role !== user) await session.query(`revoke ${sqlIdentifier(role)} from ${sqlIdentifier(login)}`);
  await session.query('commit');
}

// From row to row: a statement would have to quote each value as its setting demands. A role that the user's sessions
// assume goes before the user's own.
const DESIRED = `select setdatabase, setconfig from pg_db_role_setting where setrole = $2::regrole and setdatabase <> 0
  union all select 0::oid, own.setconfig || case when exists (
      select from unnest(own.setconfig) as setting where setting like 'role=%') then '{}' else array['role=' || $3] end
    from (select coalesce((select setconfig from pg_db_role_setting where setrole = $2::regrole and setdatabase = 0),
      '{}') as setconfig) as own`;

async function copySettings(session: Session, login: string, user: string): Promise<void> {
  const names = [sqlIdentifier(login), sqlIdentifier(user), user];
  const present = 'select setdatabase, setconfig from pg_db_role_setting where setrole = $1::regrole';
  const { rowCount } = await session.query(
    `((${DESIRED}) except (${present})) union all ((${present}) except (${DESIRED}))`,
    names,
  );
  if (rowCount === 0) return;
  await session.query('begin');
  await session.query('delete from pg_db_role_setting where setrole = $1::regrole', [sqlIdentifier(login)]);
  await session.query(
    `insert into pg_db_role_setting (setdatabase, setrole, setconfig)
      select setdatabase, $1::regrole, setconfig from (${DESIRED}) as desired`,
    names,
  );
  await session.query('commit');
}

async function copyLimits(session: Session, login: string, user: string): Promise<void> {
  const { rows } = await session.query<{ statement: string }>(
    `select format('alter role %I connection limit %s valid until %L', l.rolname, u.rolconnlimit,
        coalesce(u.rolvaliduntil, 'infinity')) as statement
      from pg_roles l, pg_roles u where l.rolname = $1 and u.rolname = $2
        and (l.rolconnlimit, coalesce(l.rolvaliduntil, 'infinity'))
          is distinct from (u.rolconnlimit, coalesce(u.rolvaliduntil, 'infinity'))`,
    [login, user],
  );
  for (const { statement } of rows) await session.query(statement);
}

async function ownsAnything(session: Session, login: string): Promise<boolean> {
  const { rowCount } = await session.query(
    `select from pg_shdepend where refclassid = 'pg_authid'::regclass and refobjid = $1::regrole and deptype = 'o'
      and dbid in (0, (select oid from pg_database where datname = current_database())) limit 1`,
    [sqlIdentifier(login)],
  );
  return rowCount !== 0;
}
