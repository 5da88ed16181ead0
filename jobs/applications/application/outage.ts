// Process types that should run and of which no instance does: for how long, and why.
import type { PresentInstance, PresentWorkload, ProcessState } from '../../../models/applications/stack';

/** While no instance runs, the status is checked so often. */
export const OUTAGE_RECHECK_MS = 3_000;
/** An instance that ends once is running again sooner. */
const OUTAGE_MS = 10_000;
/** Reasons begin with it. */
const NONE_RUNS = 'no instance is running.';

/** By process type. A worker that starts anew counts from its start. */
const since = new Map<string, number>();

/** Whether no instance of it has run for ten seconds. @param isOut whether none runs now */
export function hasOutage({ process_id }: Pick<ProcessState, 'process_id'>, isOut: boolean): boolean {
  if (!isOut) return since.delete(process_id) && false;
  const now = performance.now();
  const from = since.get(process_id) ?? now;
  since.set(process_id, from);
  return now - from >= OUTAGE_MS;
}

/** As a sentence for users. */
export function outageReason(
  type: string,
  present: readonly Pick<PresentInstance, 'process_type' | 'status_reason' | 'candidate'>[],
  workloads: readonly Pick<PresentWorkload, 'process_type' | 'obstacle' | 'candidate'>[],
): string {
  const isOurs = (one: { process_type: string; candidate: boolean }): boolean =>
    one.process_type === type && !one.candidate;
  const reason =
    workloads.find((one) => isOurs(one) && one.obstacle !== null)?.obstacle ??
    present.findLast((one) => isOurs(one) && one.status_reason !== null)?.status_reason;
  return `Process type ${type}: ${NONE_RUNS} ${reason ?? 'The platform is starting one.'}`;
}

export function isOutageReason(reason: string | null): boolean {
  return reason?.includes(`: ${NONE_RUNS}`) ?? false;
}
