// What pods use, by the metrics API of the cluster (metrics-server). It gives rates; what reads usage counts from the
// start of a unit, so that rates are summed up here for as long as this process runs.
import { performance } from 'node:perf_hooks';
import type { Pod } from 'kubernetes-types/core/v1';
import type { DriverContext } from '../../../core/driver';
import type { KubernetesClient } from '../../kubernetes/client/client';
import { hasCode } from '../../kubernetes/client/failure';
import { parseQuantity } from '../../kubernetes/client/quantity';
import { resourceTypes, type ListScope, type PodMetrics } from '../../kubernetes/client/resource_type';
import type { UnitUsage } from '../../runtime';
import { LABEL, selectorText } from './names';

export interface PodUsage {
  /** Its name stands for the pod until another one has it. */
  changed(pod: Pod): void;
  removed(uid: string): void;
  /** By uid; empty where the cluster has no metrics. `labels`: of the pods; absent: all. @throws DriverError */
  read(ctx: DriverContext, labels?: Record<string, string>): Promise<Map<string, UnitUsage>>;
}

/** Group of the API that a cluster may lack. */
export const METRICS_API = resourceTypes.podMetrics.apiVersion;

/**
 * Whether a metrics server answers. Its API is listed by the cluster, too, while nothing serves it (503).
 * @throws DriverError
 */
export async function measuresPods(
  client: Pick<KubernetesClient, 'list'>,
  prefix: string,
  ctx: DriverContext,
): Promise<boolean> {
  try {
    await client.list(resourceTypes.podMetrics, scopeOf(prefix), ctx);
    return true;
  } catch (error) {
    if (hasCode(error, 'api_absent', 'unavailable', 'forbidden')) return false;
    throw error;
  }
}

const scopeOf = (prefix: string, labels: Record<string, string> = {}): ListScope => ({
  labelSelector: selectorText({ [LABEL.installation]: prefix, ...labels }),
});

interface Counted {
  at: number;
  cpuSeconds: number;
}

export function openPodUsage(client: KubernetesClient, prefix: string, now = () => performance.now()): PodUsage {
  const uids = new Map<string, string>();
  const counted = new Map<string, Counted>();
  return {
    changed: ({ metadata }) => void uids.set(`${metadata?.namespace} ${metadata?.name}`, metadata?.uid ?? ''),
    removed(uid) {
      counted.delete(uid);
      for (const [name, other] of uids) if (other === uid) uids.delete(name);
    },
    async read(ctx, labels) {
      const at = now();
      const found = (await listMetrics(client, scopeOf(prefix, labels), ctx)).flatMap(
        (metrics): [string, UnitUsage][] => {
          const uid = uids.get(`${metrics.metadata?.namespace} ${metrics.metadata?.name}`);
          if (uid === undefined) return [];
          const before = counted.get(uid) ?? { at, cpuSeconds: 0 };
          const cpuSeconds = before.cpuSeconds + (sumOf(metrics, 'cpu') * (at - before.at)) / 1000;
          counted.set(uid, { at, cpuSeconds });
          return [[uid, { cpu_seconds: cpuSeconds, memory_bytes: sumOf(metrics, 'memory'), network: null }]];
        },
      );
      return new Map(found);
    },
  };
}

async function listMetrics(client: KubernetesClient, scope: ListScope, ctx: DriverContext): Promise<PodMetrics[]> {
  try {
    return (await client.list(resourceTypes.podMetrics, scope, ctx)).items;
  } catch (error) {
    if (hasCode(error, 'api_absent')) return [];
    throw error;
  }
}

function sumOf({ containers }: PodMetrics, resource: 'cpu' | 'memory'): number {
  return containers.reduce((sum, { usage }) => sum + (parseQuantity(usage[resource]) ?? 0), 0);
}
