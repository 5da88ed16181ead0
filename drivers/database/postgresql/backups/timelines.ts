// A restore begins a new timeline of the log (PostgreSQL, "Timelines"): what came after the point that was restored
// stays in the archive under the old number. A point in time means the timeline that the server was on at that time, so
// a restore that was a mistake can be undone by a second one.
import { readNote, writeNote, type ServerDirectory } from '../../../hosted_server/server_directory';
import type { Manifest } from './known_backups';

/**
 * `since`: when it became that of the server. `point`: up to where it is the same as its parent; null for the first
 * one.
 */
export interface Timeline {
  timeline: number;
  parent: number | null;
  since: string;
  point: string | null;
}

/** Of a new cluster. */
export const firstTimeline: Timeline[] = [
  { timeline: 1, parent: null, since: '1970-01-01T00:00:00.000Z', point: null },
];

/** Notes the timeline that a restore to `point` has begun. */
export async function noteTimeline(serverDirectory: ServerDirectory, turns: Timeline[], turn: Timeline): Promise<void> {
  await writeNote(serverDirectory, 'timelines', [...turns.filter((one) => one.timeline !== turn.timeline), turn]);
}

export async function timelinesOf(serverDirectory: ServerDirectory): Promise<Timeline[]> {
  return (await readNote<Timeline[]>(serverDirectory, 'timelines')) ?? firstTimeline;
}

/** The timeline that the server was on. */
export function timelineAt(turns: Timeline[], time: string): number {
  return (
    turns
      .filter(({ since }) => since <= time)
      .sort((a, b) => (a.since < b.since ? -1 : 1))
      .at(-1)?.timeline ?? 1
  );
}

/** The newest backup from which the log leads to this time on this timeline; null where there is none. */
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
