// A restore starts a new WAL timeline (PostgreSQL, "Timelines"): WAL after the restored point stays in the archive
// under the old number. A point in time refers to the timeline of the server at that time, so that a mistaken restore
// can be undone by a second one.
import { readNote, writeNote, type ServerDirectory } from '../../../hosted_server/server_directory';
import type { Manifest } from './known_backups';

/**
 * `since`: when the server switched to it. `point`: up to where it is identical to its parent; null for the first one.
 */
export interface Timeline {
  timeline: number;
  parent: number | null;
  since: string;
  point: string | null;
}

/** Timelines of a new cluster. */
export const firstTimeline: Timeline[] = [
  { timeline: 1, parent: null, since: '1970-01-01T00:00:00.000Z', point: null },
];

/** Records the timeline started by a restore to `point`. */
export async function noteTimeline(serverDirectory: ServerDirectory, turns: Timeline[], turn: Timeline): Promise<void> {
  await writeNote(serverDirectory, 'timelines', [...turns.filter((one) => one.timeline !== turn.timeline), turn]);
}

export async function timelinesOf(serverDirectory: ServerDirectory): Promise<Timeline[]> {
  return (await readNote<Timeline[]>(serverDirectory, 'timelines')) ?? firstTimeline;
}

/** The timeline of the server at that time. */
export function timelineAt(turns: Timeline[], time: string): number {
  return (
    turns
      .filter(({ since }) => since <= time)
      .sort((a, b) => (a.since < b.since ? -1 : 1))
      .at(-1)?.timeline ?? 1
  );
}

/** The newest backup whose WAL covers this time on this timeline; null where there is none. */
export function backupFor(backups: Manifest[], turns: Timeline[], time: string, timeline: number): Manifest | null {
  return backups.filter((one) => one.taken_at <= time && leadsTo(one, turns, timeline)).at(-1) ?? null;
}

function leadsTo(backup: Manifest, turns: Timeline[], timeline: number): boolean {
  let at: number | null = timeline;
  while (at !== null && at !== backup.timeline) {
    const turn = turns.find((one) => one.timeline === at);
    if (turn === undefined || (turn.point !== null && backup.taken_at > turn.point)) return false;
    at = turn.parent;
  }
  return at !== null;
}
