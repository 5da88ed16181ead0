// The PostgreSQL that runs with the platform when DATABASE_URL is not set: real, of this directory, shared by all
// processes.
import * as fs from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { StartupError } from '../../core/startup_error';
import { type Cluster, prepareCluster } from './embedded/cluster';
import { engineUser } from './embedded/engine_user';
import {
  removeStaleSockets,
  isSupervised,
  readLastPort,
  type ServerAddress,
  type Postmaster,
  readPostmaster,
  findSocketDirectory,
  type Start,
  startEmbeddedServer,
  acquireLock,
} from './embedded/supervisor';

export interface EmbeddedOptions {
  /** Everything lies in its subfolder `postgres`. Made when missing. */
  dataDir: string;
  /** Further arguments for a server that this call starts, such as `-c`, `fsync=off`. */
  flags?: string[];
  /** As root: the user that runs the server. Default: PLATFORM_POSTGRES_USER, else the user `nobody`. */
  user?: string;
  /** The folder of postgres and initdb. Default: PG_BIN, else the npm package, else a server of this machine. */
  binaries?: string;
  /**
   * Given, this process supervises the server while it holds it: one that has ended is started again, at the same
   * address. Called after each restart, and with the error after a failed one, which is retried.
   */
  restarted?: (error: Error | null) => void;
  /** For a server that replays a long log. Default: five minutes. */
  startWithinMs?: number;
}

export interface Embedded {
  /** Address with password, of the superuser and the database postgres, on the loopback interface. */
  url: string;
  /** Lets go of the server. The last process to do so waits until it has stopped. */
  close(): Promise<void>;
}

const POLL_MS = 25;
// Recovery after a crash replays the log and may take minutes; a server that keeps ending at once is given up sooner.
const START_LIMIT_MS = 300_000;
const FAILED_STARTS = 10;
const FAILED_STARTS_BESIDE_THE_DEAD = 150;
const RETRY_MS = 300;
const WATCH_MS = 1_000;
const STOP_LIMIT_MS = 60_000;
const STOP_NOTICED_MS = 300;

/**
 * Starts the server of this directory, or attaches to it where another process runs it already.
 * It stops within about two seconds when the last holder closes or dies, kill -9 included.
 * Throws StartupError: directory not writable or not reachable for the engine's user, no programs found, data of
 * another major version, server does not start.
 */
export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  if (process.platform === 'win32')
    throw new StartupError('the embedded PostgreSQL needs Linux or macOS: set DATABASE_URL');
  try {
    const engine = engineUser(options.user ?? (process.env.PLATFORM_POSTGRES_USER || 'nobody'));
    const cluster = await prepareCluster(
      options.dataDir,
      engine,
      options.binaries ?? (process.env.PG_BIN || undefined),
    );
    const flags = options.flags ?? [];
    const { server, hold } = await attachOrStart(cluster, { flags, withinMs: options.startWithinMs });
    const stopWatch = options.restarted
      ? superviseServer(cluster, { flags, address: server }, options.restarted)
      : undefined;
    return { url: connectionUrlOf(server, cluster.password), close: closer(cluster, hold, stopWatch) };
  } catch (error) {
    throw toStartupError(error, options.dataDir);
  }
}

interface StartOptions {
  flags: string[];
  /** Where others know it. Else it comes where the last one was, or anywhere. */
  address?: ServerAddress;
  signal?: AbortSignal;
  withinMs?: number;
}

/**
 * The pipe outlives the server and its supervisor, so what holds one holds the next too. Where several processes start
 * one at once, the lock of the folder lets one succeed, and the others attach to it.
 */
function superviseServer(
  cluster: Cluster,
  wanted: StartOptions & { address: ServerAddress },
  restarted: (error: Error | null) => void,
): () => Promise<void> {
  const closing = new AbortController();
  const { signal } = closing;
  const restartUnlessKept = async (): Promise<void> => {
    try {
      if (isSupervised(cluster.fifo)) return;
      const { server, hold } = await attachOrStart(cluster, { ...wanted, signal });
      fs.closeSync(hold);
      restarted(
        server.port === wanted.address.port
          ? null
          : new Error(`another process has started it at port ${server.port} in place of ${wanted.address.port}`),
      );
    } catch (error) {
      if (!signal.aborted) restarted(error as Error);
    }
  };
  const watch = async (): Promise<void> => {
    while (await sleep(WATCH_MS, true, { signal, ref: false }).catch(() => false)) await restartUnlessKept();
  };
  const watching = watch();
  return () => {
    closing.abort();
    return watching;
  };
}

async function attachOrStart(cluster: Cluster, wanted: StartOptions): Promise<Attached> {
  const attempt: Attempt = { ...wanted, failures: 0, until: Date.now() + (wanted.withinMs ?? START_LIMIT_MS) };
  try {
    for (;;) {
      const attached = await attach(cluster);
      if (attached) return attached;
      wanted.signal?.throwIfAborted();
      await startIfNeeded(cluster, attempt);
      await sleep(POLL_MS);
    }
  } finally {
    attempt.start?.release();
  }
}

interface Attempt extends StartOptions {
  start?: Start;
  failures: number;
  until: number;
}

/**
 * One step of the wait. A start that ended is tried again: another process may have won, a port may have been taken, or
 * a killed server is still a zombie, which PostgreSQL takes for alive. postmaster.pid is never deleted here: PostgreSQL
 * knows best.
 */
async function startIfNeeded(cluster: Cluster, attempt: Attempt): Promise<void> {
  if (attempt.start?.ended()) {
    attempt.start.release();
    attempt.start = undefined;
    await sleep(RETRY_MS);
    if (!readPostmaster(cluster.data)) attempt.failures++;
  }
  if (attempt.failures >= FAILED_STARTS) throwUnlessBlocked(cluster, attempt);
  if (Date.now() > attempt.until) throw new StartupError(`PostgreSQL does not answer: ${lastLogError(cluster.log)}`);
  if (attempt.start || readPostmaster(cluster.data)) return;
  attempt.start = startEmbeddedServer(cluster, attempt.address ?? (await chooseAddress(cluster)), attempt.flags);
}

async function chooseAddress(cluster: Cluster): Promise<ServerAddress> {
  const port = await freePort(readLastPort(cluster.data));
  return { port, sockets: await findSocketDirectory(cluster, port) };
}

/** A killed server can stay a zombie, or keep its memory, for some seconds. */
function throwUnlessBlocked(cluster: Cluster, { failures }: Attempt): void {
  const reason = lastLogError(cluster.log);
  const blocked = /lock file|shared memory block/.test(reason);
  if (!blocked || failures >= FAILED_STARTS_BESIDE_THE_DEAD)
    throw new StartupError(`PostgreSQL does not start: ${reason}`);
}

interface Attached {
  server: Postmaster;
  /** The writing end of the pipe. */
  hold: number;
}

async function attach(cluster: Cluster): Promise<Attached | undefined> {
  const server = readPostmaster(cluster.data);
  if (server?.state !== 'ready') return undefined;
  const lock = acquireLock(cluster.fifo);
  if (lock === undefined) return stopOrphan(server);
  let attached = false;
  try {
    // The pipe is checked again after the connection: the supervisor may have begun to stop the server just before this
    // process opened the pipe.
    attached =
      (await acceptsConnections(connectionUrlOf(server, cluster.password), cluster)) && isSupervised(cluster.fifo);
  } finally {
    if (!attached) fs.closeSync(lock);
  }
  if (!attached) return undefined;
  removeStaleSockets(cluster.data, server.port);
  return { server, hold: lock };
}

/** Over the Unix socket a read costs the service 5 to 10 % less than over the loopback interface. */
function connectionUrlOf({ port, sockets }: Postmaster, password: string): string {
  const host = sockets ? `?host=${encodeURIComponent(sockets)}` : '';
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres${host}`;
}

/**
 * A server whose supervisor was killed would run for ever: stop it, and the next step starts one under a new
 * supervisor.
 */
function stopOrphan(server: Postmaster): undefined {
  try {
    process.kill(server.pid, 'SIGINT');
  } catch {
    // It has ended meanwhile.
  }
  return undefined;
}

async function acceptsConnections(url: string, cluster: Cluster): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    if ((error as { code?: string }).code !== '28P01') return false;
    throw new StartupError(
      `the database does not accept the password in ${cluster.passwordFile}: restore the file that belongs to ` +
        `${cluster.data}`,
    );
  } finally {
    await client.end().catch(() => {});
  }
}

function closer(cluster: Cluster, hold: number, stopWatch?: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= release(cluster, hold, stopWatch);
    return closing;
  };
}

async function release(cluster: Cluster, hold: number, stopWatch?: () => Promise<void>): Promise<void> {
  await stopWatch?.();
  fs.closeSync(hold);
  const noticedBy = Date.now() + STOP_NOTICED_MS;
  while (isSupervised(cluster.fifo)) {
    if (Date.now() > noticedBy) return; // others hold it
    await sleep(POLL_MS);
  }
  for (const until = Date.now() + STOP_LIMIT_MS; readPostmaster(cluster.data) && Date.now() < until;)
    await sleep(POLL_MS);
}

/** @param wanted taken where it is free */
function freePort(wanted = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().on('error', (error) => (wanted ? resolve(freePort()) : reject(error)));
    probe.listen(wanted, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

function lastLogError(log: string): string {
  const fatal =
    fs.existsSync(log) &&
    fs
      .readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => /FATAL|PANIC/.test(line))
      .pop();
  return fatal ? `${fatal.replace(/^.*?(FATAL|PANIC):\s*/, '')} (${log})` : `see ${log}`;
}

function toStartupError(error: unknown, dataDir: string): unknown {
  const { code, syscall, message } = error as NodeJS.ErrnoException;
  if (error instanceof StartupError || !code || !syscall) return error;
  return new StartupError(`cannot use the data directory ${dataDir}: ${message.split('\n')[0]}`);
}
