// Traffic of ingresses in processes of their own: they write what they have counted, and the process that has the
// sampler takes it as if its own ingress had counted it.
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';
import type { ControlDatabase } from '../../db/control_database';
import type { IngressDriver, Traffic } from '../../engines/ingress/ingress';
import { reportTraffic, takeReportedTraffic } from '../../models/applications/reported_traffic';

type Counting = Pick<IngressDriver, 'takeTraffic'>;

interface Parts {
  database: ControlDatabase;
  ingress: Counting;
  log: Logger;
}

/** The autoscaler looks every five seconds. */
const EVERY_MS = 5_000;
/** Entries that wait while the database is away. */
const WAITING_MAX = 100_000;

/** Writes the counters of an ingress. `close` writes the remaining ones. */
export function startReporting({ database, ingress, log }: Parts): { close(): Promise<void> } {
  let waiting: Traffic[] = [];
  const failure = 'What the ingress has counted could not be written.';
  const { finish } = repeatWork({ name: 'traffic_report', everyMs: EVERY_MS, log, failure }, async () => {
    waiting = [...waiting, ...ingress.takeTraffic()].slice(0, WAITING_MAX);
    await reportTraffic(database, waiting);
    waiting = [];
  });
  return { close: finish };
}

/** An ingress's own counters, and those that others have reported. */
export function withReported({ database, ingress, log }: Parts): Counting & { close(): Promise<void> } {
  const reported: Traffic[] = [];
  const failure = 'What other ingresses have counted could not be read.';
  const { finish } = repeatWork({ name: 'reported_traffic', everyMs: EVERY_MS, log, failure }, async () => {
    if (reported.length < WAITING_MAX) reported.push(...(await takeReportedTraffic<Traffic>(database)));
  });
  return { takeTraffic: () => [...ingress.takeTraffic(), ...reported.splice(0)], close: finish };
}
