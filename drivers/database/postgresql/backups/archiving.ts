// Since when the archive of a server has its log without a gap. Only backups from then on lead to a point in time: what
// was written while nothing was kept is missing behind the older ones.
import { readNote, removeNote, writeNote, type ServerDirectory } from '../../../hosted_server/server_directory';
import type { Manifest } from './known_backups';
import type { Cluster } from '../cluster';

const noteName = 'archiving';

/** RFC 3339; null while nothing is kept. */
export async function archivedSince(serverDirectory: ServerDirectory): Promise<string | null> {
  return (await readNote<{ since: string }>(serverDirectory, noteName))?.since ?? null;
}

/** Before the server is told. */
export async function noteArchiveEnds({ serverDirectory, spec }: Cluster): Promise<void> {
  if (!spec.archive) await removeNote(serverDirectory, noteName);
}

/** When the server has been told. */
export async function noteArchiveBegins({ serverDirectory, spec }: Cluster): Promise<void> {
  if (spec.archive && (await archivedSince(serverDirectory)) === null)
    await writeNote(serverDirectory, noteName, { since: new Date().toISOString() });
}

/** When another host has archived it without a gap up to its end. */
export async function noteArchivedSince(serverDirectory: ServerDirectory, since: string): Promise<void> {
  await writeNote(serverDirectory, noteName, { since });
}

/** Those that a point in time can be reached from, in the order given. */
export function leadingOn(since: string | null, backups: Manifest[]): Manifest[] {
  return since === null ? [] : backups.filter(({ taken_at }) => taken_at >= since);
}
