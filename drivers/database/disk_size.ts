// Disk size of a server, where disk limits are enforced. The soft limit comes first: at `storage_gb` writes are
// rejected with a clear error; growth between two measurements is stopped by the size of the disk.
import type { DriverContext } from '../../core/driver';
import type { NextDisk } from '../hosted_server/replacement';
import { growServerDisk, isServerDiskFull } from '../hosted_server/server_disk';
import { sizeOfDisk } from '../volume/limited_disk';
import type { EngineContext, ServerDirectory } from '../hosted_server/server_directory';
import type { DatabaseServer } from '../database';

type Sized = Pick<DatabaseServer, 'storage_gb' | 'replica_of'>;

// The hard limit of PostgreSQL, at 1.1, must be reached before the disk is full; ext4 itself takes a part.
const storageShare = 1.25;
const megabyte = 2 ** 20;

/** max_wal_size of PostgreSQL in megabytes. */
export function walMegabytes({ gigabyteBytes }: Pick<EngineContext, 'gigabyteBytes'>, { storage_gb }: Sized): number {
  return Math.floor(Math.max(64, Math.min((storage_gb * gigabyteBytes) / megabyte / 10, 4096)));
}

/**
 * Disk size in bytes. In addition to the data, PostgreSQL needs space for its WAL, which may double for a moment;
 * MariaDB for its logs and temporary tables; Redis for a second copy during a rewrite or a snapshot.
 */
export function diskBytes(engine: Pick<EngineContext, 'name' | 'gigabyteBytes'>, server: Sized): number {
  const storage = server.storage_gb * engine.gigabyteBytes;
  if (engine.name === 'mariadb') return Math.ceil(storageShare * storage + 1024 * megabyte);
  if (engine.name !== 'postgresql') return Math.ceil(2 * storageShare * storage + 128 * megabyte);
  const bytes = Math.ceil(storageShare * storage + (2 * walMegabytes(engine, server) + 256) * megabyte);
  // Its primary may be full.
  return server.replica_of === null ? bytes : bytes + recoveryBytes(engine, server);
}

/** One-time extra space for a server with a full disk, to start again. PostgreSQL then rejects all writes. */
export function recoveryBytes(engine: Pick<EngineContext, 'gigabyteBytes'>, server: Sized): number {
  return (walMegabytes(engine, server) + 64) * megabyte;
}

/** Disk for replacement data. A server that was full keeps its extra space. */
export async function nextDisk(
  engine: EngineContext,
  { path: home }: ServerDirectory,
  server: Sized,
): Promise<NextDisk> {
  const [bytes, present] = [diskBytes(engine, server), (await sizeOfDisk(home)) ?? 0];
  const wasFull = present > bytes && present <= bytes + recoveryBytes(engine, server);
  return { engine, bytes: wasFull ? present : bytes };
}

/** Engine-specific steps of a resize. */
export interface RoomSteps {
  stop(id: string, ctx: DriverContext): Promise<void>;
  /** Moves the running server to this disk without a stop. False where it is not running. */
  move?(serverDirectory: ServerDirectory, server: DatabaseServer, disk: NextDisk, ctx: DriverContext): Promise<boolean>;
}

/**
 * Ensures the disk size of the package. A server with a full disk may fail to start or hang: it gets extra space once.
 */
export async function ensureRoom(
  engine: EngineContext,
  serverDirectory: ServerDirectory,
  server: DatabaseServer,
  steps: RoomSteps,
  ctx: DriverContext,
): Promise<void> {
  const stop = () => steps.stop(server.id, ctx);
  const size = diskBytes(engine, server);
  await growServerDisk(serverDirectory, size, stop, ctx);
  const most = size + recoveryBytes(engine, server);
  if (!(await isServerDiskFull(serverDirectory, most))) return;
  if (await steps.move?.(serverDirectory, server, { engine, bytes: most }, ctx)) return;
  await stop();
  await growServerDisk(serverDirectory, most, stop, ctx);
}
