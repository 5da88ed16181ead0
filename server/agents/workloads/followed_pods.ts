// An ingress whose instances are pods follows them with the access of its process.
import type { Config } from '../../../core/config';
import { openKubernetesClient } from '../../../drivers/kubernetes/client/client';
import { followPodRoutes, type PodRoutes } from '../../../drivers/workload/kubernetes/pod_routes';
import type { IngressDriver } from '../../../engines/ingress/ingress';
import type { IngressProcessSettings } from '../../../engines/ingress/process/settings';
import { clusterAccessOf } from '../../platform/cluster_access';

type Cluster = NonNullable<IngressProcessSettings['cluster']>;

/** null where instances are on this machine. */
export function ingressClusterOf(config: Config): Cluster | null {
  if (config.workloads !== 'kubernetes') return null;
  return {
    kubeconfig: config.kubeconfig,
    serviceHost: config.kubernetesServiceHost,
    servicePort: config.kubernetesServicePort,
  };
}

/** Without access it relies on the rows that the worker confirms. */
export async function followCluster(
  ingress: IngressDriver,
  cluster: Cluster,
  log: (message: string, error: unknown) => void,
): Promise<PodRoutes> {
  try {
    const client = openKubernetesClient(await clusterAccessOf(cluster));
    const followed = followPodRoutes(ingress, client, log);
    const close = async (graceMs: number): Promise<void> => {
      await followed.ingress.close(graceMs);
      client.close();
    };
    return { ...followed, ingress: { ...followed.ingress, ports: ingress.ports, close } };
  } catch (error) {
    log(NO_ACCESS, error);
    return { ingress, known: Promise.resolve() };
  }
}

const NO_ACCESS =
  'the ingress has no access to the cluster: while the worker is away it does not learn of instances that move. It ' +
  'needs the rights of the ClusterRole platform-api-ingress (docs/KUBERNETES.md)';
