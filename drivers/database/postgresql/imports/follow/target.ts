// The database that follows a source: a role of its own, which has the rights of the owner and fires no triggers, since
// what they do at the source comes as changes, too. How far it is stands in an origin, which commits with the rows.
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { DriverError } from '../../../../../core/driver';
import { socketDirectory, type Cluster } from '../../cluster';
import { inSession, sqlIdentifier, sqlString } from '../../session';

const LOGIN_MINUTES = 5;
const ORIGIN_RIGHTS = [
  'pg_replication_origin_session_setup(text)',
  'pg_replication_origin_xact_setup(pg_lsn, timestamptz)',
];
const SETTINGS = [
  ...['statement_timeout=0', 'idle_in_transaction_session_timeout=0', 'lock_timeout=30000', 'search_path=pg_catalog'],
  ...['client_min_messages=error', 'synchronous_commit=on', 'datestyle=ISO', 'intervalstyle=postgres'],
  // Whole rows are compared as the source writes them.
  ...['extra_float_digits=3', 'timezone=UTC', 'bytea_output=hex'],
  // A policy would hide rows from changes without a word.
  'row_security=off',
];

/** Reserved: names of users do not begin like this. */
const ROLE = 'platform_import';

function sessionName(id: string): string {
  return `import ${id}`;
}

/**
 * A session that applies changes. Earlier ones of the import end. `start`: where the copied data are.
 * @returns with how far the database is
 */
export async function openTarget(
  cluster: Cluster,
  { id, origin, start }: { id: string; origin: string; start: string },
): Promise<{ client: Client; applied: string }> {
  const { spec, serverDirectory } = cluster;
  const owner = spec.users.find(({ access, second_of }) => access === 'admin' && second_of === undefined);
  if (!owner || spec.database_name === null)
    throw new DriverError('invalid', 'The database has no user with full access, as whom the import would run.');
  const database = spec.database_name;
  const password = randomBytes(24).toString('base64url');
  const applied = await inSession(cluster, { database }, async (session) => {
    await session.query(
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity
        where application_name = $1 and pid <> pg_backend_pid()`,
      [sessionName(id)],
    );
    const { rowCount } = await session.query('select from pg_roles where rolname = $1', [ROLE]);
    const until = new Date(Date.now() + LOGIN_MINUTES * 60_000).toISOString();
    await session.query(
      `${rowCount ? 'alter' : 'create'} role ${ROLE} login inherit nosuperuser nocreatedb nocreaterole noreplication
        nobypassrls password ${sqlString(password)} valid until ${sqlString(until)}`,
    );
    await session.query(`grant ${sqlIdentifier(owner.username)} to ${ROLE}`);
    await session.query(`alter role ${ROLE} set session_replication_role = replica`);
    for (const one of ORIGIN_RIGHTS) await session.query(`grant execute on function pg_catalog.${one} to ${ROLE}`);
    const { rows: known } = await session.query('select from pg_replication_origin where roname = $1', [origin]);
    if (!known.length) {
      await session.query('select pg_replication_origin_create($1)', [origin]);
      await session.query('select pg_replication_origin_advance($1, $2)', [origin, start]);
    }
    const { rows } = await session.query<{ lsn: string }>(
      'select pg_replication_origin_progress($1, true)::text as lsn',
      [origin],
    );
    return rows[0]!.lsn;
  });
  const client = new Client({
    ...{ host: socketDirectory(serverDirectory), port: spec.port, user: ROLE, password, database },
    options: SETTINGS.map((one) => `-c ${one}`).join(' '),
    ...{ application_name: sessionName(id), connectionTimeoutMillis: 10_000 },
  });
  client.on('error', () => undefined); // the current query reports it
  await client.connect();
  await client.query('select pg_replication_origin_session_setup($1)', [origin]);
  return { client, applied };
}

/** Takes back what `openTarget` has made. */
export async function closeTarget(cluster: Cluster, id: string, origin: string): Promise<void> {
  const database = cluster.spec.database_name;
  if (database === null) return;
  await inSession(cluster, { database }, async (session) => {
    await session.query(
      `select pg_terminate_backend(pid, 10000) from pg_stat_activity
        where application_name = $1 and pid <> pg_backend_pid()`,
      [sessionName(id)],
    );
    await session.query('select pg_replication_origin_drop(roname) from pg_replication_origin where roname = $1', [
      origin,
    ]);
    const { rowCount } = await session.query('select from pg_roles where rolname = $1', [ROLE]);
    if (!rowCount) return;
    for (const one of ORIGIN_RIGHTS) await session.query(`revoke execute on function pg_catalog.${one} from ${ROLE}`);
    await session.query(`drop role ${ROLE}`);
  });
}
