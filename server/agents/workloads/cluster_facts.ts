// Tells processes of the API, which have no account in the cluster, what it can do.
import { driverContext } from '../../../core/driver';
import type { Logger } from '../../../core/log/log';
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
  let running: Promise<void> | null = null;
  let isAway = false;
  const look = async (): Promise<void> => {
    try {
      await saveClusterMeasures(database, await workloads.measures(driverContext(READ_MS)));
      isAway = false;
    } catch (error) {
      if (!isAway) log.warn({ err: error }, 'what the cluster can do is not known; it is tried again');
      isAway = true;
    }
  };
  const next = (): void => {
    running ??= look().finally(() => (running = null));
  };
  next();
  const timer = setInterval(next, EVERY_MS).unref();
  return {
    async close() {
      clearInterval(timer);
      await running;
    },
  };
}
