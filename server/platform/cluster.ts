// The cluster that runs applications, where WORKLOADS names one.
import type { Config } from '../../core/config';
import { StartupError } from '../../core/startup_error';
import type { ClusterAccess } from '../../drivers/kubernetes/client/access';
import { openKubernetesClient, type KubernetesClient } from '../../drivers/kubernetes/client/client';
import { inClusterAccess, loadKubeconfig } from '../../drivers/kubernetes/client/load_access';
import type { VolumeDriver } from '../../drivers/volume';
import { claimVolumes } from '../../drivers/volume/claims';
import type { ProjectOptions } from '../../drivers/workload/kubernetes/namespace';
import { openKubernetesWorkloads } from '../../drivers/workload/kubernetes/driver';
import type { WorkloadDriver } from '../../drivers/workload';

/**
 * Connects when it is first used: a cluster that is away is waited for.
 * @param log of what repeats by itself
 * @throws StartupError without an address; DriverError for a kubeconfig that cannot be used
 */
export async function openClusterWorkloads(
  config: Config,
  log: (message: string, error: Error) => void,
): Promise<WorkloadDriver> {
  const client = openKubernetesClient(await clusterAccess(config));
  const workloads = openKubernetesWorkloads({ ...projectOptions(config, client), log });
  return {
    ...workloads,
    async close() {
      await workloads.close();
      client.close();
    },
  };
}

/**
 * Volumes of the cluster; null where applications run on this host.
 * @throws StartupError without an address; DriverError for a kubeconfig that cannot be used
 */
export async function openClusterVolumes(config: Config): Promise<{ driver: VolumeDriver; close(): void } | null> {
  if (config.workloads !== 'kubernetes') return null;
  const client = openKubernetesClient(await clusterAccess(config));
  const driver = claimVolumes({
    ...projectOptions(config, client),
    storageClass: config.kubernetesStorageClass,
  });
  return { driver, close: () => client.close() };
}

function projectOptions(config: Config, client: KubernetesClient): ProjectOptions {
  return {
    client,
    prefix: config.kubernetesNamespacePrefix,
    networks: {
      ingressNamespace: config.kubernetesIngressNamespace,
      ingressAddresses: config.kubernetesIngressAddresses,
      egressAllow: config.kubernetesEgressAllow,
    },
  };
}

async function clusterAccess(config: Config): Promise<ClusterAccess> {
  if (config.kubeconfig !== null) return loadKubeconfig(config.kubeconfig);
  const given = inClusterAccess({
    KUBERNETES_SERVICE_HOST: config.kubernetesServiceHost ?? '',
    KUBERNETES_SERVICE_PORT: String(config.kubernetesServicePort),
  });
  if (given) return given;
  throw new StartupError('WORKLOADS is kubernetes, but the service runs in no pod: set KUBECONFIG');
}
