// The one rule that deploying, restarting, rolling back, scaling, starting and stopping come down to: of each process
// type as many instances of its release as are desired; what runs an older one goes when those are healthy.
import type { PresentInstance, PresentWorkload, DesiredProcess } from '../../../models/applications/stack';

interface StackPlan {
  start: { want: DesiredProcess; count: number }[];
  /** Ids of instances that are not desired any more. */
  retire: string[];
}

/** Of this machine: instances on a cluster are those of `planWorkloads`. */
export function planStack(wants: readonly DesiredProcess[], present: readonly PresentInstance[]): StackPlan {
  // Candidate instances belong to a deployment that is not active yet.
  const alive = present.filter(({ status, candidate, is_pod }) => status !== 'stopping' && !candidate && !is_pod);
  const plan: StackPlan = { start: [], retire: [] };
  for (const want of wants) {
    const ours = alive.filter(
      ({ process_id, release_id }) => process_id === want.process_id && release_id === want.release_id,
    );
    const others = alive.filter(
      ({ process_id, release_id }) => process_id === want.process_id && release_id !== want.release_id,
    );
    const count = want.release_id === null ? 0 : want.instances;
    if (!want.on_cluster && ours.length < count) plan.start.push({ want, count: count - ours.length });
    plan.retire.push(...surplusInstances(ours, count));
    if (countRunning(instancesOf(want, present)) >= count) plan.retire.push(...others.map(({ id }) => id));
  }
  const known = new Set(wants.map(({ process_id }) => process_id));
  plan.retire.push(...alive.filter(({ process_id }) => !known.has(process_id)).map(({ id }) => id));
  return plan;
}

interface WorkloadPlan {
  /** Process types whose workload is missing or has another number of instances. */
  ensure: DesiredProcess[];
  /** Ids of workloads that are not desired any more. */
  retire: string[];
}

/**
 * The same rule for a cluster: one workload for each process type of the release. Where the release runs on this
 * machine again, workloads of others go when its instances are healthy.
 */
export function planWorkloads(
  wants: readonly DesiredProcess[],
  present: readonly PresentInstance[],
  workloads: readonly PresentWorkload[],
): WorkloadPlan {
  const settled = workloads.filter(({ candidate }) => !candidate);
  const plan: WorkloadPlan = { ensure: [], retire: [] };
  for (const want of wants) {
    const own = settled.filter(({ process_id }) => process_id === want.process_id);
    const ours = own.find(({ release_id }) => release_id === want.release_id);
    const count = want.release_id === null ? 0 : want.instances;
    if (want.on_cluster && count > 0 && ours?.instances !== count) plan.ensure.push(want);
    if (count === 0 && ours) plan.retire.push(ours.id);
    if (countRunning(instancesOf(want, present)) >= count)
      plan.retire.push(...own.filter((one) => one !== ours).map(({ id }) => id));
  }
  const known = new Set(wants.map(({ process_id }) => process_id));
  plan.retire.push(...settled.filter(({ process_id }) => !known.has(process_id)).map(({ id }) => id));
  return plan;
}

/** Number of running instances. */
export function countRunning(instances: readonly PresentInstance[]): number {
  return instances.filter(({ status }) => status === 'running').length;
}

function instancesOf(want: DesiredProcess, present: readonly PresentInstance[]): PresentInstance[] {
  return present.filter(
    ({ process_id, release_id }) => process_id === want.process_id && release_id === want.release_id,
  );
}

/** First those that don't run, then the newest. */
function surplusInstances(ours: readonly PresentInstance[], count: number): string[] {
  const bestFirst = [...ours].sort(
    (a, b) => Number(b.status === 'running') - Number(a.status === 'running') || (a.id < b.id ? -1 : 1),
  );
  return bestFirst.slice(count).map(({ id }) => id);
}
