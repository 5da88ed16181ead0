// What the processes of the installation have reported of themselves, and what uses the disk.
import type { Config } from '../../core/config';
import type { DiskUse, ProcessReport } from '../../core/catalog/installation_reports';
import { gibibytesText } from '../../core/sentence';
import type { ControlDatabase } from '../../db/control_database';
import { pendingMigrations } from '../../db/migrate';
import { loadReports } from '../../models/base/installation_report';
import { MIGRATIONS } from '../platform/platform';
import { isMade, withDatabase } from './doctor_database';
import type { Finding } from './finding';

const SILENT_SECONDS = 120;
const SHOWN = 3;

export async function reports(config: Config): Promise<Finding[]> {
  if (!isMade(config)) return [];
  return withDatabase(config, async (opened) => {
    if ((await pendingMigrations(opened, MIGRATIONS)).length) return [];
    return [...(await processes(opened)), ...(await diskUse(opened))];
  });
}

/** The work of the service itself is asked for at its admin port: that of others stands in their reports. */
export async function processes(database: Pick<ControlDatabase, 'query'>): Promise<Finding[]> {
  const check = 'processes';
  const found = await loadReports<ProcessReport>(database, 'process');
  if (!found.length) return [];
  const problems = found.flatMap(({ machine, facts: { role, pid, work }, age_seconds, reported_at }) => {
    const name = `${role} ${pid} on ${machine}`;
    if (age_seconds > SILENT_SECONDS) return [`${name} has not reported since ${reported_at}`];
    const failing = role === 'service' ? [] : work.filter(({ lastError }) => lastError !== null);
    return failing.map((one) => `${one.name} of ${name} fails: ${one.lastError}`);
  });
  if (problems.length) return problems.map((detail) => ({ check, status: 'warning', detail }));
  return [{ check, status: 'ok', detail: `${found.length} report` }];
}

async function diskUse(database: Pick<ControlDatabase, 'query'>): Promise<Finding[]> {
  return (await loadReports<DiskUse>(database, 'disk use')).map(({ machine, facts: { started_at, kinds } }) => {
    const largest = [...kinds].sort((one, other) => other.bytes - one.bytes).slice(0, SHOWN);
    const texts = largest.map(({ kind, bytes }) => `${kind.replaceAll('_', ' ')} ${gibibytesText(bytes)}`);
    const detail = `${texts.join(', ')}, as measured on ${machine} at ${started_at}; \`platform disk\` shows all`;
    return { check: 'disk use', status: 'ok', detail };
  });
}
