// Starts what follows the cluster that runs applications, where WORKLOADS names one.
import { driverContext } from '../../../core/driver';
import type { LogBudget } from '../../../core/log/log_budget';
import { TASK_LOG_PREFIX } from '../../../drivers/workload/task';
import type { HostDrivers } from '../../../jobs/job';
import { openClusterWorkloads } from '../../platform/cluster';
import type { Platform } from '../../platform/platform';
import { keepClusterFacts } from './cluster_facts';
import { ownerWaker } from './owner_waker';
import { installationId, saveClusterPrefix } from '../../../models/applications/cluster_facts';
import { startShipper } from '../shipper';
import { startPodRows } from './pod_rows';
import { startReachCheck } from './reach';

const PROBE_MS = 10_000;

type Opened = Pick<HostDrivers, 'workloads' | 'tasks'>;

/** null where this host runs them. A cluster that is away is waited for. @throws StartupError, DriverError */
export async function openWorkloads(
  { config, database, log }: Platform,
  budget: LogBudget,
  opened: (() => Promise<void> | void)[],
): Promise<Opened> {
  if (config.workloads !== 'kubernetes') return { workloads: null, tasks: null };
  const warn = (message: string, error: Error): void => log.warn({ err: error }, message);
  const workloads = await openClusterWorkloads(config, warn, installationId(database));
  opened.push(() => workloads.close());
  const { healthy, reason, facts } = await workloads.fingerprint(driverContext(PROBE_MS));
  if (healthy) log.info(facts, 'applications run on the cluster');
  else log.warn({ reason }, 'the cluster cannot run applications yet');
  await saveClusterPrefix(database, config.kubernetesNamespacePrefix);
  const known = keepClusterFacts({ database, workloads, log });
  opened.push(() => known.close());
  const shipper = startShipper({ database, runtime: workloads.logs, log, budget, place: 'cluster' });
  opened.push(() => shipper.stop());
  const stopping = new AbortController();
  opened.push(() => stopping.abort());
  const wakeOwner = ownerWaker({ database, log }, stopping.signal);
  const taskChanged = (id: string): void => {
    shipper.noticeUnit(`${TASK_LOG_PREFIX}${id}`);
    wakeOwner(id);
  };
  const reach = startReachCheck(log);
  opened.push(() => reach.close());
  const rows = startPodRows({ database, workloads, shipper, reach, log, taskChanged });
  opened.push(() => rows.close());
  return { workloads, tasks: { runtime: workloads.tasks, shipper } };
}
