// What the pages of a log read of it: lines before a time, lines after one, and all of a range for a file.
import { request } from '../../api/client';
import { graphql, type VariablesOf } from '../../api/graphql';
import type { LogLine } from '../../parts/log_view';

const LIST = graphql(`
  query ApplicationLogs(
    $id: ID!
    $limit: Int!
    $order: LogOrder
    $cursor: String
    $since: DateTime
    $until: DateTime
    $search: String
    $level: LogLevel
    $source: LogSource
    $type: String
  ) {
    listApplicationLogs(
      id: $id
      limit: $limit
      order: $order
      cursor: $cursor
      since: $since
      until: $until
      search: $search
      level: $level
      source: $source
      process_type: $type
    ) {
      data {
        timestamp
        level
        source
        message
        process_type
      }
      next_cursor
    }
  }
`);

type Variables = VariablesOf<typeof LIST>;

export type Filters = Pick<Variables, 'search' | 'level' | 'source' | 'type'>;
/** Ends of a range of times; null: open. */
export interface Range {
  since: string | null;
  until: string | null;
}
export type Row = Omit<LogLine, 'origin'> & { source: string; process_type: string | null };

export const PAGE_LINES = 1_000;
/** Lines before and after one that an address names. */
const CONTEXT_LINES = 200;
/** A file has at most so many. */
export const DOWNLOAD_MAX = 100_000;

export function lineOf({ source, process_type, ...line }: Row): LogLine {
  return { ...line, origin: source === 'app' ? (process_type ?? 'app') : source };
}

/** The newest lines first. @throws ApiError */
export async function readLines(
  id: string,
  asked: Filters & Range,
  cursor: string | null = null,
): Promise<{ data: Row[]; next_cursor: string | null }> {
  return (await request(LIST, { id, ...asked, cursor, limit: PAGE_LINES })).listApplicationLogs;
}

/** The lines around a time, in their order. Those of the time itself are among them. @throws ApiError */
export async function readAround(id: string, time: string): Promise<LogLine[]> {
  const [before, after] = await Promise.all([
    request(LIST, { id, limit: CONTEXT_LINES, until: time }),
    request(LIST, { id, limit: CONTEXT_LINES, since: time, order: 'asc' }),
  ]);
  return [...before.listApplicationLogs.data.reverse(), ...after.listApplicationLogs.data].map(lineOf);
}

/** All lines of a range in their order, the newest of them where there are too many. @throws ApiError */
export async function readAll(
  id: string,
  asked: Filters & Range,
  progress: (count: number) => void,
): Promise<LogLine[]> {
  const pages: Row[][] = [];
  let [count, cursor]: [number, string | null] = [0, null];
  do {
    const page = await readLines(id, asked, cursor);
    pages.push(page.data);
    count += page.data.length;
    cursor = page.next_cursor;
    progress(count);
  } while (cursor && count < DOWNLOAD_MAX);
  return pages.flat().reverse().map(lineOf);
}

/** A permanent link, which leads back to what was searched for. */
export function addressOf(line: LogLine): string {
  const query = new URLSearchParams(location.search);
  query.set('line', nameOf(line));
  return `${location.pathname}?${query}`;
}

/** The time, and a number made of the text: a time may have several lines. */
export function nameOf({ timestamp, origin, message }: LogLine): string {
  let hash = 0;
  for (const one of `${origin} ${message}`) hash = (Math.imul(hash, 31) + (one.codePointAt(0) ?? 0)) | 0;
  return `${timestamp}_${(hash >>> 0).toString(36)}`;
}
