// Access to the cluster that runs applications, for each process that has any.
import { StartupError } from '../../core/startup_error';
import type { ClusterAccess } from '../../drivers/kubernetes/client/access';
import { inClusterAccess, loadKubeconfig } from '../../drivers/kubernetes/client/load_access';

interface ClusterPlace {
  /** Path of the file; null: as a pod. */
  kubeconfig: string | null;
  serviceHost: string | null;
  servicePort: number;
}

/** @throws StartupError without an address; DriverError for a kubeconfig that cannot be used */
export async function clusterAccessOf({ kubeconfig, serviceHost, servicePort }: ClusterPlace): Promise<ClusterAccess> {
  if (kubeconfig !== null) return loadKubeconfig(kubeconfig);
  const given = inClusterAccess({
    KUBERNETES_SERVICE_HOST: serviceHost ?? '',
    KUBERNETES_SERVICE_PORT: String(servicePort),
  });
  if (given) return given;
  throw new StartupError('WORKLOADS is kubernetes, but the service runs in no pod: set KUBECONFIG');
}
