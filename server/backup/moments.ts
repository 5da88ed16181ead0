// The moments to which a repository leads: each backup, and from there as far as the log reaches.
import { CommandError } from '../command_error';
import { newestOf } from './newest';
import type { Point } from './repository';
import type { WalSnapshot } from './wal_repository';

export interface Way {
  point: Point;
  /** What leads on from the backup; null: nothing. */
  log: WalSnapshot | null;
}

const SHOWN = 5;

/** By backup, oldest first, with the log that reaches furthest. */
export function waysOf(points: readonly Point[], log: readonly WalSnapshot[]): Way[] {
  return points.map((point) => {
    const own = log.filter((one) => point.id.startsWith(one.point));
    return { point, log: own.sort((a, b) => (a.until < b.until ? -1 : 1)).at(-1) ?? null };
  });
}

/**
 * @param moment RFC 3339; null: the last one
 * @throws CommandError where it leads to none, or not to this one
 */
export function wayTo(ways: readonly Way[], moment: string | null, address: string): Way {
  const newest = newestOf(
    ways.map(({ point }) => point),
    Date.now(),
  );
  const way = ways.findLast(({ point }) =>
    moment === null ? point === newest : Date.parse(point.at) <= Date.parse(moment),
  );
  if (!way) throw new CommandError(`${address} has no backup${moment === null ? '' : ` from before ${moment}`}`);
  // Of a repository without any log, the backup of before is meant.
  const isStrict = moment !== null && ways.some(({ log }) => log !== null);
  if (!isStrict || Date.parse(moment) <= endOf(way)) return way;
  throw new CommandError(
    `${address} does not lead to ${moment}: choose a moment of ${ways.slice(-SHOWN).reverse().map(rangeOf).join(', ')}`,
  );
}

/** To the second, as people write it: that of a backup itself can be chosen. */
function endOf({ point, log }: Way): number {
  return log === null ? Math.ceil(Date.parse(point.at) / 1000) * 1000 : Date.parse(log.until);
}

function rangeOf(way: Way): string {
  const from = secondsOf(Math.ceil(Date.parse(way.point.at) / 1000) * 1000);
  return way.log === null ? from : `${from} to ${secondsOf(endOf(way))}`;
}

function secondsOf(moment: number): string {
  return `${new Date(moment).toISOString().slice(0, 19)}Z`;
}
