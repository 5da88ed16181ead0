// The storage of a server has two limits. At the first one new transactions only read, unless a session says otherwise:
// that is how its user deletes what is too much. Who uses that to write on meets the second one: there the server runs
// as a standby without a primary, which refuses every write, whoever asks; more storage is the way out of it.
import { run } from '../../../core/process/command';
import type { DriverContext } from '../../../core/driver';
import { readNote, writeNote } from '../../hosted_server/server_directory';
import type { Cluster } from './cluster';

export type Stage = 'none' | 'soft' | 'hard';

/** `usedBytes` null where it could not be measured. */
export interface Storage {
  usedBytes: number | null;
  stage: Stage;
}

const beyond = 1.1;
const enoughRoom = 0.95;

/** How full it is, and the stage of the last look. Reads only. */
export async function storageOf(cluster: Cluster, ctx: DriverContext): Promise<Storage> {
  const stage = (await readNote<Stage>(cluster.serverDirectory, 'storage')) ?? 'none';
  return { usedBytes: await bytesBelow(cluster.serverDirectory.data, ctx), stage };
}

/** Looks, and remembers the stage that follows. A replica is as full as its primary: nothing is refused there. */
export async function reviewStorage(cluster: Cluster, ctx: DriverContext): Promise<Stage> {
  const { usedBytes: used, stage: before } = await storageOf(cluster, ctx);
  const stage = nextStage(cluster, used, before);
  if (stage !== before) await writeNote(cluster.serverDirectory, 'storage', stage);
  return stage;
}

/** The stage that follows from what is used. */
export function nextStage({ spec, engine }: Cluster, used: number | null, before: Stage): Stage {
  if (spec.replica_of !== null) return 'none';
  return used === null ? before : stageFor(used / (spec.storage_gb * engine.gigabyteBytes), before);
}

/**
 * `share` of the storage that is used. Lifted only where there is some room again, so that it does not go back and
 * forth.
 */
export function stageFor(share: number, before: Stage): Stage {
  if (share >= beyond) return 'hard';
  if (share >= 1) return before === 'hard' ? 'hard' : 'soft';
  return share >= enoughRoom && before !== 'none' ? 'soft' : 'none';
}

/** What a directory takes; null where it could not be measured. */
export async function bytesBelow(directory: string, ctx: DriverContext): Promise<number | null> {
  // What goes away while it looks makes du end with 1; what it found counts all the same.
  const out = await run('du', ['-sk', '--', directory], ctx).catch((error: { stdout?: string }) => error.stdout ?? '');
  const kilobytes = Number(/^(\d+)/.exec(out)?.[1]);
  return Number.isNaN(kilobytes) ? null : kilobytes * 1024;
}
