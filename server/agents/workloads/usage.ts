// Usage of instances wherever they run, for the sampler and the autoscaler.
import { driverContext } from '../../../core/driver';
import type { Logger } from '../../../core/log/log';
import type { Handle, RuntimeDriver, UnitUsage } from '../../../drivers/runtime';
import { LOG_PREFIX as POD_PREFIX } from '../../../drivers/workload/kubernetes/pod_logs';
import type { WorkloadDriver } from '../../../drivers/workload';

const READ_MS = 10_000;

/**
 * Usage of units of this host, and of pods of the cluster where there is one. While a cluster or its metrics server is
 * away, pods have none: the sampler counts requests, and measures this host, all the same.
 */
export function withPods(
  runtime: Pick<RuntimeDriver, 'usage'>,
  workloads: Pick<WorkloadDriver, 'usage'> | null,
  log: Pick<Logger, 'warn'>,
): Pick<RuntimeDriver, 'usage'> {
  if (workloads === null) return runtime;
  let isAway = false;
  const usageOfPods = async (): Promise<Map<string, UnitUsage>> => {
    try {
      const found = await workloads.usage(driverContext(READ_MS));
      isAway = false;
      return found;
    } catch (error) {
      if (!isAway) log.warn({ err: error }, 'CPU and memory of pods cannot be read; it is tried again');
      isAway = true;
      return new Map();
    }
  };
  return {
    async usage(handles) {
      const isPod = ({ unit_id }: Handle): boolean => unit_id.startsWith(POD_PREFIX);
      const [units, pods] = await Promise.all([
        runtime.usage(handles.filter((handle) => !isPod(handle))),
        handles.some(isPod) ? usageOfPods() : new Map<string, UnitUsage>(),
      ]);
      return new Map([...units, ...[...pods].map(([uid, used]) => [`${POD_PREFIX}${uid}`, used] as const)]);
    },
  };
}
