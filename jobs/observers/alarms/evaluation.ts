// Evaluates the alarms of the installation, in one process at a time.
import { randomUUID } from 'node:crypto';
import type { Logger } from '../../../core/log/log';
import { repeatWork, type RepeatedWork } from '../../../core/process/background';
import type { ControlDatabase } from '../../../db/control_database';
import {
  applyReadings,
  holdEvaluation,
  releaseEvaluation,
  type AlarmParts,
} from '../../../models/observers/installation_alarm';
import type { AlarmName, Reading } from '../../../models/observers/installation_alarm/alarm_rules';

/** Reads what some of the alarms are about. One that rejects leaves its alarms as they are: unknown is not fine. */
export interface AlarmSource {
  names: readonly AlarmName[];
  read(): Promise<readonly Reading[]> | readonly Reading[];
}

interface Parts extends AlarmParts {
  database: ControlDatabase;
  log: Logger;
  sources: readonly AlarmSource[];
  everySeconds: number;
  /** Called after each evaluation without an error, if this process evaluates. */
  evaluated(): void;
}

export const ALARMS_WORK = 'installation_alarms';

export function startAlarms({
  database,
  log,
  sources,
  everySeconds,
  evaluated,
  ...parts
}: Parts): Pick<RepeatedWork, 'stop'> {
  const holder = randomUUID();
  const failure = 'the alarms of the installation could not be evaluated';
  const work = repeatWork({ name: ALARMS_WORK, everyMs: everySeconds * 1000, log, failure }, async () => {
    if (!(await holdEvaluation(database, holder))) return;
    const { names, readings, errors } = await readAll(sources);
    if (!(await applyReadings(database, holder, { names, readings }, parts))) return;
    if (errors.length) throw errors[0] as Error;
    evaluated();
  });
  work.runNow();
  return {
    async stop() {
      await work.stop();
      await releaseEvaluation(database, holder).catch(() => {});
    },
  };
}

async function readAll(
  sources: readonly AlarmSource[],
): Promise<{ names: AlarmName[]; readings: Reading[]; errors: unknown[] }> {
  const found = await Promise.allSettled(sources.map(async ({ read }) => read()));
  const names = sources.flatMap((source, index) => (found[index]?.status === 'fulfilled' ? source.names : []));
  const readings = found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  const errors = found.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  return { names, readings, errors };
}
