// Start of the gapless WAL archive of a server. Only later backups allow point-in-time recovery: for older ones, the
// WAL written while archiving was off is missing.
import { readNote, removeNote, writeNote, type ServerDirectory } from '../../../hosted_server/server_directory';
import type { Manifest } from './known_backups';
import type { Cluster } from '../cluster';

const noteName = 'archiving';

/** RFC 3339; null while archiving is off. */
export async function archivedSince(serverDirectory: ServerDirectory): Promise<string | null> {
  return (await readNote<{ since: string }>(serverDirectory, noteName))?.since ?? null;
}

/** To be called before the server is reconfigured. */
export async function noteArchiveEnds({ serverDirectory, spec }: Cluster): Promise<void> {
  if (!spec.archive) await removeNote(serverDirectory, noteName);
}

/** To be called after the server was reconfigured. */
export async function noteArchiveBegins({ serverDirectory, spec }: Cluster): Promise<void> {
  if (spec.archive && (await archivedSince(serverDirectory)) === null)
    await writeNote(serverDirectory, noteName, { since: new Date().toISOString() });
}

/** For an archive that another host has completed without a gap. */
export async function noteArchivedSince(serverDirectory: ServerDirectory, since: string): Promise<void> {
  await writeNote(serverDirectory, noteName, { since });
}

/** Backups that allow point-in-time recovery, in the given order. */
export function leadingOn(since: string | null, backups: Manifest[]): Manifest[] {
  return since === null ? [] : backups.filter(({ taken_at }) => taken_at >= since);
}
