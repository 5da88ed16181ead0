// Several lists followed as one: their events in one stream, each with one position that holds for all of them. The
// order of each list is kept; events of different lists that were found together are put in the order of their times.
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import type { LiveBatch, LiveEvent, LiveReader } from './live';

/** One of the lists. Its context has been admitted for it. */
export interface CombinedPart {
  reader: LiveReader;
  args: Record<string, unknown>;
  ctx: Context;
  /** Name of the row's time field. */
  time: string;
  /** GraphQL type of a row, to distinguish the rows of a combined stream. */
  type: string;
}

/** Separates the positions of the parts. No position contains it. */
const SEPARATOR = '&';

/** A reader of all parts. Arguments and context are theirs. */
export function combineReaders(parts: readonly CombinedPart[]): LiveReader {
  return {
    topics: () => parts.flatMap(({ reader, args }) => reader.topics(args)),
    async read(_args, _ctx, after) {
      const positions = after === null ? parts.map(() => null) : splitPosition(after, parts.length);
      const batches = await Promise.all(
        parts.map(({ reader, args, ctx }, index) => reader.read(args, ctx, positions[index] as string | null)),
      );
      return {
        events: mergeEvents(parts, batches),
        from: joinPositions(batches.map(({ from }) => from)),
        to: joinPositions(batches.map(({ to }) => to)),
      };
    },
  };
}

function mergeEvents(parts: readonly CombinedPart[], batches: readonly LiveBatch[]): LiveEvent[] {
  const positions = batches.map(({ from }) => from);
  const waiting = batches.map(({ events }) => [...events].reverse());
  const timeOf = (index: number): string => {
    const data = waiting[index]?.at(-1)?.data as Record<string, string> | undefined;
    // Above every time: nothing waits.
    return data?.[parts[index]?.time as string] ?? '~';
  };
  const indexes = parts.map((_, index) => index);
  const merged: LiveEvent[] = [];
  for (;;) {
    const first = indexes.reduce((least, index) => (timeOf(index) < timeOf(least) ? index : least));
    const event = waiting[first]?.pop();
    if (!event) return merged;
    positions[first] = event.id;
    merged.push({ id: joinPositions(positions), data: { ...event.data, __typename: parts[first]?.type } });
  }
}

const joinPositions = (positions: readonly string[]): string => positions.join(SEPARATOR);

/** @throws invalid_cursor */
function splitPosition(position: string, count: number): string[] {
  const positions = position.split(SEPARATOR);
  if (positions.length !== count) throw problem('invalid_cursor');
  return positions;
}
