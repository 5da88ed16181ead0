// Per-destination connection limits, and back-off where a server is unreachable or defers all mail.
import { pauseMsAfter } from '../../../core/process/backoff';
import type { HopResult } from '../../../engines/mail';
import type { Room } from '../../../models/email/mail/queue';

export interface Destinations {
  /** What they take now. */
  room(): Room;
  /** Waits for a turn. The answer gives it back. */
  enter(destination: string): Promise<() => void>;
  /** Learns from an attempt. */
  note(destination: string, result: Pick<HopResult, 'kind' | 'isUnreachable'>): void;
}

const CONNECTIONS_PER_DESTINATION = 10;
const BACKOFF = { firstMs: 30_000, maxMs: 30 * 60_000 };
/** This many consecutive deferrals (4xx) count like an unreachable server. */
const DEFERRALS = 20;
const REMEMBERED_MAX = 20_000;

interface Known {
  running: number;
  waiting: (() => void)[];
  deferrals: number;
  failures: number;
  until: number;
}

export function openDestinations(now: () => number = Date.now): Destinations {
  const known = new Map<string, Known>();
  const of = (destination: string): Known => {
    const found = known.get(destination) ?? { running: 0, waiting: [], deferrals: 0, failures: 0, until: 0 };
    known.set(destination, found);
    return found;
  };
  const forget = (): void => {
    if (known.size <= REMEMBERED_MAX) return;
    for (const [name, { running, until }] of known) if (!running && until < now()) known.delete(name);
  };
  return {
    room: () => roomOf(known, now()),
    async enter(destination) {
      const entry = of(destination);
      if (entry.running >= CONNECTIONS_PER_DESTINATION)
        await new Promise<void>((resolve) => entry.waiting.push(resolve));
      else entry.running += 1;
      return () => {
        const next = entry.waiting.shift();
        if (next) return next();
        entry.running -= 1;
        forget();
      };
    },
    note(destination, { kind, isUnreachable }) {
      const entry = of(destination);
      if (kind !== 'later') {
        entry.deferrals = entry.failures = 0;
        return;
      }
      entry.deferrals += 1;
      if (!isUnreachable && entry.deferrals < DEFERRALS) return;
      entry.deferrals = 0;
      entry.failures += 1;
      entry.until = now() + pauseMsAfter(entry.failures, BACKOFF);
    },
  };
}

function roomOf(known: ReadonlyMap<string, Known>, now: number): Room {
  const blocked: string[] = [];
  const free: Record<string, number> = {};
  for (const [name, { running, until }] of known)
    if (until > now || running >= CONNECTIONS_PER_DESTINATION) blocked.push(name);
    else if (running) free[name] = CONNECTIONS_PER_DESTINATION - running;
  return { blocked, free, each: CONNECTIONS_PER_DESTINATION };
}
