// Connection data for a pooler: the socket of the server, and its users.
import { stat } from 'node:fs/promises';
import type { PooledServer, ServerLogin, DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { ServerDirectory } from '../../hosted_server/server_directory';
import { socketDirectory } from './cluster';
import { inSession, isUnavailable } from './session';

const REPORTS_SEARCH_PATH = 180_000;
const answerWithinMs = 4_000;

export async function pooledServer(
  serverDirectory: ServerDirectory,
  { port }: Pick<DatabaseServer, 'port'>,
): Promise<PooledServer> {
  const socket_directory = socketDirectory(serverDirectory);
  const answer = await queryServer(serverDirectory, port);
  const { dev, ino, birthtimeMs } = await stat(socket_directory);
  return { socket_directory, socket_key: [dev, ino, birthtimeMs].join('-'), port, ...answer };
}

async function queryServer(
  serverDirectory: ServerDirectory,
  port: number,
): Promise<Pick<PooledServer, 'logins' | 'reports_search_path'>> {
  try {
    return await inSession({ serverDirectory, spec: { port } }, { statementMs: answerWithinMs }, async (session) => {
      const { rows: logins } = await session.query<ServerLogin>(
        `select rolname as username, rolpassword as verifier from pg_authid
       where rolcanlogin and not rolsuper and not rolreplication and rolpassword like 'SCRAM-SHA-256$%'
         order by rolname`,
      );
      const { rows } = await session.query<{ version: number }>(
        "select current_setting('server_version_num')::int as version",
      );
      return { logins, reports_search_path: (rows[0]?.version ?? 0) >= REPORTS_SEARCH_PATH };
    });
  } catch (error) {
    throw isUnavailable(error) ? new DriverError('transient', 'The server does not answer at the moment.') : error;
  }
}
