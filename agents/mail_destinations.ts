// Destinations of mail: so many connections at a time, and none for a while where a server is away or asks for it.
import type { HopResult } from '../drivers/mail/transport';

export interface Destinations {
  /** Those that get nothing now. */
  blocked(): string[];
  /** Waits for a turn. The answer gives it back. */
  enter(destination: string): Promise<() => void>;
  /** Learns from an attempt. */
  note(destination: string, result: Pick<HopResult, 'kind' | 'isUnreachable'>): void;
}

const CONNECTIONS_PER_DESTINATION = 10;
const BACK_OFF_MS = 30_000;
const BACK_OFF_MAX_MS = 30 * 60_000;
const REMEMBERED_MAX = 20_000;

interface Known {
  running: number;
  waiting: (() => void)[];
  failures: number;
  until: number;
}

export function openDestinations(): Destinations {
  const known = new Map<string, Known>();
  const of = (destination: string): Known => {
    const found = known.get(destination) ?? { running: 0, waiting: [], failures: 0, until: 0 };
    known.set(destination, found);
    return found;
  };
  const forget = (): void => {
    if (known.size <= REMEMBERED_MAX) return;
    for (const [name, { running, until }] of known) if (!running && until < Date.now()) known.delete(name);
  };
  return {
    blocked: () => [...known].flatMap(([name, { until }]) => (until > Date.now() ? [name] : [])),
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
      if (!isUnreachable || kind !== 'later') {
        entry.failures = 0;
        return;
      }
      entry.failures += 1;
      entry.until = Date.now() + Math.min(BACK_OFF_MS * 2 ** (entry.failures - 1), BACK_OFF_MAX_MS);
    },
  };
}
