// The state machine of observers (docs/contract/resources.md §15.1): a pure function of results.
import type { CheckStatus, ObserverStatus } from '../../../schema/types';

/** Consecutive results of one region. */
export interface Streak {
  region: string;
  failures: number;
  passes: number;
  /** Time of the last result, or since when one is expected; null: no probe has checked from this region yet. */
  result_at: string | null;
  /** Its probes are silent. */
  is_lost: boolean;
}

export interface Watched {
  status: ObserverStatus;
  interval_seconds: number;
  failure_threshold: number;
  recovery_threshold: number;
}

/** Results that a region may miss before it is left out of the count. */
const MISSED_MAX = 3;
const SLACK_MS = 60_000;

/**
 * The status after a result. With several regions more than half of them decide; one that is lost or has fallen silent
 * (its probe is down) has no voice. One that has just been given the check is waited for.
 */
export function statusAfter(watched: Watched, streaks: readonly Streak[], nowMs: number): ObserverStatus {
  const oldest = nowMs - MISSED_MAX * watched.interval_seconds * 1000 - SLACK_MS;
  const isRecent = ({ result_at, is_lost }: Streak): boolean =>
    !is_lost && result_at !== null && Date.parse(result_at) >= oldest;
  const recent = streaks.filter(isRecent);
  const isMost = (fits: (streak: Streak) => boolean): boolean => recent.filter(fits).length * 2 > recent.length;
  if (watched.status === 'paused') return 'paused';
  if (isMost(({ failures }) => failures >= watched.failure_threshold)) return 'alerting';
  if (isMost(({ passes }) => passes >= watched.recovery_threshold)) return 'ok';
  return watched.status;
}

export function streakAfter<Row extends Streak>(streak: Row, status: CheckStatus, at: Date): Row {
  const result_at = at.toISOString();
  return status === 'pass'
    ? { ...streak, passes: streak.passes + 1, failures: 0, result_at }
    : { ...streak, failures: streak.failures + 1, passes: 0, result_at };
}

/** Windows without a value until a metric counts as silent. */
const SILENT_WINDOWS = 3;

export function statusInSilence(
  status: ObserverStatus,
  dataAt: string,
  windowSeconds: number,
  nowMs: number,
): ObserverStatus {
  if (status === 'paused' || nowMs - Date.parse(dataAt) < SILENT_WINDOWS * windowSeconds * 1000) return status;
  return 'no_data';
}
