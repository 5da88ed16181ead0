// Sends commands over the socket of a server, as the platform's account.
import { memoize } from '../../../core/memoize';
import type { DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { socketOf, type ServerDirectory } from '../../hosted_server/server_directory';
import { NotReady } from '../../hosted_server/readiness';
import { adminOf } from './acl';

/** Sends one command and returns its reply. */
export type SendCommand = (...words: string[]) => Promise<unknown>;

/** The same, with bytes; what takes long is in SLOWLOG then. */
export type SendRaw = (words: (string | Buffer)[]) => Promise<unknown>;

const answerWithinMs = 5_000;
/** Commands of tenants that take longer are in SLOWLOG. */
const SLOW_MICROSECONDS = '10000';
// Imported on demand: the package takes a tenth of the platform's start. And createClient builds a class with all
// commands each time, which takes longer than all commands sent; duplicates share the class.
const template = memoize(async () =>
  (await import('@redis/client')).createClient({ RESP: 2, disableClientInfo: true }),
);
const notReadyPattern =
  /ENOENT|ECONNREFUSED|ECONNRESET|LOADING|Socket closed|closed the connection|Connection timeout/i;

/** Where a server answers. */
export interface RedisAddress {
  /** A socket of this host, or an address with TLS. `authority`: PEM. `serverName`: that its certificate names. */
  at: { path: string } | { host: string; port: number; authority: string; serverName: string };
  /** Directory of its configuration, as the server says it: another one is not ours. */
  conf: string;
}

/**
 * Connects, verifies that the server belongs to this directory, runs the work and disconnects.
 * @throws NotReady @throws DriverError conflict where another server responds
 */
export function withServer<T>(
  serverDirectory: ServerDirectory,
  spec: Pick<DatabaseServer, 'id' | 'admin_password'>,
  work: (send: SendCommand, raw: SendRaw) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  return withServerAt({ at: { path: socketOf(serverDirectory) }, conf: serverDirectory.conf }, spec, work, ctx);
}

/** As withServer, wherever the server is. The password is sent once the certificate is verified. */
export async function withServerAt<T>(
  { at, conf }: RedisAddress,
  spec: Pick<DatabaseServer, 'id' | 'admin_password'>,
  work: (send: SendCommand, raw: SendRaw) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  const patience = { reconnectStrategy: false, connectTimeout: answerWithinMs } as const;
  const client = (await template()).duplicate({
    username: adminOf(spec.id),
    password: spec.admin_password,
    socket:
      'path' in at
        ? { path: at.path, tls: false, ...patience }
        : { host: at.host, port: at.port, tls: true, ca: at.authority, servername: at.serverName, ...patience },
  });
  client.on('error', () => undefined);
  const over = () => client.destroy();
  ctx.signal.addEventListener('abort', over, { once: true });
  try {
    await client.connect();
    const send: SendCommand = (...words) => sendUnlogged((command) => client.sendCommand(command), words);
    requireOurs(String(await send('INFO', 'server')), conf);
    return await work(send, (words) => client.sendCommand(words));
  } catch (error) {
    throw toDriverError(error as Error);
  } finally {
    ctx.signal.removeEventListener('abort', over);
    if (client.isOpen) client.destroy();
  }
}

// SLOWLOG is visible to administrators of the tenant and has no filter: it is disabled during commands of the platform.
// If this is interrupted, the next command restores the setting.
async function sendUnlogged(send: (words: string[]) => Promise<unknown>, words: string[]): Promise<unknown> {
  const logFrom = (microseconds: string) => send(['CONFIG', 'SET', 'slowlog-log-slower-than', microseconds]);
  const [, answer] = await Promise.all([logFrom('-1'), send(words), logFrom(SLOW_MICROSECONDS)]);
  return answer;
}

/** Fields of an INFO reply. */
export function infoFieldsOf(info: unknown): Map<string, string> {
  const lines = String(info)
    .split('\r\n')
    .filter((line) => line.includes(':') && !line.startsWith('#'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function requireOurs(info: string, conf: string): void {
  const file = infoFieldsOf(info).get('config_file') ?? '';
  if (!file.startsWith(`${conf}/`))
    throw new DriverError(
      'conflict',
      'Another server answers at the address of this database server. Nothing was changed.',
    );
}

function toDriverError(error: Error): DriverError {
  if (error instanceof DriverError) return error;
  const text = `${(error as NodeJS.ErrnoException).code ?? ''} ${error.name} ${error.message}`;
  if (notReadyPattern.test(text)) return new NotReady();
  if (/WRONGPASS|NOAUTH/.test(text))
    return new DriverError('conflict', 'The server rejects the credentials of the platform. Nothing was changed.');
  // The server's message may repeat the command.
  return Object.assign(
    new DriverError('transient', `The server answered ${/^[A-Z]+(?= )/.exec(error.message)?.[0] ?? 'with an error'}.`),
    { cause: error },
  );
}
