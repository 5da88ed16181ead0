// The one rule that deploying, restarting, rolling back, scaling, starting and stopping come down to: of each process
// type as many instances of its release as are desired; what runs an older one goes when those are healthy.
import type { PresentInstance, DesiredProcess } from '../../../models/applications/stack';

interface StackPlan {
  start: { want: DesiredProcess; count: number }[];
  /** Ids of instances that are not desired any more. */
  retire: string[];
}

export function planStack(wants: readonly DesiredProcess[], present: readonly PresentInstance[]): StackPlan {
  // Candidate instances belong to a deployment that is not active yet.
  const alive = present.filter(({ status, candidate }) => status !== 'stopping' && !candidate);
  const plan: StackPlan = { start: [], retire: [] };
  for (const want of wants) {
    const ours = alive.filter(
      ({ process_id, release_id }) => process_id === want.process_id && release_id === want.release_id,
    );
    const others = alive.filter(
      ({ process_id, release_id }) => process_id === want.process_id && release_id !== want.release_id,
    );
    const count = want.release_id === null ? 0 : want.instances;
    if (ours.length < count) plan.start.push({ want, count: count - ours.length });
    plan.retire.push(...surplusInstances(ours, count));
    if (countRunning(ours) >= count) plan.retire.push(...others.map(({ id }) => id));
  }
  const known = new Set(wants.map(({ process_id }) => process_id));
  plan.retire.push(...alive.filter(({ process_id }) => !known.has(process_id)).map(({ id }) => id));
  return plan;
}

/** Number of running instances. */
export function countRunning(instances: readonly PresentInstance[]): number {
  return instances.filter(({ status }) => status === 'running').length;
}

/** First those that don't run, then the newest. */
function surplusInstances(ours: readonly PresentInstance[], count: number): string[] {
  const bestFirst = [...ours].sort(
    (a, b) => Number(b.status === 'running') - Number(a.status === 'running') || (a.id < b.id ? -1 : 1),
  );
  return bestFirst.slice(count).map(({ id }) => id);
}
