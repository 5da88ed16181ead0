// Tells processes of the API, which have no account in the cluster, what it can do.
import { driverContext } from '../../../core/driver';
import type { Logger } from '../../../core/log/log';
import { repeatWork } from '../../../core/process/background';
import type { ControlDatabase } from '../../../db/control_database';
import type { WorkloadDriver } from '../../../drivers/workload';
import { saveClusterMeasures } from '../../../models/applications/cluster_facts';

/** A metrics server that was just installed serves soon. */
const EVERY_MS = 30_000;
const READ_MS = 10_000;

interface Parts {
  database: ControlDatabase;
  workloads: Pick<WorkloadDriver, 'measures'>;
  log: Logger;
}

/** Begins at once, and goes on while the cluster or the database is away. `close` waits for the present look. */
export function keepClusterFacts({ database, workloads, log }: Parts): { close(): Promise<void> } {
  const failure = 'what the cluster can do is not known; it is tried again';
  const work = repeatWork({ name: 'cluster_facts', everyMs: EVERY_MS, log, failure }, async () =>
    saveClusterMeasures(database, await workloads.measures(driverContext(READ_MS))),
  );
  work.runNow();
  return { close: work.stop };
}
