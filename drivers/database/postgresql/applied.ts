// Digest of the configuration last applied to the running server: a spec with another digest is not applied yet.
import { createHash } from 'node:crypto';
import { readNote, removeNote, writeNote } from '../../hosted_server/server_directory';
import type { DatabaseServer } from '../../database';
import type { Cluster } from './cluster';

const noteName = 'applied';

export async function isApplied(cluster: Cluster): Promise<boolean> {
  return (await readNote<string>(cluster.serverDirectory, noteName)) === appliedDigestOf(cluster.spec);
}

/** To be called before the first change: after a crash, the server counts as outdated. */
export async function beginToApply(cluster: Cluster): Promise<void> {
  if (!(await isApplied(cluster))) await removeNote(cluster.serverDirectory, noteName);
}

export async function noteApplied(cluster: Cluster): Promise<void> {
  if (!(await isApplied(cluster))) await writeNote(cluster.serverDirectory, noteName, appliedDigestOf(cluster.spec));
}

/** Replicas change independently of the server: their slots are checked each time. A stopped server has no state. */
export function appliedDigestOf(spec: DatabaseServer): string {
  return createHash('sha256')
    .update(JSON.stringify({ ...spec, replicas: null, running: null, network: undefined }))
    .digest('hex');
}
