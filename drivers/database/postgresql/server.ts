// The server process as a unit of the runtime, and staging servers with data that are not in place yet.
import { setTimeout as sleep } from 'node:timers/promises';
import { chown, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import type { UnitSpec } from '../../runtime';
import { shellQuoted } from '../../hosted_server/driver';
import { ownerOf, readNote, writeNote, type ServerDirectory, type Owner } from '../../hosted_server/server_directory';
import { lastFailure } from './log';
import { lastLines, endReasonOf, runServerTask, unitOf } from '../../hosted_server/unit';
import { logDirectory, socketDirectory, type Cluster } from './cluster';
import { serverArguments } from './configuration';
import { inSession, isUnavailable, type Session, type Target } from './session';

const pollEveryMs = 50;
const graceMs = 60_000;
// Processes besides those of connections: helpers, workers, WAL senders.
const processesBeside = 64;

/** Parameters that require a restart: process limits and program. */
type Launched = Pick<Cluster['spec'], 'size' | 'tenant' | 'port'> & { bin: string };

/** The unit of the server in place, or of the staging server. */
type Which = 'server' | 'staging';

export async function isPostgresRunning(cluster: Cluster, which: Which = 'server'): Promise<boolean> {
  const handle = await cluster.engine.runtime.find(nameOf(cluster, which));
  return handle !== null && (await cluster.engine.runtime.inspect(handle)).state === 'running';
}

/** Whether it runs with outdated limits or programs. */
export async function needsRestart(cluster: Cluster): Promise<boolean> {
  const launched = await readNote<Launched>(cluster.serverDirectory, 'launched');
  return JSON.stringify(launched) !== JSON.stringify(launchOf(cluster));
}

/** Starts the server where it is not running. Remains of its last run are removed. */
export async function startPostgres(cluster: Cluster, which: Which, data: string, ctx: DriverContext): Promise<void> {
  const { engine, serverDirectory } = cluster;
  if (await isPostgresRunning(cluster, which)) return;
  const id = nameOf(cluster, which);
  await engine.runtime.destroy(id, ctx);
  if (which === 'server') await writeNote(serverDirectory, 'launched', launchOf(cluster));
  await mkdir(logDirectory(serverDirectory), { recursive: true, mode: 0o700 }); // the disk may be new
  await openSocket(serverDirectory, data);
  await engine.runtime.start(unitSpec(cluster, id, data), ctx);
}

/** Stops the server: sessions end, commits are synced, and the archive is complete. Stopped is success. */
export async function stopPostgres(
  cluster: Pick<Cluster, 'engine' | 'serverDirectory'>,
  which: Which,
  ctx: DriverContext,
): Promise<void> {
  const { runtime } = cluster.engine;
  const id = nameOf(cluster, which);
  const handle = await runtime.find(id);
  // SIGINT: does not wait for clients (PostgreSQL, "Shutting Down the Server").
  if (handle !== null) await runtime.stop(handle, { grace_ms: graceMs, signal: 'SIGINT' }, ctx);
  await runtime.destroy(id, ctx);
}

/**
 * Waits until the server accepts connections, then runs the work in a session. @throws DriverError transient when it
 * exits, or on timeout
 */
export async function whenReady<T>(
  cluster: Cluster,
  which: Which,
  target: Target,
  work: (session: Session) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  for (;;) {
    let last: unknown;
    try {
      return await inSession(cluster, target, work);
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      last = error;
    }
    const end = await endOf(cluster, which);
    if (end !== null) throw end;
    if (ctx.signal.aborted)
      throw Object.assign(new DriverError('transient', 'The server does not take connections yet.'), { cause: last });
    await sleep(pollEveryMs);
  }
}

/** Why the server has exited; null while it is running. The cause contains the server's own output. */
export async function endOf(
  cluster: Pick<Cluster, 'engine' | 'serverDirectory'>,
  which: Which,
): Promise<DriverError | null> {
  const { runtime } = cluster.engine;
  const id = nameOf(cluster, which);
  const handle = await runtime.find(id);
  const state = handle === null ? null : await runtime.inspect(handle);
  if (state?.state === 'running') return null;
  const end = state?.state === 'exited' ? endReasonOf(state) : 'The server does not run.';
  const last = await lastFailure(cluster.serverDirectory);
  const reason = last === null ? end : `${end} Its log says: ${last}`;
  return Object.assign(new DriverError('transient', reason), { cause: await lastLines(cluster.engine, id) });
}

/** Gives a directory tree to the server's user, which only the runtime knows. */
export async function assignOwner(cluster: Cluster, tree: string, ctx: DriverContext): Promise<Owner> {
  await runServerTask(cluster.engine, cluster.spec, 'own', tree, { command: 'chmod 0700 .', threads: 8 }, ctx);
  return ownerOf({ data: tree } as ServerDirectory);
}

// The platform's tools reach the socket through group 0, and have no other permission there (programs.ts).
async function openSocket(serverDirectory: ServerDirectory, data: string): Promise<void> {
  const { uid } = await ownerOf({ ...serverDirectory, data });
  if (process.getuid?.() === 0) await chown(socketDirectory(serverDirectory), uid, 0);
}

function nameOf({ serverDirectory }: Pick<Cluster, 'serverDirectory'>, which: Which): string {
  return which === 'server' ? unitOf(serverDirectory.id) : `${serverDirectory.id}.${which}`;
}

function launchOf({ spec, programs }: Cluster): Launched {
  return { size: spec.size, tenant: spec.tenant, port: spec.port, bin: programs.bin };
}

function unitSpec(cluster: Cluster, id: string, data: string): UnitSpec {
  const { spec, serverDirectory, programs } = cluster;
  const places = [
    data,
    socketDirectory(serverDirectory),
    logDirectory(serverDirectory),
    path.join(serverDirectory.path, 'archive'),
  ];
  const { memory_mb, cpus, max_connections } = spec.size;
  const command = [path.join(programs.bin, 'postgres'), ...serverArguments(cluster, data)].map(shellQuoted).join(' ');
  return {
    id,
    kind: 'service',
    command: `exec ${command}`,
    directory: serverDirectory.run,
    root_directory: '.',
    env: { TZ: 'UTC' },
    tenant: spec.tenant,
    network: spec.network,
    low_priority: spec.low_priority,
    ...(id === unitOf(serverDirectory.id) && { published_port: spec.port }),
    mounts: places.map((place) => ({ source: place, target: place })),
    readable: [serverDirectory.conf, ...programs.readable],
    limits: {
      memory_mb,
      cpus: spec.low_priority ? null : cpus,
      processes: max_connections + processesBeside,
      time_ms: null,
      output_bytes: 4 << 20,
      disk_mb: null,
    },
  };
}
