// Claims rows of one table that are due and starts work on them, many at a time: checks, messages, mail. Beside the
// loop of jobs, whose rows are reconciled one by one under a lease that is renewed.
import { setTimeout as sleep } from 'node:timers/promises';
import type { WakeSignal } from './wake_signal';

export interface ClaimTable<Row> {
  /** Runs before the first claim; retried if it fails. */
  prepare?(): Promise<void>;
  /** Number of rows that may be claimed now. */
  room(): number;
  claim(limit: number): Promise<Row[]>;
  /** Gives its work to `track`. */
  start(rows: Row[], track: (work: Promise<void>) => void): void;
  /** Pause in ms after a claim of `claimed` rows. `poll`: no more are due; waits for `pollMs` or a notification. */
  pauseAfter(claimed: number): 'poll' | number;
  pollMs: number;
  /** Called when a claim fails; it is retried after a second. */
  failed(error: unknown): void;
}

export interface ClaimLoop {
  /** Claims no more; resolves when no claim is under way. */
  stopClaiming(): Promise<void>;
  /** The same, and the work that was started has ended. */
  stop(): Promise<void>;
}

const OUTAGE_MS = 1_000;

/** @param signal notified when rows may be due, and when there may be room again */
export function startClaimLoop<Row>(table: ClaimTable<Row>, signal: WakeSignal): ClaimLoop {
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  const track = (work: Promise<void>): void => {
    const tracked: Promise<void> = work.finally(() => running.delete(tracked));
    running.add(tracked);
  };
  const ended = run(table, signal, stopping.signal, track);
  const stopClaiming = async (): Promise<void> => {
    stopping.abort();
    signal.notify();
    await ended;
  };
  return {
    stopClaiming,
    async stop() {
      await stopClaiming();
      await Promise.all(running);
    },
  };
}

async function run<Row>(
  table: ClaimTable<Row>,
  wakeSignal: WakeSignal,
  signal: AbortSignal,
  track: (work: Promise<void>) => void,
): Promise<void> {
  let isPrepared = false;
  const pause = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal }).catch(() => undefined);
  while (!signal.aborted) {
    try {
      if (!isPrepared) await table.prepare?.();
      isPrepared = true;
      const room = table.room();
      const rows = room > 0 ? await table.claim(room) : [];
      table.start(rows, track);
      const next = table.pauseAfter(rows.length);
      if (next === 'poll') await wakeSignal.wait(table.pollMs);
      else if (next > 0) await pause(next);
    } catch (error) {
      table.failed(error);
      await pause(OUTAGE_MS);
    }
  }
}
