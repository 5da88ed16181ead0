// What the running server was last brought to, as a digest: a spec that gives another one is not applied yet.
import { createHash } from 'node:crypto';
import { readNote, removeNote, writeNote } from '../../hosted_server/server_directory';
import type { Cluster } from './cluster';

const noteName = 'applied';

export async function isApplied(cluster: Cluster): Promise<boolean> {
  return (await readNote<string>(cluster.serverDirectory, noteName)) === digestOf(cluster);
}

/** Before the first change: whoever is killed in the middle leaves a server that is not up to date. */
export async function beginToApply(cluster: Cluster): Promise<void> {
  if (!(await isApplied(cluster))) await removeNote(cluster.serverDirectory, noteName);
}

export async function noteApplied(cluster: Cluster): Promise<void> {
  if (!(await isApplied(cluster))) await writeNote(cluster.serverDirectory, noteName, digestOf(cluster));
}

// Replicas come and go without a change of the server: their slots are looked at each time. A stopped one has no state.
function digestOf({ spec }: Cluster): string {
  return createHash('sha256')
    .update(JSON.stringify({ ...spec, replicas: null, running: null, network: undefined }))
    .digest('hex');
}
