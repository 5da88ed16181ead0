// The role that loads a dump into a staging server. Loading runs code of the tenant: functions of checks, generated
// columns, indexes, domains and partition keys, and those that the server evaluates while it parses (docs/decisions/
// 0205). So this role has the rights of the tenant's roles together, and none of the platform's. It exists on staging
// servers only, while only the platform can connect.
import { roles, type Cluster } from '../cluster';
import { inSession, sqlIdentifier, type Session } from '../session';

const loader = sqlIdentifier(roles.loader);
const owner = sqlIdentifier(roles.owner);

/**
 * Creates the role, and lets it make objects of all owners: a new owner needs the right to create in the schema, which
 * it may have lost since.
 */
export async function createLoader(staging: Cluster, database: string): Promise<void> {
  const data = staging.serverDirectory.data;
  await inSession(staging, { data }, async (session) => {
    await createMemberOfAll(session);
    await session.query(`grant connect, create, temporary on database ${sqlIdentifier(database)} to ${loader}`);
  });
  await inSession(staging, { data, database }, async (session) => {
    await session.query(`alter schema public owner to ${owner}`);
    await session.query('grant create on schema public to public');
    await session.query(`alter default privileges for role ${loader} grant create on schemas to public`);
  });
}

/** Creates the role, with the rights of the tenant's roles together, and none of the platform's. */
export async function createMemberOfAll(session: Session): Promise<void> {
  await session.query(`create role ${loader} login`);
  const { rows } = await session.query<{ granting: string }>(
    `select format('grant %I to %I', rolname, $1::text) as granting from pg_roles
      where not rolsuper and not rolreplication and rolname !~ '^pg_' and rolname <> $1`,
    [roles.loader],
  );
  for (const { granting } of rows) await session.query(granting);
}

/** Takes back the right to create in each schema; the privileges of the dump come after this. */
export async function revokeSchemaCreation(staging: Cluster, database: string): Promise<void> {
  await inSession(staging, { data: staging.serverDirectory.data, database }, async (session) => {
    const { rows } = await session.query<{ revoking: string }>(
      `select format('revoke create on schema %I from public', nspname) as revoking from pg_namespace
        where nspname !~ '^pg_' and nspname <> 'information_schema'`,
    );
    for (const { revoking } of rows) await session.query(revoking);
  });
}

/** Removes the role. What it made and nobody else owns, such as extensions, belongs to the owner role. */
export async function dropLoader(staging: Cluster, database: string): Promise<void> {
  const data = staging.serverDirectory.data;
  await inSession(staging, { data, database, statementMs: 600_000 }, async (session) => {
    await session.query(`reassign owned by ${loader} to ${owner}`);
    await session.query(`drop owned by ${loader}`);
  });
  await inSession(staging, { data }, async (session) => {
    await session.query(`drop owned by ${loader}`);
    await session.query(`drop role ${loader}`);
  });
}

/** Without a schema `public`, where the old server has none: each new database has one. */
export async function dropUnusedPublic(old: Cluster, staging: Cluster, database: string): Promise<void> {
  const { rowCount } = await inSession(old, { database }, (session) =>
    session.query("select from pg_namespace where nspname = 'public'"),
  );
  if (rowCount !== 0) return;
  await inSession(staging, { data: staging.serverDirectory.data, database }, (session) =>
    session.query('drop schema public'),
  );
}

/** Removes what a load that failed has left, with the database and the role. */
export async function dropFailedLoad(staging: Cluster, database: string): Promise<void> {
  await inSession(staging, { data: staging.serverDirectory.data, statementMs: 600_000 }, async (session) => {
    await session.query(`drop database ${sqlIdentifier(database)} with (force)`);
    await session.query(`drop owned by ${loader}`);
    await session.query(`drop role ${loader}`);
  });
}

/** Runs `work` in a session of the loader. */
export function asLoader<T>(staging: Cluster, database: string, work: (session: Session) => Promise<T>): Promise<T> {
  const data = staging.serverDirectory.data;
  return inSession(staging, { data, database, user: roles.loader, statementMs: 3_600_000 }, work);
}
