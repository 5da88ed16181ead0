// A driver of MariaDB in a directory of its own, and clients of its servers.
import { spawnSync } from 'node:child_process';
import { createConnection, type Connection } from 'mysql2/promise';
import type { EngineFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import { openServerTrial, removeServers } from './database_server';
import { mariadbServers, type Servers } from './hosted_servers';
import { processesWith } from '../processes/processes';
import type { Trial } from '../builds/runtime';

const there =
  spawnSync('mariadbd', ['--version'], { env: { PATH: `${process.env.PATH}:/usr/sbin` } }).status === 0 ||
  process.env.CI !== undefined;

/** Skipped by name where the host has no MariaDB; with CI set it fails there. */
export function describeMariadb(name: string, tests: () => void): void {
  if (there) describe(name, tests);
  else describe.skip(`${name} (mariadb-server is not installed)`, tests);
}

export interface MariadbTrial {
  trial: Trial;
  driver: Servers;
  found: EngineFound[];
  directory: string;
  /** Removes all servers; nothing of them may be left. */
  close(): Promise<void>;
}

export async function openMariadbTrial(): Promise<MariadbTrial> {
  const trial = await openServerTrial();
  const found = (await hostFacts()).mariadb;
  const directory = `${trial.root}/databases`;
  const driver = mariadbServers({ runtime: trial.runtime, directory, found, disks: trial.disks });
  return {
    ...{ trial, driver, found, directory },
    async close() {
      await removeServers(driver);
      expect(processesWith(directory)).toEqual([]);
      await trial.close();
      expect(trial.errors).toEqual([]);
    },
  };
}

export function connectAs(server: DatabaseServer, username: string, password: string): Promise<Connection> {
  return createConnection({
    host: '127.0.0.1',
    port: server.port,
    user: username,
    password,
    database: server.database_name!,
    ssl: { ca: server.tls.certificate },
    connectTimeout: 3_000,
  });
}

/** What a tenant's client is answered: rows, or the code of the error. */
export async function answersFor(
  server: DatabaseServer,
  username: string,
  password: string,
  statements: string[],
): Promise<unknown[]> {
  const connection = await connectAs(server, username, password).catch((error: NodeJS.ErrnoException) =>
    String(error.code),
  );
  if (typeof connection === 'string') return [connection];
  const answers: unknown[] = [];
  for (const one of statements)
    answers.push(
      await connection.query(one).then(
        ([rows]) => (Array.isArray(rows) ? rows : 'ok'),
        (error: NodeJS.ErrnoException) => error.code,
      ),
    );
  connection.destroy();
  return answers;
}
