// How large the disk of a server is, where disks are hard. The friendly limit comes first: at `storage_gb` writes are
// refused with a clear error, and what grows on between two measurements meets the end of the disk.
import type { DriverContext } from '../../core/driver';
import type { NextDisk } from '../hosted_server/replacement';
import { growServerDisk, isServerDiskFull } from '../hosted_server/server_disk';
import { sizeOfDisk } from '../volume/limited_disk';
import type { EngineContext, ServerDirectory } from '../hosted_server/server_directory';
import type { DatabaseServer } from '../database';

type Sized = Pick<DatabaseServer, 'storage_gb' | 'replica_of'>;

// The second limit of PostgreSQL, at 1.1, has to come before the end; a part is what ext4 takes for itself.
const storageShare = 1.25;
const megabyte = 2 ** 20;

/** max_wal_size of PostgreSQL in megabytes. */
export function walMegabytes({ gigabyteBytes }: EngineContext, { storage_gb }: Sized): number {
  return Math.floor(Math.max(64, Math.min((storage_gb * gigabyteBytes) / megabyte / 10, 4096)));
}

/**
 * Bytes of the disk of a server. Beside the data PostgreSQL has its log, which may be twice as large for a moment;
 * MariaDB its own logs and temporary tables; Redis a second copy, when it writes its file anew or takes a snapshot.
 */
export function diskBytes(engine: EngineContext, server: Sized): number {
  const storage = server.storage_gb * engine.gigabyteBytes;
  if (engine.name === 'mariadb') return Math.ceil(storageShare * storage + 1024 * megabyte);
  if (engine.name !== 'postgresql') return Math.ceil(2 * storageShare * storage + 128 * megabyte);
  const bytes = Math.ceil(storageShare * storage + (2 * walMegabytes(engine, server) + 256) * megabyte);
  // It follows a primary that may be full.
  return server.replica_of === null ? bytes : bytes + recoveryBytes(engine, server);
}

/** What a server whose disk is full gets once, to start again. PostgreSQL refuses all writes from then on. */
export function recoveryBytes(engine: EngineContext, server: Sized): number {
  return (walMegabytes(engine, server) + 64) * megabyte;
}

/** The disk for data that take the place of others. A server that was full keeps the room that it got. */
export async function nextDisk(
  engine: EngineContext,
  { path: home }: ServerDirectory,
  server: Sized,
): Promise<NextDisk> {
  const [bytes, present] = [diskBytes(engine, server), (await sizeOfDisk(home)) ?? 0];
  const wasFull = present > bytes && present <= bytes + recoveryBytes(engine, server);
  return { engine, bytes: wasFull ? present : bytes };
}

/** What the engine does for room. */
export interface RoomSteps {
  stop(id: string, ctx: DriverContext): Promise<void>;
  /** The server goes on on this disk, without a stop. Answers false where it does not run. */
  move?(serverDirectory: ServerDirectory, server: DatabaseServer, disk: NextDisk, ctx: DriverContext): Promise<boolean>;
}

/**
 * The disk is as large as the package asks for. A server that has met its end may not start, or hang, without some
 * room: that it gets once.
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
