// Lists that can be followed: the same reader serves the stream of events on REST (rest/event_stream.ts) and the
// subscription of GraphQL (contract/subscriptions.ts).
import { isRequiredArgument } from 'graphql';
import type { Context, Topic } from '../core/context';
import { hashFilters } from '../core/cursor';
import { limits } from '../core/limits';
import type { RootField } from './operations';

export interface LiveEvent {
  /** The position after this event: a client sends it to continue from there. */
  id: string;
  data: object;
}

/** The result of one read. */
export interface LiveBatch {
  events: LiveEvent[];
  /** The position before the first event. */
  from: string;
  /** Where the next reading begins: after the last event and what passed no filter. */
  to: string;
}

/** A batch of rows as models read them. */
export function batchOf<Row>(
  { from, rows, to }: { from: string; rows: readonly { id: string; row: Row }[]; to: string },
  dataOf: (row: Row) => object,
): LiveBatch {
  return { from, events: rows.map(({ id, row }) => ({ id, data: dataOf(row) })), to };
}

/** How a list is followed. A resolver file exports `live: { listXLogs: reader }`. */
export interface LiveReader {
  /** Notifications that say that there is more to read. */
  topics(args: Record<string, unknown>): Topic[];
  /** Events after a position, in order; null starts with the newest ones. @throws not_found, invalid_cursor */
  read(args: Record<string, unknown>, ctx: Context, after: string | null): Promise<LiveBatch>;
}

export interface FollowOptions {
  /** From listIdentity: positions hold for this list only. */
  list: string;
  reader: LiveReader;
  args: Record<string, unknown>;
  ctx: Context;
  /** Id of the last event that the client had, as the client sent it; null = begin with the newest ones. */
  after: string | null;
  signal: AbortSignal;
}

/** At most: a waiter polls every two seconds, since notifications may be lost. */
const WAIT_MS = 5_000;

/** Identifies a list by its root field and path arguments, without filters, which may change between two streams. */
export function listIdentity({ name, definition }: RootField, args: Record<string, unknown>): string {
  const required = definition.args.filter(isRequiredArgument).map((argument) => [argument.name, args[argument.name]]);
  return hashFilters({ ...Object.fromEntries(required), list: name });
}

/**
 * Batches of events as they come, their ids sealed for the client. Whatever is wrong with the request shows before
 * there is a first one.
 * @throws invalid_cursor for a position that is none or of another list; what the reader throws
 */
export async function startFollowing(options: FollowOptions): Promise<AsyncGenerator<LiveEvent[], void>> {
  const { list, reader, args, ctx, after } = options;
  const position = after === null ? null : ctx.cursors.reveal(list, after);
  await reader.read(args, ctx, position);
  return follow(options, position);
}

/**
 * Before and after each reading, every two seconds, the caller is checked again: who lost the key, the session or the
 * project meanwhile sees nothing more. Ends when aborted. @throws what the reader and `ctx.readmit` throw
 */
async function* follow(
  { list, reader, args, ctx, signal }: FollowOptions,
  after: string | null,
): AsyncGenerator<LiveEvent[], void> {
  const topics = reader.topics(args);
  let position = after;
  let seen = 0;
  while (!signal.aborted) {
    await ctx.readmit?.();
    // Rows cached by an earlier read may have changed.
    ctx.loaders.clear();
    const { events, to } = await reader.read(args, ctx, position);
    position = to;
    if (events.length) {
      // What was read may have been written after the right ended.
      await ctx.readmit?.();
      yield events.map(({ id, data }) => ({ id: ctx.cursors.conceal(list, id), data }));
    }
    // A full page: there is more to read at once.
    if (events.length >= limits.logPageSizeDefault) continue;
    seen = await ctx.notifications.wait(topics, seen, WAIT_MS, signal);
  }
}
