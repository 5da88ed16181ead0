// The cluster that runs applications, where WORKLOADS names one.
import type { Config } from '../../../core/config';
import type { LogBudget } from '../../../core/log/log_budget';
import { StartupError } from '../../../core/startup_error';
import type { ClusterAccess } from '../../../drivers/kubernetes/client/access';
import { openKubernetesClient } from '../../../drivers/kubernetes/client/client';
import { inClusterAccess, loadKubeconfig } from '../../../drivers/kubernetes/client/load_access';
import { openKubernetesWorkloads } from '../../../drivers/workload/kubernetes/driver';
import type { WorkloadDriver } from '../../../drivers/workload';
import { driverContext } from '../../../core/driver';
import type { Platform } from '../../platform/platform';
import { startPodRows } from './pod_rows';
import { startShipper } from '../shipper';

const PROBE_MS = 10_000;

/** null where this host runs them. A cluster that is away is waited for. @throws StartupError for bad credentials */
export async function openWorkloads(
  { config, database, log }: Platform,
  budget: LogBudget,
  opened: (() => Promise<void> | void)[],
): Promise<WorkloadDriver | null> {
  if (config.workloads !== 'kubernetes') return null;
  const client = openKubernetesClient(await clusterAccess(config));
  opened.push(() => client.close());
  const workloads = openKubernetesWorkloads({
    client,
    prefix: config.kubernetesNamespacePrefix,
    networks: {
      ingressNamespace: config.kubernetesIngressNamespace,
      ingressAddresses: config.kubernetesIngressAddresses,
      egressAllow: config.kubernetesEgressAllow,
    },
    log: (message, error) => log.warn({ err: error }, message),
  });
  opened.push(() => workloads.close());
  const { healthy, reason, facts } = await workloads.fingerprint(driverContext(PROBE_MS));
  if (healthy) log.info(facts, 'applications run on the cluster');
  else log.warn({ reason }, 'the cluster cannot run applications yet');
  const shipper = startShipper({ database, runtime: workloads.logs, log, budget });
  opened.push(() => shipper.stop());
  const rows = startPodRows({ database, workloads, shipper, log });
  opened.push(() => rows.close());
  return workloads;
}

async function clusterAccess({
  kubeconfig,
  kubernetesServiceHost,
  kubernetesServicePort,
}: Config): Promise<ClusterAccess> {
  if (kubeconfig !== null) return loadKubeconfig(kubeconfig);
  const given = inClusterAccess({
    KUBERNETES_SERVICE_HOST: kubernetesServiceHost ?? '',
    KUBERNETES_SERVICE_PORT: String(kubernetesServicePort),
  });
  if (given) return given;
  throw new StartupError('WORKLOADS is kubernetes, but KUBECONFIG names no cluster, and this is no pod of one');
}
