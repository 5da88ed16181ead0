// The cluster that runs applications, where WORKLOADS names one.
import { applicationTypeDefinitions } from '../../core/catalog/catalog_definitions';
import type { Config } from '../../core/config';
import { limits } from '../../core/limits';
import type { ClusterAccess } from '../../drivers/kubernetes/client/access';
import { openKubernetesClient, type KubernetesClient } from '../../drivers/kubernetes/client/client';
import type { VolumeDriver } from '../../drivers/volume';
import { claimVolumes, type ClaimOptions } from '../../drivers/workload/kubernetes/claims';
import type { ProjectOptions } from '../../drivers/workload/kubernetes/namespace';
import type { ProjectRoom } from '../../drivers/workload/kubernetes/project_quota';
import { openKubernetesWorkloads } from '../../drivers/workload/kubernetes/driver';
import type { WorkloadDriver } from '../../drivers/workload';
import { clusterAccessOf } from './cluster_access';

/** Of whoever makes namespaces, or sweeps. */
type Installation = ProjectOptions['installation'];

/**
 * Connects when it is first used: a cluster that is away is waited for.
 * @param log of what repeats by itself
 * @param installation its id (models/applications/cluster_facts.ts)
 * @throws StartupError without an address; DriverError for a kubeconfig that cannot be used
 */
export async function openClusterWorkloads(
  config: Config,
  log: (message: string, error: Error) => void,
  installation?: Installation,
): Promise<WorkloadDriver> {
  const client = openKubernetesClient(await clusterAccess(config));
  const workloads = openKubernetesWorkloads({ ...projectOptions(config, client), installation, log });
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
export async function openClusterVolumes(
  config: Config,
  installation?: Installation,
): Promise<{ driver: VolumeDriver; close(): void } | null> {
  if (config.workloads !== 'kubernetes') return null;
  const client = openKubernetesClient(await clusterAccess(config));
  const driver = claimVolumes({
    ...projectOptions(config, client),
    installation,
    storageClass: config.kubernetesStorageClass,
  });
  return { driver, close: () => client.close() };
}

/** For database servers in pods; null where applications run on this host. @throws as openClusterVolumes */
export async function openClusterParts(
  config: Config,
  installation?: Installation,
): Promise<(ClaimOptions & { close(): void }) | null> {
  if (config.workloads !== 'kubernetes') return null;
  const client = openKubernetesClient(await clusterAccess(config));
  const options = { ...projectOptions(config, client), installation, storageClass: config.kubernetesStorageClass };
  return { ...options, close: () => client.close() };
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
    room: projectRoom(config),
  };
}

/** Of packages with automatic failover. */
const DATABASE_NODES = 3;
/** Disks of databases have more than their storage (drivers/database/disk_size.ts). */
const DATABASE_DISK_SHARE = 3;

/** The most that QUOTAS and the sizes of applications allow: old and new releases beside each other, and runs. */
export function projectRoom({ quotas, databaseImages }: Pick<Config, 'quotas' | 'databaseImages'>): ProjectRoom {
  const { volumes, volume_storage_gb, runs, applications, previews } = quotas as Record<string, number | null>;
  const databases = databaseImages.length ? quotas.databases : 0;
  const servers = databases == null ? null : databases * DATABASE_NODES;
  const database_storage_gb = databaseImages.length ? quotas.database_storage_gb : 0;
  const sizes = applicationTypeDefinitions.map(({ memory_mb, vcpu, max_instances }) => ({
    ...{ memory_mb, max_instances },
    cpus: vcpu,
  }));
  const most = (key: 'memory_mb' | 'cpus' | 'max_instances'): number => Math.max(...sizes.map((size) => size[key]));
  const least = (key: 'memory_mb' | 'cpus'): number => Math.min(...sizes.map((size) => size[key]));
  const stacks = applications == null || previews == null ? null : applications + previews;
  const releases = 2 * limits.processesPerApplication * most('max_instances');
  return {
    // A release command is a run that the quota of runs does not count.
    pods: stacks === null || runs == null || servers === null ? null : stacks * (releases + 1) + 2 * runs + 2 * servers,
    volumes: volumes == null || servers === null ? null : volumes + servers,
    volume_storage_gb:
      volume_storage_gb == null || database_storage_gb == null
        ? null
        : volume_storage_gb + DATABASE_DISK_SHARE * database_storage_gb,
    largest: { memory_mb: most('memory_mb'), cpus: most('cpus') },
    smallest: { memory_mb: least('memory_mb'), cpus: least('cpus') },
  };
}

function clusterAccess({ kubeconfig, kubernetesServiceHost, kubernetesServicePort }: Config): Promise<ClusterAccess> {
  return clusterAccessOf({ kubeconfig, serviceHost: kubernetesServiceHost, servicePort: kubernetesServicePort });
}
