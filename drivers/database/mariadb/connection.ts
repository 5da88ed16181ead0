// Executes statements, as the platform's administrator: over the socket of a server, or a tunnel to a pod.
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { RowDataPacket } from 'mysql2/promise';
import type { DatabaseServer } from '../../database';
import { checkpoint, DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { socketOf, type ServerDirectory } from '../../hosted_server/server_directory';
import { NotReady } from '../../hosted_server/readiness';
import { adminOf } from './config';

export type Row = Record<string, string | number | null>;
/** Executes one statement and returns its rows. `?` are placeholders for values. */
export type Query = (statement: string, values?: (string | number)[]) => Promise<Row[]>;

const answerWithinMs = 5_000;

export interface Login {
  user: string;
  password: string;
}

/** From where the accounts of the platform log in. */
export type AccountHost = 'localhost' | '%';

/** How the platform reaches a server. */
export interface ServerAccess {
  way: { socketPath: string } | { stream: () => Duplex };
  /** As the server says it: another one is not ours. */
  data: string;
  accountHost: AccountHost;
}

/** To a server of this host. @throws DriverError unsupported for a path that is too long */
export function serverAccessOf(serverDirectory: ServerDirectory): ServerAccess {
  return { way: { socketPath: socketOf(serverDirectory) }, data: serverDirectory.data, accountHost: 'localhost' };
}

/** As withLogin, as the platform's administrator. */
export function withServer<T>(
  access: ServerAccess,
  spec: Pick<DatabaseServer, 'id' | 'admin_password'>,
  work: (query: Query) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  return withLogin(access, { user: adminOf(spec.id), password: spec.admin_password }, work, ctx);
}

/**
 * Connects, verifies that the server has this data directory, runs the work and disconnects.
 * @throws NotReady @throws DriverError conflict where another server responds
 */
export async function withLogin<T>(
  access: ServerAccess,
  { user, password }: Login,
  work: (query: Query) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  try {
    // Imported on demand: the package slows down the start of the platform.
    const { createConnection } = await import('mysql2/promise');
    const connection = await createConnection({
      ...access.way,
      user,
      password,
      connectTimeout: answerWithinMs,
    });
    connection.on('error', () => undefined);
    // A query of a connection that is destroyed would never end.
    const done = new AbortController();
    const aborted = once(ctx.signal, 'abort', { signal: done.signal }).then(() => {
      connection.destroy();
      throw new DriverError('transient', 'The step did not finish in time.');
    });
    aborted.catch(() => undefined);
    try {
      const query: Query = async (statement, values = []) => {
        const [rows] = await Promise.race([connection.query<RowDataPacket[]>(statement, values), aborted]);
        return Array.isArray(rows) ? rows : [];
      };
      checkpoint(ctx);
      await requireOurs(query, access);
      const result = await work(query);
      // Without a farewell, the log of the server has a warning.
      await connection.end().catch(() => undefined);
      return result;
    } finally {
      done.abort();
      connection.destroy();
    }
  } catch (error) {
    throw toDriverError(error as NodeJS.ErrnoException);
  }
}

/** Quotes an identifier with backticks. */
export function identifier(name: string): string {
  return `\`${name.replaceAll('`', '``')}\``;
}

async function requireOurs(query: Query, { data }: ServerAccess): Promise<void> {
  const [row] = await query('SELECT @@datadir AS directory');
  if (row?.directory !== `${data}/`)
    throw new DriverError(
      'conflict',
      'Another server answers at the address of this database server. Nothing was changed.',
    );
}

const notReadyCodes = [
  'ENOENT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'PROTOCOL_CONNECTION_LOST',
  'ER_SERVER_SHUTDOWN',
];

function toDriverError(error: NodeJS.ErrnoException): DriverError {
  if (error instanceof DriverError) return error;
  const code = String(error.code ?? error.name);
  if (notReadyCodes.includes(code)) return new NotReady();
  if (/CERT|TLS|UNABLE_TO_/.test(code))
    return new DriverError('transient', 'What answers at the address of the server has another certificate.', 5_000);
  if (code === 'ER_ACCESS_DENIED_ERROR')
    return new DriverError('conflict', 'The server rejects the credentials of the platform. Nothing was changed.');
  // The server's message may repeat the statement.
  return Object.assign(new DriverError('transient', `The server answered ${code}.`), { cause: error });
}
