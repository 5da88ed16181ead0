// Imports that follow their source (docs/decisions/0252): observed by the job, and ended.
import type { FollowEnd, FollowObserved, FollowWork } from '../../imports/import';
import type { Cluster, PostgresqlContext } from '../cluster';
import { Follower } from './follow/follower';
import { makeWritable } from './follow/read_only';
import { dropAtSource } from './follow/source';
import { atSource, failureAtSource } from './follow/source_session';
import { closeTarget } from './follow/target';

/** @throws DriverError invalid where the import cannot go on */
export async function followSource(cluster: Cluster, work: FollowWork): Promise<FollowObserved> {
  const { followers } = cluster.engine;
  let follower = followers.get(work.id) as Follower | undefined;
  if (!follower || follower.hasEnded) {
    await follower?.stop();
    follower = new Follower(cluster, work);
    followers.set(work.id, follower);
  }
  try {
    return follower.observe(work);
  } catch (error) {
    followers.delete(work.id);
    throw error;
  }
}

/** @throws DriverError transient where the source does not answer */
export async function endFollowing(
  engine: PostgresqlContext,
  cluster: Cluster | null,
  { id, slot, source, makeWritable: isTakenBack }: FollowEnd,
): Promise<void> {
  await engine.followers.get(id)?.stop();
  engine.followers.delete(id);
  if (cluster) await closeTarget(cluster, id, slot).catch(() => undefined);
  const server = await source();
  // First: the slot fills the disk of the source.
  await dropAtSource(server, slot);
  if (!isTakenBack) return;
  await atSource(server, (client) => makeWritable(client, server.database)).catch((error: unknown) => {
    throw failureAtSource(error);
  });
}
