// Usage of instances wherever they run, for the sampler and the autoscaler.
import { driverContext } from '../../../core/driver';
import type { Handle, RuntimeDriver, UnitUsage } from '../../../drivers/runtime';
import { LOG_PREFIX as POD_PREFIX } from '../../../drivers/workload/kubernetes/pod_logs';
import type { WorkloadDriver } from '../../../drivers/workload';

const READ_MS = 10_000;

/** Usage of units of this host, and of pods of the cluster where there is one. */
export function withPods(
  runtime: Pick<RuntimeDriver, 'usage'>,
  workloads: Pick<WorkloadDriver, 'usage'> | null,
): Pick<RuntimeDriver, 'usage'> {
  if (workloads === null) return runtime;
  return {
    async usage(handles) {
      const isPod = ({ unit_id }: Handle): boolean => unit_id.startsWith(POD_PREFIX);
      const [units, pods] = await Promise.all([
        runtime.usage(handles.filter((handle) => !isPod(handle))),
        handles.some(isPod) ? workloads.usage(driverContext(READ_MS)) : new Map<string, UnitUsage>(),
      ]);
      return new Map([...units, ...[...pods].map(([uid, used]) => [`${POD_PREFIX}${uid}`, used] as const)]);
    },
  };
}
