import type { Config } from '../../core/config';
import { driverContext } from '../../core/driver';
import { openClusterVolumes, openClusterWorkloads } from '../platform/cluster';
import type { WorkloadDriver } from '../../drivers/workload';
import { reachOf } from '../platform/reach';
import type { Finding } from './finding';

const CLUSTER_WITHIN_MS = 20_000;
/** That doctor connects to. */
const INSTANCES_MAX = 50;
/** Pods get their grace time. */
const LEAVING_MS = 300_000;

/** Whether the cluster answers, and which rights are missing. Nothing where applications run on this host. */
export async function cluster(config: Config): Promise<Finding[]> {
  if (config.workloads !== 'kubernetes') return [];
  const workloads = await openClusterWorkloads(config, () => undefined);
  try {
    const { healthy, reason, facts } = await workloads.fingerprint(driverContext(CLUSTER_WITHIN_MS));
    const detail = reason ?? `Kubernetes ${facts.version} answers, namespaces begin with ${facts.prefix}-`;
    return [
      { check: 'cluster', status: healthy ? 'ok' : 'failed', detail },
      ...(healthy ? await namespaces(workloads) : []),
      ...(healthy ? await instances(workloads) : []),
      ...metrics(facts.measures),
      await storage(config),
      ...databases(config),
    ];
  } finally {
    await workloads.close();
  }
}

/** Those that do not end: their finalizers wait for something, or an API of the cluster is away. */
async function namespaces({ listProjects }: Pick<WorkloadDriver, 'listProjects'>): Promise<Finding[]> {
  const places = await listProjects(driverContext(CLUSTER_WITHIN_MS));
  return places.flatMap(({ name, leaving_since, reason }): Finding[] => {
    if (leaving_since === null || Date.now() - Date.parse(leaving_since) < LEAVING_MS) return [];
    const detail = `${name} has been ending since ${leaving_since}${reason === null ? '' : `: ${reason}`}`;
    return [{ check: 'cluster namespaces', status: 'warning', detail }];
  });
}

/** Whether the ingress of this machine reaches them: those of other machines it may reach from another address. */
async function instances({ listInstances }: Pick<WorkloadDriver, 'listInstances'>): Promise<Finding[]> {
  const check = 'cluster instances';
  const tried = (await listInstances(driverContext(CLUSTER_WITHIN_MS))).flatMap(({ status, location, port }) =>
    status === 'running' && location && port !== null ? [{ address: location.address, port }] : [],
  );
  const reached = await Promise.all(
    tried
      .slice(0, INSTANCES_MAX)
      .map(async ({ address, port }) => ({ address, port, ...(await reachOf(address, port)) })),
  );
  if (reached.length === 0) return [];
  const failed = reached.find(({ error }) => error !== null);
  if (!failed) {
    const from = [...new Set(reached.map((one) => one.from))].join(', ');
    return [{ check, status: 'ok', detail: `this machine connects to them from ${from}` }];
  }
  const detail =
    `this machine cannot connect to ${failed.address}:${failed.port} from ${failed.from ?? 'any address'} ` +
    `(${failed.error}): KUBERNETES_INGRESS_ADDRESSES must have the addresses from which an ingress connects`;
  return [{ check, status: 'warning', detail }];
}

function metrics(measures: unknown): Finding[] {
  const check = 'cluster metrics';
  if (measures === true) return [{ check, status: 'ok', detail: 'the cluster measures its pods' }];
  if (measures === undefined) return [];
  const detail = 'no metrics of CPU and memory, nor autoscaling by them: no metrics server answers (metrics.k8s.io)';
  return [{ check, status: 'warning', detail }];
}

/** What volumes are made of. */
async function storage(config: Config): Promise<Finding> {
  const check = 'cluster storage';
  const volumes = await openClusterVolumes(config);
  const found = await volumes?.driver.fingerprint(driverContext(CLUSTER_WITHIN_MS));
  volumes?.close();
  if (!found?.healthy) return { check, status: 'warning', detail: `no volumes: ${found?.reason}` };
  const { storage_class, provisioner, grows } = found.facts;
  const growth = grows ? '' : '; its volumes cannot grow';
  return { check, status: 'ok', detail: `volumes are of the class ${storage_class} (${provisioner})${growth}` };
}

function databases({ databaseAddressForPods, databaseSourcesOfPods }: Config): Finding[] {
  const check = 'cluster databases';
  if (databaseAddressForPods === null)
    return [
      {
        ...{ check, status: 'warning' },
        detail: 'applications cannot use databases: DATABASE_ADDRESS_FOR_PODS and DATABASE_SOURCES_OF_PODS are not set',
      },
    ];
  const detail = `pods reach databases at ${databaseAddressForPods}, from ${databaseSourcesOfPods.join(', ')}`;
  return [{ check, status: 'ok', detail }];
}
