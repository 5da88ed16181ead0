// A restore starts a new WAL timeline (PostgreSQL, "Timelines"): WAL after the restored point stays in the archive
// under the old number. A point in time refers to the timeline of the server at that time, so that a mistaken restore
// can be undone by a second one.
// The note of restores is complete for a server that was restored; what else has turned it, such as the promotion of a
// replica, is read from the history files in its data.
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../../core/files';
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
  const noted = (await readNote<Timeline[]>(serverDirectory, 'timelines')) ?? firstTimeline;
  const log = path.join(serverDirectory.data, 'pg_wal');
  const now = await timelineIn(serverDirectory.data);
  if (noted.some(({ timeline }) => timeline === now)) return noted;
  const chain = [...(await parentsOf(log, now)), now];
  const turns = await Promise.all(
    chain.map(async (timeline, at) => {
      const since = await switchedAt(log, timeline);
      return { timeline, parent: chain[at - 1] ?? null, since, point: at === 0 ? null : since };
    }),
  );
  return [...noted, ...turns.filter(({ timeline }) => noted.every((one) => one.timeline !== timeline))];
}

/** Records turns that were read from history files: files may lose their times. */
export async function keepTimelines(serverDirectory: ServerDirectory): Promise<void> {
  const noted = await readNote<Timeline[]>(serverDirectory, 'timelines');
  const turns = await timelinesOf(serverDirectory);
  if (turns.length > (noted ?? firstTimeline).length) await writeNote(serverDirectory, 'timelines', turns);
}

/** The newest history file in the WAL directory names the timeline started by a recovery or a promotion. */
export async function timelineIn(data: string): Promise<number> {
  const names = (await readdir(path.join(data, 'pg_wal')).catch(absentIsNull)) ?? [];
  const files = names.filter((file) => /^[0-9A-F]{8}\.history$/.test(file)).sort();
  return parseInt(files.at(-1)?.slice(0, 8) ?? '1', 16);
}

// A line per timeline before: number, position, reason (src/backend/access/transam/timeline.c).
async function parentsOf(log: string, timeline: number): Promise<number[]> {
  const text = (await readFile(path.join(log, historyFile(timeline)), 'utf8').catch(absentIsNull)) ?? '';
  return [...text.matchAll(/^\s*(\d+)\s/gm)].map(([, number]) => Number(number));
}

/** The server writes a history file when it switches. */
async function switchedAt(log: string, timeline: number): Promise<string> {
  const found = await stat(path.join(log, historyFile(timeline))).catch(absentIsNull);
  return found?.mtime.toISOString() ?? firstTimeline[0]!.since;
}

/** Name of its history file. */
export function historyFile(timeline: number): string {
  return `${timeline.toString(16).toUpperCase().padStart(8, '0')}.history`;
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
