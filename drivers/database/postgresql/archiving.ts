// Since when the archive of a server has its log without a gap. Only backups from then on lead to a point in time: what was
// written while nothing was kept is missing behind the older ones.
import { readNote, removeNote, writeNote, type Home } from '../home';
import type { Manifest } from './backups';
import type { Cluster } from './cluster';

const noteName = 'archiving';

/** RFC 3339; null while nothing is kept. */
export async function archivedSince(home: Home): Promise<string | null> {
  return (await readNote<{ since: string }>(home, noteName))?.since ?? null;
}

/** Before the server is told. */
export async function noteArchiveEnds({ home, spec }: Cluster): Promise<void> {
  if (!spec.archive) await removeNote(home, noteName);
}

/** When the server has been told. */
export async function noteArchiveBegins({ home, spec }: Cluster): Promise<void> {
  if (spec.archive && (await archivedSince(home)) === null)
    await writeNote(home, noteName, { since: new Date().toISOString() });
}

/** Those that a point in time can be reached from, in the order given. */
export async function leadingOn(home: Home, backups: Manifest[]): Promise<Manifest[]> {
  const since = await archivedSince(home);
  return since === null ? [] : backups.filter(({ taken_at }) => taken_at >= since);
}
