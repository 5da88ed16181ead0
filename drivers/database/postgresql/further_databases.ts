// Databases that admins make beside the one of the platform: for tests, for the shadow of a migration. They are the
// tenant's alone: backups of the server hold them, dumps and pools do not.
import { DriverError } from '../../../core/driver';
import { roles, type Cluster } from './cluster';
import { inSession, sqlIdentifier, type Session } from './session';

/** Runs `work` in a database of the same server, with the settings. */
export type InDatabase = <T>(
  database: string,
  settings: readonly string[],
  work: (session: Session) => Promise<T>,
) => Promise<T>;

/** Their owners may set limits that no session of the platform could keep. Not all versions have all of them. */
const LIMITS = ['transaction_timeout', 'idle_session_timeout'];

const OURS = ['postgres', 'template0', 'template1'];

/** Tools such as createdb, Django and Rails connect to `postgres` first; nothing can be made there. */
export async function openMaintenanceDatabase(session: Session): Promise<void> {
  const { rows } = await session.query<{ open: boolean }>(
    `select has_database_privilege($1, 'postgres', 'connect') and not exists (select from pg_namespace n,
      aclexplode(n.nspacl) a where nspname = 'public' and grantee = 0 and privilege_type = 'CREATE') as open`,
    [roles.owner],
  );
  if (rows[0]?.open === true) return;
  await session.query(`grant connect on database postgres to ${sqlIdentifier(roles.owner)}`);
  await session.query('revoke create on schema public from public');
}

/** Hands over what the role owns in other databases; without it, it could not be dropped. */
export async function reassignInOtherDatabases(
  session: Session,
  inDatabase: InDatabase,
  role: string,
  heir: string,
): Promise<void> {
  const { rows } = await session.query<{
    oid: number;
    datname: string;
    datallowconn: boolean;
    is_half_dropped: boolean;
  }>(
    `select distinct d.oid, datname, datallowconn, datconnlimit = -2 as is_half_dropped
      from pg_shdepend join pg_database d on d.oid = dbid
      where refclassid = 'pg_authid'::regclass and refobjid = $1::regrole and datname <> current_database()`,
    [sqlIdentifier(role)],
  );
  const known = await session.query<{ name: string }>('select name from pg_settings where name = any($1)', [LIMITS]);
  const settings = known.rows.map(({ name }) => `${name}=0`);
  for (const { oid, datname: stored, datallowconn, is_half_dropped } of rows) {
    const datname = await readableName(session, oid, stored);
    // An interrupted DROP DATABASE leaves one that can only be dropped.
    if (is_half_dropped) {
      await session.query(`drop database ${sqlIdentifier(datname)}`);
      continue;
    }
    if (!datallowconn) await session.query(`alter database ${sqlIdentifier(datname)} allow_connections true`);
    await inDatabase(datname, settings, async (elsewhere) => {
      await elsewhere.query(`reassign owned by ${sqlIdentifier(role)} to ${sqlIdentifier(heir)}`);
      await elsewhere.query(`drop owned by ${sqlIdentifier(role)}`);
    });
  }
}

/** A name made in a database of another encoding can't be written in this one: it gets a plain one. */
async function readableName(session: Session, oid: number, name: string): Promise<string> {
  const { rowCount } = await session.query('select from pg_database where oid = $1 and datname = $2', [oid, name]);
  if (rowCount !== 0) return name;
  await session.query('select pg_terminate_backend(pid) from pg_stat_activity where datid = $1', [oid]);
  const renaming = `select format('alter database %I rename to %I', datname, 'renamed_' || oid) from pg_database`;
  await session.query(`do $$ begin execute (${renaming} where oid = ${Number(oid)}); end $$`);
  return `renamed_${oid}`;
}

/**
 * An upgrade copies the database of the platform alone. `purpose`: what else does, with its article.
 * @throws DriverError invalid where there are others
 */
export async function requireNoFurtherDatabases(cluster: Cluster, purpose = 'an upgrade'): Promise<void> {
  const { rows } = await inSession(cluster, {}, (session) =>
    session.query<{ datname: string }>(
      'select datname from pg_database where datname <> all($1) and datname <> $2 order by datname',
      [OURS, cluster.spec.database_name ?? 'postgres'],
    ),
  );
  if (rows.length === 0) return;
  const [first, ...more] = rows.map(({ datname }) => JSON.stringify(datname));
  const [names, them] =
    more.length === 0 ? [`a further database, ${first}`, 'it'] : [`further databases, such as ${first}`, 'them'];
  throw new DriverError(
    'invalid',
    `The server has ${names}, which ${purpose} would not copy. Dump what you need of ${them}, and drop ${them}.`,
  );
}
