// Sessions at the source of an import that follows it, and what a stranger's server may send in them.
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type ClientConfig, type DatabaseError } from 'pg';
import { DriverError } from '../../../../../core/driver';
import { cleanFailureText } from '../../../../../core/log/failure_text';
import { toSentence } from '../../../../../core/sentence';
import type { SourceServer } from '../../../imports/import';

const CONNECT_MS = 10_000;
export const STATEMENT_MS = 60_000;
/** Of the answer to one statement that is not replication. */
const ANSWER_BYTES_MAX = 8 * 2 ** 20;
/** Of one change: several copies of it are in memory at once. */
const MESSAGE_BYTES_MAX = 64 * 2 ** 20;
/** As the walreceiver of PostgreSQL sets them, so that text means the same on both sides. */
const SETTINGS = [
  ...['datestyle=ISO', 'intervalstyle=postgres', 'extra_float_digits=3', 'timezone=UTC', 'bytea_output=hex'],
  ...['default_transaction_read_only=off', 'search_path=pg_catalog', 'lock_timeout=30000'],
  // The snapshot of a slot is a transaction that waits.
  'idle_in_transaction_session_timeout=0',
];

/** What sessions of the import are called at the source. */
export const SOURCE_SESSION = 'platform_import';

/**
 * Connects to the address that was judged, and to no other one. The password is in this process alone.
 * @throws DriverError transient
 */
export async function connectToSource(server: SourceServer, kind: 'sql' | 'replication'): Promise<Client> {
  const tls = { servername: server.host, rejectUnauthorized: server.tls.startsWith('verify') };
  const verified = server.tls === 'verify-ca' ? { ...tls, checkServerIdentity: () => undefined } : tls;
  const attempts: ClientConfig['ssl'][] =
    server.tls === 'disable' ? [false] : server.tls === 'prefer' ? [verified, false] : [verified];
  let last: Error | undefined;
  for (const ssl of attempts) {
    const client = new Client(configOf(server, kind, ssl));
    client.on('error', () => undefined); // the current query reports it
    guard(client, kind);
    try {
      await client.connect();
      return client;
    } catch (error) {
      await endQuickly(client);
      last = error as Error;
      if (!/does not support SSL/.test(last.message)) break;
    }
  }
  throw failureAtSource(last);
}

interface PgConnection {
  stream: Duplex;
  on(event: 'sslconnect' | 'readyForQuery', listener: () => void): void;
}

function connectionOf(client: Client): PgConnection {
  return (client as unknown as { connection: PgConnection }).connection;
}

/** What a stranger's server sends ends its connection at most: unreadable messages, and answers of any size. */
function guard(client: Client, kind: 'sql' | 'replication'): void {
  const connection = connectionOf(client);
  let bytes = 0;
  const wrap = (): void => {
    const { stream } = connection;
    const emit = stream.emit.bind(stream) as (event: string | symbol, ...args: unknown[]) => boolean;
    const sizes = new MessageSizes();
    stream.emit = (event: string | symbol, ...args: unknown[]) => {
      if (event !== 'data') return emit(event, ...args);
      try {
        bytes += (args[0] as Buffer).length;
        if (kind === 'sql' && bytes > ANSWER_BYTES_MAX)
          throw new DriverError('invalid', 'The source answers with more than it may have to say.');
        sizes.check(args[0] as Buffer);
        return emit(event, ...args);
      } catch (error) {
        stream.destroy(error as Error);
        return false;
      }
    };
  };
  wrap();
  connection.on('sslconnect', wrap);
  connection.on('readyForQuery', () => {
    bytes = 0;
  });
}

/** Of messages that come in pieces: `pg` keeps one until its end has come. */
class MessageSizes {
  private readonly head = Buffer.alloc(5);
  private headBytes = 0;
  private left = 0;

  /** @throws DriverError invalid */
  check(piece: Buffer): void {
    for (let at = 0; at < piece.length;) {
      if (this.left > 0) {
        const bytes = Math.min(this.left, piece.length - at);
        this.left -= bytes;
        at += bytes;
        continue;
      }
      this.head[this.headBytes] = piece[at]!;
      this.headBytes += 1;
      at += 1;
      if (this.headBytes < this.head.length) continue;
      this.headBytes = 0;
      // The length counts itself.
      const length = this.head.readUInt32BE(1);
      if (length > MESSAGE_BYTES_MAX)
        throw new DriverError(
          'invalid',
          'A change at the source has more than 64 MB. Rows of that size are not followed: exclude ' +
            'their table, or use the mode copy.',
        );
      this.left = Math.max(0, length - 4);
    }
  }
}

/** A server that is silent does not hold it up; neither does replication, which does not end by itself. */
export async function endQuickly(client: Client): Promise<void> {
  const { stream } = connectionOf(client);
  await Promise.race([client.end().catch(() => undefined), sleep(1_000)]);
  stream.destroy();
}

function configOf(server: SourceServer, kind: 'sql' | 'replication', ssl: ClientConfig['ssl']): ClientConfig {
  const timeout = kind === 'sql' ? [`statement_timeout=${STATEMENT_MS}`] : ['statement_timeout=0'];
  return {
    ...{ host: server.address, port: server.port, user: server.user },
    // As a function it is used as it is: an empty one would be that of this process (PGPASSWORD, ~/.pgpass).
    password: () => server.password,
    ...(kind === 'sql' && { query_timeout: STATEMENT_MS + CONNECT_MS }),
    ...{ database: server.database, ssl: ssl ?? false, connectionTimeoutMillis: CONNECT_MS, keepAlive: true },
    ...{ application_name: SOURCE_SESSION, ...(kind === 'replication' && { replication: 'database' }) },
    options: [...SETTINGS, ...timeout].map((one) => `-c ${one}`).join(' '),
  };
}

/** @throws DriverError transient where no session can be opened; what `work` throws */
export async function atSource<T>(
  server: SourceServer,
  work: (client: Client) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const client = await connectToSource(server, 'sql');
  const stop = (): void => void connectionOf(client).stream.destroy();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    signal?.throwIfAborted();
    return await work(client);
  } finally {
    signal?.removeEventListener('abort', stop);
    await endQuickly(client);
  }
}

export function failureAtSource(error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  const { message: given, code, severity } = (error ?? {}) as Partial<DatabaseError>;
  const text = cleanFailureText(given || (code ?? ''));
  const message = `The source ${severity === undefined ? 'does not answer' : 'refuses'}: ${toSentence(text)}`;
  return Object.assign(new DriverError('transient', message), { cause: error });
}

/** Those that a user or a database there has set; before they exist, they cannot be named in the options. */
export async function disableTimeouts(client: Client): Promise<void> {
  await client.query(
    `select set_config(name, '0', false) from pg_settings
      where name in ('transaction_timeout', 'idle_session_timeout')`,
  );
}
