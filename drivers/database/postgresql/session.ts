// Sessions of the platform's administrator: over the socket in the server directory, with peer authentication, so that
// there is no password to leak; to a pod over TLS, with a password that is sent once its certificate is verified.
// Settings that users attach to the database do not apply to them.
import { realpath } from 'node:fs/promises';
import { Client } from 'pg';
import type { ClientBase, ClientConfig } from 'pg';
import { DriverError } from '../../../core/driver';
import type { DatabaseServer } from '../../database';
import type { ServerDirectory } from '../../hosted_server/server_directory';
import { roles, socketDirectory, systemIdentifierOf } from './cluster';

export type Session = ClientBase;

const ours = [
  'search_path=pg_catalog',
  'role=none',
  'lock_timeout=10000',
  'default_transaction_read_only=off',
  'row_security=on',
  'client_min_messages=warning',
  'check_function_bodies=off',
  'idle_in_transaction_session_timeout=60000',
];
const oursAsSuperuser = [
  ...ours,
  'log_min_duration_statement=-1',
  'log_min_error_statement=panic',
  'track_activities=off',
];

/** A server of this host. */
interface HostLocation {
  serverDirectory: ServerDirectory;
  spec: Pick<DatabaseServer, 'port'>;
}

/** A server elsewhere. `authority`: PEM. `serverName`: that its certificate names. */
export interface NetworkAddress {
  host: string;
  port: number;
  authority: string;
  serverName: string;
  password: string;
}

type ServerLocation = HostLocation | { at: NetworkAddress };

/**
 * `data`: the expected data directory of the server. `user`: the administrator, or the loader of a staging server.
 * `settings`: further ones, as `name=value`, which win over those of the database.
 */
export interface Target {
  database?: string;
  data?: string;
  port?: number;
  user?: string;
  settings?: readonly string[];
  statementMs?: number;
}

/**
 * Runs `work` in a session, after verifying that the server uses these data.
 * @throws DriverError conflict when another server responds; the error of pg when none does
 */
export async function inSession<T>(
  cluster: ServerLocation,
  target: Target,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const session = await connect(cluster, target);
  try {
    // Others than the administrator cannot ask; a staging server is new, and in a directory of its own.
    if (target.user === undefined && !('at' in cluster)) await requireOurs(cluster, target, session);
    return await work(session);
  } finally {
    await session.end().catch(() => undefined);
  }
}

/** The server does not accept connections now: it is starting, stopping, or absent. */
export function isUnavailable(error: unknown): boolean {
  const code = String((error as NodeJS.ErrnoException).code ?? '');
  return (
    ['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE', '57P03', '57P01', '57P02'].includes(code) ||
    /timeout expired|Connection terminated/.test((error as Error).message)
  );
}

/** Quotes an SQL identifier. */
export function sqlIdentifier(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/** Quotes an SQL string. */
export function sqlString(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

async function connect(
  cluster: ServerLocation,
  { database = 'postgres', port, user = roles.admin, settings = [], statementMs = 30_000 }: Target,
): Promise<Client> {
  const own = user === roles.admin ? oursAsSuperuser : ours;
  const options = [...own, ...settings, `statement_timeout=${statementMs}`].map((one) => `-c ${one}`).join(' ');
  const client = new Client({
    ...parametersOf(cluster, port),
    user,
    database,
    options,
    application_name: 'platform',
    connectionTimeoutMillis: 5_000,
    query_timeout: statementMs + 5_000,
  });
  client.on('error', () => undefined); // the current query reports it
  try {
    await client.connect();
    return client;
  } catch (error) {
    await client.end().catch(() => undefined);
    throw error;
  }
}

function parametersOf(cluster: ServerLocation, port?: number): ClientConfig {
  if (!('at' in cluster)) return { host: socketDirectory(cluster.serverDirectory), port: port ?? cluster.spec.port };
  const { at } = cluster;
  return {
    ...{ host: at.host, port: at.port, password: at.password },
    ssl: { ca: at.authority, servername: at.serverName },
  };
}

async function requireOurs(
  cluster: HostLocation,
  { data = cluster.serverDirectory.data }: Target,
  session: Session,
): Promise<void> {
  const { rows } = await session.query<{ id: string; data: string }>(
    // Qualified: a target may have another search_path.
    `select system_identifier::text as id, pg_catalog.current_setting('data_directory') as data
      from pg_catalog.pg_control_system()`,
  );
  const [seen] = rows;
  const expected = await systemIdentifierOf(data);
  if (seen?.id === expected && (seen.data === data || seen.data === (await realpath(data)))) return;
  throw new DriverError(
    'conflict',
    'Another server answers at the address of this database server. Nothing was changed.',
  );
}
