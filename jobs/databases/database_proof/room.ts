// Whether this machine has room for a proof: it takes nothing that others were promised, and leaves a reserve.
import { statfs } from 'node:fs/promises';
import { DriverError } from '../../../core/driver';
import { hostMemory } from '../../../drivers/host';
import type { ProvenBackup } from '../../../models/databases/database_proof';
import type { JobContext } from '../../job';
import type { DatabaseRow } from '../database/row';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
/** Of the disk, at least: a disk that is fuller is short of room for what it is there for. */
const RESERVE_SHARE = 0.05;
/** Logs of the server, and files that it makes itself. */
const BESIDE_BYTES = 512 * MIB;

/** @throws DriverError capacity, with what is missing */
export async function requireRoomForProof(
  { database, backup, memory_mb }: { database: DatabaseRow; backup: ProvenBackup; memory_mb: number },
  { config }: JobContext,
): Promise<void> {
  const data = database.observed?.storage_used_bytes ?? database.storage_gb * GIB;
  // The files of the backup are fetched from the store beside what they become.
  const needed = Math.ceil(data * 1.25) + (backup.size_bytes ?? 0) + BESIDE_BYTES;
  const disk = await statfs(config.databaseDir);
  const free = disk.bavail * disk.bsize - disk.blocks * disk.bsize * RESERVE_SHARE;
  if (free < needed) {
    const spare = shown(Math.max(0, free));
    throw noRoom(`The proof needs ${shown(needed)} on the disk of the databases, which has ${spare} to spare.`);
  }
  const { memory_available_bytes: memory } = hostMemory();
  if (memory >= memory_mb * MIB) return;
  throw noRoom(`The proof needs ${memory_mb} MB of memory, and the host has ${Math.floor(memory / MIB)} MB to spare.`);
}

function noRoom(reason: string): DriverError {
  return new DriverError('capacity', `${reason} It is tried again.`);
}

function shown(bytes: number): string {
  return bytes >= GIB ? `${(bytes / GIB).toFixed(1)} GB` : `${Math.ceil(bytes / MIB)} MB`;
}
