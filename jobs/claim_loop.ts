// Claims rows of one table that are due and starts work on them, many at a time: checks, messages, mail. Beside the
// loop of jobs, whose rows are reconciled one by one under a lease that is renewed.
import { setTimeout as sleep } from 'node:timers/promises';
import { claimInTurns, openShares, openTurns } from '../core/accounts/turns';
import type { WakeSignal } from './wake_signal';

interface ClaimTable<Row extends { account: string }> {
  /** Rows that are worked on at a time at most. */
  places: number;
  /** Runs before the first claim; retried if it fails. */
  prepare?(): Promise<void>;
  /** Number of rows that may be claimed now. */
  room(): number;
  claim(limit: number, passOver: string[]): Promise<Row[]>;
  /** Gives its work to `track`. */
  start(rows: Row[], track: Track): void;
  /** Pause in ms after a claim of `claimed` rows. `poll`: no more are due; waits for `pollMs` or a notification. */
  pauseAfter(claimed: number): 'poll' | number;
  pollMs: number;
  /** Called when a claim fails; it is retried after a second. */
  failed(error: unknown): void;
}

/**
 * @param account whose row the work is for
 * @returns releases the place, where that is possible before the work ends
 */
type Track = (work: Promise<void>, account: string) => () => void;

export interface ClaimLoop {
  /** Claims no more; resolves when no claim is under way. */
  stopClaiming(): Promise<void>;
  /** The same, and the work that was started has ended. */
  stop(): Promise<void>;
}

const OUTAGE_MS = 1_000;

/** @param signal notified when rows may be due, and when there may be room again */
export function startClaimLoop<Row extends { account: string }>(table: ClaimTable<Row>, signal: WakeSignal): ClaimLoop {
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  const shares = openShares(table.places);
  const track: Track = (work, account) => {
    let hasPlace = true;
    const release = (): void => {
      if (hasPlace) shares.end(account);
      hasPlace = false;
    };
    shares.begin(account);
    const tracked: Promise<void> = work.finally(() => {
      release();
      running.delete(tracked);
    });
    running.add(tracked);
    return release;
  };
  const turns = openTurns();
  const claim = (room: number): Promise<Row[]> => {
    const limits = { limit: Math.min(room, shares.room()), busy: shares.busy() };
    return claimInTurns(turns, 'rows', limits, (limit, passOver) => table.claim(limit, passOver));
  };
  const ended = run({ ...table, claim }, signal, stopping.signal, track);
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

async function run<Row extends { account: string }>(
  table: Omit<ClaimTable<Row>, 'claim'> & { claim(room: number): Promise<Row[]> },
  wakeSignal: WakeSignal,
  signal: AbortSignal,
  track: Track,
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
