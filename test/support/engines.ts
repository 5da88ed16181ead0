// PostgreSQL servers of this host for tests of their driver. An engine that is not there is skipped by name; under CI
// nothing is.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { Client, type ClientConfig } from 'pg';
import { Socket, type TcpSocketConnectOpts } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PostgresqlFound } from '../../core/catalog/host_facts';
import type { BackupStore } from '../../drivers/backup_store';
import type { DatabaseServer, RestoreFrom } from '../../drivers/database';
import { driverContext, type DriverContext } from '../../core/driver';
import { hostFacts } from '../../drivers/host';
import { claimPorts } from './processes/claimed_ports';
import { specOf } from './databases/database_server';
import { openTrial, type Trial, type Variant } from './builds/runtime';
import { postgresqlServers, type Servers } from './databases/hosted_servers';

/** A driver in a runtime of its own; `megabyte` makes a GB of storage small. */
export interface EngineTrial {
  trial: Trial;
  driver: Servers;
  directory: string;
  found: PostgresqlFound[];
  /** The first of a block of ports for its servers: their names in the runtime are made of them. */
  firstPort: number;
  close(): Promise<void>;
}

export async function openEngineTrial(
  more: { gigabyteBytes?: number; variant?: Variant; store?: BackupStore } = {},
): Promise<EngineTrial> {
  const { postgresql: found } = await hostFacts();
  const trial = await openTrial(more.variant ?? { sandbox: 'auto' });
  const directory = `${trial.root}/databases`;
  const ports = await claimPorts();
  const driver = postgresqlServers({
    ...{ runtime: trial.runtime, directory, found, gigabyteBytes: more.gigabyteBytes, disks: trial.disks },
    store: more.store ?? null,
  });
  return {
    trial,
    directory,
    found,
    firstPort: ports.first,
    close: async () => {
      // Their disks have to be unmounted.
      for (const id of await driver.list(driverContext(patienceMs))) await driver.remove(id, driverContext(patienceMs));
      await trial.close();
      await ports.release();
    },
    driver,
  };
}

/** A PostgreSQL of this host with all its tools; its name is in the name of what is skipped. */
export async function wholePostgresql(): Promise<PostgresqlFound | undefined> {
  const { postgresql } = await hostFacts();
  return postgresql.find(({ tools }) =>
    ['pg_dump', 'pg_restore', 'pg_basebackup'].every((tool) => tools.includes(tool)),
  );
}

export function postgresqlSpec(version: string, port: number, more: Partial<DatabaseServer> = {}): DatabaseServer {
  return { ...specOf('postgresql', version, port), database_name: 'app', ...more };
}

/**
 * Calls again while a call says that its work goes on.
 * @throws Error when that takes too long, with what went on: the processes, and the sessions of the server `at`
 */
export async function untilDone<T>(call: (ctx: DriverContext) => Promise<T>, at?: DatabaseServer): Promise<T> {
  const context = driverContext(patienceMs);
  for (;;) {
    try {
      return await call(context);
    } catch (error) {
      if ((error as { reason?: string }).reason !== 'transient') throw error;
      if (context.signal.aborted)
        throw Object.assign(new Error(`${(error as Error).message}\n${await whatGoesOn(at)}`), { cause: error });
      await sleep(200);
    }
  }
}

/** A machine that does other things beside has its time. */
const patienceMs = 180_000;

async function whatGoesOn(at?: DatabaseServer): Promise<string> {
  const processes = spawnSync('ps', ['-eo', 'pid,ppid,stat,etimes,time,wchan:24,args', '--cols', '250'], {
    encoding: 'utf8',
  })
    .stdout.split('\n')
    .filter((line) => /PID|postgres|pg_basebackup|initdb|platform-unit/.test(line));
  const sessions =
    at &&
    (await rows(
      at,
      'select pid, backend_type, state, wait_event_type, wait_event, left(query, 100) as query from pg_stat_activity',
    ).catch((error: Error) => error.message));
  const pressure = ['/proc/loadavg', '/proc/pressure/io', '/proc/pressure/cpu']
    .filter((file) => existsSync(file))
    .map((file) => `${file}: ${readFileSync(file, 'utf8')}`);
  return [...processes, JSON.stringify(sessions), ...pressure].join('\n');
}

/** What a customer's client does: TCP, TLS. */
export async function asUser<T>(
  spec: DatabaseServer,
  more: ClientConfig,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const [user] = spec.users;
  const client = new Client({
    host: '127.0.0.1',
    port: spec.port,
    database: spec.database_name ?? undefined,
    user: user?.username,
    password: user?.password,
    ssl: { ca: spec.tls.certificate, servername: 'localhost' },
    connectionTimeoutMillis: 5_000,
    ...more,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** A connection that comes from another address of the loopback network, as if from another host. */
export function from(localAddress: string): Pick<ClientConfig, 'stream'> {
  const stream = () => {
    const socket = new Socket();
    const connect = socket.connect.bind(socket) as (options: TcpSocketConnectOpts) => Socket;
    socket.connect = ((port: number, host: string) =>
      connect({ port, host, localAddress })) as unknown as Socket['connect'];
    return socket;
  };
  return { stream };
}

/** The SQLSTATE that a connection or a query is refused with; null where it is not. */
export async function refusal(spec: DatabaseServer, more: ClientConfig, sql = 'select 1'): Promise<string | null> {
  try {
    await asUser(spec, more, (client) => client.query(sql));
    return null;
  } catch (error) {
    return String((error as { code?: string }).code ?? (error as Error).message);
  }
}

export async function rows(
  spec: DatabaseServer,
  sql: string,
  more: ClientConfig = {},
): Promise<Record<string, unknown>[]> {
  return asUser(spec, more, async (client) => (await client.query<Record<string, unknown>>(sql)).rows);
}

/** What the tests of backups and replicas write. */
export async function notesOf(spec: DatabaseServer): Promise<unknown[]> {
  return (await rows(spec, 'select note from notes order by note')).map(({ note }) => note);
}

/** A moment after all that the server has done until now, by its own clock. */
export async function serverTime(spec: DatabaseServer): Promise<string> {
  await sleep(30);
  const format = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;
  const [row] = await rows(spec, `select to_char(clock_timestamp() at time zone 'utc', ${format}) as now`);
  return String(row?.now);
}

/** A restore from the server `spec`, to what `more` names. */
export function restoreFrom(spec: DatabaseServer, id: string, more: Partial<RestoreFrom>): RestoreFrom {
  return { id, server_id: spec.id, backup_id: null, until: null, ...more };
}
