// The storage of a server has two limits. At the soft limit, new transactions are read-only by default; a session can
// override this, so that users can delete data. A user who overrides it to write more reaches the hard limit: the
// server then runs as a standby without a primary, which rejects all writes; only more storage ends this state.
import { run } from '../../../core/process/command';
import type { DriverContext } from '../../../core/driver';
import { readNote, writeNote } from '../../hosted_server/server_directory';
import type { Cluster } from './cluster';

export type Stage = 'none' | 'soft' | 'hard';

/** `usedBytes`: null where the measurement failed. */
interface Storage {
  usedBytes: number | null;
  stage: Stage;
}

const beyond = 1.1;
const enoughRoom = 0.95;

/** Current usage, and the stage of the last review. Read-only. */
export async function storageOf(cluster: Cluster, ctx: DriverContext): Promise<Storage> {
  const stage = (await readNote<Stage>(cluster.serverDirectory, 'storage')) ?? 'none';
  return { usedBytes: await bytesBelow(cluster.serverDirectory.data, ctx), stage };
}

/**
 * Measures the usage, and records the resulting stage. A replica is as full as its primary, and has no limits itself.
 */
export async function reviewStorage(cluster: Cluster, ctx: DriverContext): Promise<Stage> {
  const { usedBytes: used, stage: before } = await storageOf(cluster, ctx);
  const stage = nextStage(cluster, used, before);
  if (stage !== before) await writeNote(cluster.serverDirectory, 'storage', stage);
  return stage;
}

/** The stage that results from the usage. */
export function nextStage({ spec, engine }: Cluster, used: number | null, before: Stage): Stage {
  if (spec.replica_of !== null) return 'none';
  return used === null ? before : stageFor(used / (spec.storage_gb * engine.gigabyteBytes), before);
}

/**
 * `share` of the storage that is used. A limit is lifted only with some space to spare, so that the stage does not
 * flap.
 */
export function stageFor(share: number, before: Stage): Stage {
  if (share >= beyond) return 'hard';
  if (share >= 1) return before === 'hard' ? 'hard' : 'soft';
  return share >= enoughRoom && before !== 'none' ? 'soft' : 'none';
}

/** Disk usage of a directory; null where the measurement failed. */
export async function bytesBelow(directory: string, ctx: DriverContext): Promise<number | null> {
  // du exits with 1 when files disappear during its run; its result is still valid.
  const out = await run('du', ['-sk', '--', directory], ctx).catch((error: { stdout?: string }) => error.stdout ?? '');
  const kilobytes = Number(/^(\d+)/.exec(out)?.[1]);
  return Number.isNaN(kilobytes) ? null : kilobytes * 1024;
}
