// Starts what follows the cluster that runs applications, where WORKLOADS names one.
import { driverContext } from '../../../core/driver';
import type { LogBudget } from '../../../core/log/log_budget';
import type { WorkloadDriver } from '../../../drivers/workload';
import { openClusterWorkloads } from '../../platform/cluster';
import type { Platform } from '../../platform/platform';
import { startShipper } from '../shipper';
import { startPodRows } from './pod_rows';

const PROBE_MS = 10_000;

/** null where this host runs them. A cluster that is away is waited for. @throws StartupError, DriverError */
export async function openWorkloads(
  { config, database, log }: Platform,
  budget: LogBudget,
  opened: (() => Promise<void> | void)[],
): Promise<WorkloadDriver | null> {
  if (config.workloads !== 'kubernetes') return null;
  const workloads = await openClusterWorkloads(config, (message, error) => log.warn({ err: error }, message));
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
