// Users and their privileges. Everything created by users with full access belongs to the first of them, whose role the
// others assume at the start of each session; so each can change objects of the others, and default privileges give the
// remaining users access to future tables (docs/decisions/0205). pg_read_all_data would be simpler, but also grants
// access to pg_authid.
import type { DatabaseServer, ServerUser } from '../../database';
import { DriverError } from '../../../core/driver';
import { roles } from './cluster';
import { ensureDefaultPrivileges } from './default_privileges';
import { reassignInOtherDatabases, openMaintenanceDatabase, type InDatabase } from './further_databases';
import { isVerifierOf, verifierOf } from './scram';
import { ensureSecondLogin, releaseSecondLogins } from './second_logins';
import { sqlIdentifier, sqlString, type Session } from './session';

interface Role {
  name: string;
  verifier: string | null;
}

const groupOf: Record<ServerUser['access'], string> = {
  admin: roles.owner,
  read_write: roles.writers,
  read_only: roles.readers,
};

/** Names that are not available to users. */
function isReservedRole(username: string): boolean {
  return (
    /^(pg_|platform_)/.test(username) ||
    ['postgres', 'public', 'none', 'session_user', 'current_user', 'current_role'].includes(username)
  );
}

/**
 * Ensures the database, the platform's roles, and the users with their passwords; sessions of an old password end.
 * `session` is in the database postgres. `others`: roles that somebody else has made for the server, left as they are.
 */
export async function ensureUsers(
  session: Session,
  spec: DatabaseServer,
  others: readonly string[] = [],
): Promise<void> {
  const bad = spec.users.find(({ username }) => isReservedRole(username));
  if (bad !== undefined)
    throw new DriverError('invalid', `The name ${JSON.stringify(bad.username)} is reserved by the engine.`);
  await revokeHigherRights(session, others);
  const present = await presentRoles(session);
  await ensureGroups(session, present);
  await ensurePassword(session, present, roles.replication, spec.admin_password, 'replication');
  for (const user of spec.users) await ensurePassword(session, present, user.username, user.password, 'login');
  if (spec.database_name !== null) await ensureDatabase(session, spec.database_name);
  const users = spec.users.filter(({ second_of }) => second_of === undefined);
  const admins = adminsOf(spec);
  for (const user of users) await ensureAccess(session, user, admins);
  if (spec.database_name !== null) await ensureActsAs(session, spec.database_name, users, admins[0] ?? null);
  for (const { username, second_of } of spec.users)
    if (second_of !== undefined) await ensureSecondLogin(session, username, second_of);
  await endOldSessions(session, spec.allowed_sources);
}

/**
 * Ensures privileges inside the database, which `session` is in. Undesired users are dropped, and their objects
 * reassigned. `others`: as in ensureUsers.
 */
export async function ensureRights(
  session: Session,
  spec: DatabaseServer,
  inDatabase: InDatabase,
  others: readonly string[] = [],
): Promise<void> {
  await dropEventTriggers(session);
  await ensureDefaultPrivileges(session, adminsOf(spec));
  await releaseSecondLogins(session, spec.users);
  const desired = new Set([...spec.users.map(({ username }) => username), ...others]);
  const { rows: logins } = await session.query<{ rolname: string }>(
    `select rolname from pg_roles where rolcanlogin and not rolsuper and rolname not like 'platform\\_%'
      and rolname not like 'pg\\_%'`,
  );
  for (const { rolname } of logins)
    if (!desired.has(rolname)) await dropUser(session, inDatabase, rolname, heirOf(rolname, desired));
}

function adminsOf({ users }: DatabaseServer): string[] {
  return users
    .filter(({ access, second_of }) => access === 'admin' && second_of === undefined)
    .map(({ username }) => username);
}

/** Who gets what a dropped role owns: the user whose second login it was, else the platform's role. */
function heirOf(role: string, desired: ReadonlySet<string>): string {
  const first = role.replace(/\.\d+$/, '');
  return desired.has(first) ? first : roles.owner;
}

async function presentRoles(session: Session): Promise<Map<string, Role>> {
  const { rows } = await session.query<Role>('select rolname as name, rolpassword as verifier from pg_authid');
  return new Map(rows.map((role) => [role.name, role]));
}

async function ensureGroups(session: Session, present: Map<string, Role>): Promise<void> {
  for (const group of [roles.owner, roles.readers, roles.writers])
    if (!present.has(group)) await session.query(`create role ${sqlIdentifier(group)} nologin`);
  if (!present.has(roles.owner))
    await session.query(`grant pg_signal_backend, pg_read_all_stats to ${sqlIdentifier(roles.owner)}`);
  await session.query('revoke connect, temporary on database postgres, template1 from public');
  await openMaintenanceDatabase(session);
}

// The role's comment records since when the password is valid. It is set in the same transaction: after a crash before
// old sessions are ended, it identifies the sessions to end.
async function ensurePassword(
  session: Session,
  present: Map<string, Role>,
  role: string,
  password: string,
  right: 'login' | 'replication',
): Promise<void> {
  const known = present.get(role);
  if (known !== undefined && (await isVerifierOf(known.verifier, password))) return;
  const options = right === 'login' ? 'login noreplication' : 'login replication';
  const verifier = await verifierOf(password);
  await session.query('begin');
  await session.query(
    `${known === undefined ? 'create' : 'alter'} role ${sqlIdentifier(role)} with ${options} nosuperuser nocreatedb ` +
      `nocreaterole nobypassrls password ${sqlString(verifier)}`,
  );
  const { rows } = await session.query<{ now: string }>(
    "select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.USZ') as now",
  );
  await session.query(`comment on role ${sqlIdentifier(role)} is ${sqlString(`password since ${rows[0]?.now}`)}`);
  await session.query('commit');
}

// Ends sessions with an old password, and sessions from sources that are no longer allowed: the server checks both at
// login only.
async function endOldSessions(session: Session, sources: string[]): Promise<void> {
  await session.query(
    `select pg_terminate_backend(pid) from pg_stat_activity a join pg_roles r on r.rolname = a.usename
     where not r.rolsuper and (a.backend_start < substring(shobj_description(r.oid, 'pg_authid')
       from 'password since (.*)')::timestamptz
       or not coalesce(a.client_addr <<= any($1::inet[]), true))`,
    [['127.0.0.1', '::1', ...sources]],
  );
}

// Owned by the platform: an owner could rename or drop it, or revoke connections.
async function ensureDatabase(session: Session, database: string): Promise<void> {
  const { rowCount } = await session.query('select from pg_database where datname = $1', [database]);
  if (rowCount === 0) await session.query(`create database ${sqlIdentifier(database)} template template0`);
  const { rows } = await session.query<{ open: boolean }>(
    `select has_database_privilege($2, datname, 'create') and has_database_privilege($3, datname, 'connect')
      and not exists (select from aclexplode(coalesce(datacl, acldefault('d', datdba))) where grantee = 0) as open
     from pg_database where datname = $1`,
    [database, roles.owner, roles.readers],
  );
  if (rows[0]?.open === true) return;
  await session.query('begin');
  const [own, readers, writers, owner] = [database, roles.readers, roles.writers, roles.owner].map(sqlIdentifier);
  await session.query(`revoke all on database ${own} from public`);
  await session.query(`grant connect, temporary on database ${own} to ${readers}, ${writers}`);
  await session.query(`grant connect, temporary, create on database ${own} to ${owner}`);
  await session.query('commit');
}

/** Membership in the group of the access level, and, for further admins, in the first admin. Admins make databases. */
async function ensureAccess(session: Session, { username, access }: ServerUser, admins: string[]): Promise<void> {
  const [first] = admins;
  const desired = [groupOf[access], ...(access === 'admin' && first && first !== username ? [first] : [])];
  const { rows } = await session.query<{ role: string }>(
    `select g.rolname as role from pg_auth_members m join pg_roles g on g.oid = m.roleid
      join pg_roles u on u.oid = m.member where u.rolname = $1 and g.rolname = any($2)`,
    [username, [...Object.values(groupOf), ...admins]],
  );
  const { rowCount } = await session.query('select from pg_roles where rolname = $1 and rolcreatedb <> $2', [
    username,
    access === 'admin',
  ]);
  if (rowCount !== 0)
    await session.query(`alter role ${sqlIdentifier(username)} ${access === 'admin' ? 'createdb' : 'nocreatedb'}`);
  const present = rows.map(({ role }) => role);
  const change = async (verb: string, names: string[], word: string): Promise<void> => {
    for (const name of names) await session.query(`${verb} ${sqlIdentifier(name)} ${word} ${sqlIdentifier(username)}`);
  };
  const [gone, added] = [
    present.filter((name) => !desired.includes(name)),
    desired.filter((name) => !present.includes(name)),
  ];
  if (gone.length + added.length === 0) return;
  await session.query('begin');
  await change('revoke', gone, 'from');
  await change('grant', added, 'to');
  await session.query('commit');
}

/**
 * The role that sessions assume, in all databases. Sessions that assumed a former first admin end: that role may be
 * dropped by the next statement.
 */
async function ensureActsAs(
  session: Session,
  database: string,
  users: ServerUser[],
  first: string | null,
): Promise<void> {
  const { rows } = await session.query<{ username: string; role: string; here: boolean }>(
    `select r.rolname as username, substring(setting from '^role=(.*)') as role, s.setdatabase <> 0 as here
      from pg_db_role_setting s join pg_roles r on r.oid = s.setrole, unnest(s.setconfig) setting
      where s.setdatabase in (0, (select oid from pg_database where datname = $1)) and setting like 'role=%'`,
    [database],
  );
  const ours = [roles.owner, ...users.map(({ username }) => username)];
  for (const { username, access } of users) {
    const desired = access === 'admin' && username !== first ? first : null;
    const present = rows.filter((row) => row.username === username);
    const [before = null] = present.filter(({ here, role }) => !here && ours.includes(role)).map(({ role }) => role);
    const earlier = present.find(({ here }) => here);
    if (before === desired && !earlier) continue;
    await session.query('begin');
    if (before !== desired)
      await session.query(
        `alter role ${sqlIdentifier(username)} ${desired === null ? 'reset role' : `set role = ${sqlString(desired)}`}`,
      );
    // Servers of before say it of the database.
    if (earlier)
      await session.query(`alter role ${sqlIdentifier(username)} in database ${sqlIdentifier(database)} reset role`);
    const left = [before, earlier?.role].filter((role) => role !== undefined && role !== null && role !== desired);
    if (left.some((role) => role !== roles.owner))
      await session.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [username]);
    await session.query('commit');
  }
}

async function dropUser(session: Session, inDatabase: InDatabase, username: string, heir: string): Promise<void> {
  await session.query(`alter role ${sqlIdentifier(username)} nologin`);
  await session.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [username]);
  await reassignInOtherDatabases(session, inDatabase, username, heir);
  await session.query('begin');
  await session.query(`reassign owned by ${sqlIdentifier(username)} to ${sqlIdentifier(heir)}`);
  await session.query(`drop owned by ${sqlIdentifier(username)}`);
  await session.query(`drop role ${sqlIdentifier(username)}`);
  await session.query('commit');
}

// Rights that nobody but the platform has. A server from before upgrades were loaded by a role of their own may have
// users who took some (docs/decisions/0205).

/**
 * Takes the rights of a superuser, and memberships of the server's own roles, from all roles but the platform's. The
 * bootstrap superuser (10), which is another one in data of CloudNativePG, cannot lose them; it has no password.
 */
async function revokeHigherRights(session: Session, others: readonly string[]): Promise<void> {
  const { rows } = await session.query<{ revoking: string }>(
    `select format('alter role %I nosuperuser nocreaterole nobypassrls %s', rolname,
        case when rolname = $2 then '' else 'noreplication' end) as revoking
      from pg_roles where rolname <> $1 and rolname <> all($4) and oid <> 10
        and (rolsuper or rolcreaterole or rolbypassrls or rolreplication and rolname <> $2)
      union all select format('revoke %I from %I', g.rolname, u.rolname)
      from pg_auth_members m join pg_roles g on g.oid = m.roleid join pg_roles u on u.oid = m.member
      where (g.rolname ~ '^pg_' or g.rolname = $1) and u.rolname <> all($3) and u.rolname !~ '^pg_'`,
    [roles.admin, roles.replication, [roles.admin, roles.owner, ...others], others],
  );
  for (const { revoking } of rows) await session.query(revoking);
}

/** Event triggers run in sessions of the platform, with its rights; only a superuser can have made one. */
async function dropEventTriggers(session: Session): Promise<void> {
  const { rows } = await session.query<{ dropping: string }>(
    `select format('drop event trigger %I', evtname) as dropping from pg_event_trigger e
      where not exists (select from pg_depend where classid = 'pg_event_trigger'::regclass and objid = e.oid
        and deptype = 'e')`,
  );
  for (const { dropping } of rows) await session.query(dropping);
}
