// WEB_CONCURRENCY above 1: this process does what must be done once, and as many others serve the API on one port.
//
// node:cluster shares the port: this process accepts connections and hands them on in turn. Of the ways that Node 20
// offers, this is the fair one. If processes accept from one socket themselves, the first to wake takes a whole burst;
// SO_REUSEPORT needs a newer version, and loses connections that wait in the queue of a process that dies.
import { withPort } from '../../core/config';
import { serviceSocket } from '../../core/platform_names';
import { removeDraft } from '../../core/process/named_socket';
import {
  addWebProcesses,
  addBackupFigures,
  addCertificateFigures,
  addProofFigures,
  addCheckFigures,
  addBackgroundWork,
  addProcessReports,
  addWorkerLag,
  listenAdmin,
  openMetrics,
} from '../http/admin';
import { readBackupJournal } from '../platform/backup_journal';
import { adminRoutes } from '../http/ai_usage_ingest';
import { loadReports } from '../../models/base/installation_report';
import { proofFigures } from '../../models/databases/database_proof';
import { certificateFigures } from '../../models/domains/certificate/expiry_warnings';
import { checkFigures } from '../../models/observers/observer/claim';
import { poolSizeThatFits } from '../platform/connection_budget';
import { addAlarmFigures, alarmFiguresOf } from '../http/alarm_figures';
import { mailPages } from '../http/mail_pages';
import { startUpgradeNote } from '../installation/upgrade_note';
import { metricSum } from './metrics';
import { startWebProcesses } from './processes';
import type { WaitingProcess } from './waiting';
import type { Platform } from '../platform/platform';
import { startProcessReport } from '../platform/process_report';
import type { Running } from '../program';
import { closable, openWorker, type BeforeListening, type Opened, type Service } from '../service';

/**
 * Starts to serve on an open platform, in separate processes. Fails later if they exit again and again.
 * @param waiting answers at the port until they can
 * @throws StartupError for a taken port, or too few connections to PostgreSQL
 */
export function startPrimary(
  platform: Platform,
  beforeListening: BeforeListening = async () => {},
  waiting: WaitingProcess | null = null,
): Promise<Service & Running> {
  return closable((opened) => open(platform, beforeListening, opened, waiting));
}

async function open(
  platform: Platform,
  beforeListening: BeforeListening,
  opened: Opened,
  waiting: WaitingProcess | null,
): Promise<Omit<Service & Running, 'close'>> {
  const poolSize = await poolSizeThatFits(platform.database, platform.config);
  if (poolSize < platform.config.databasePoolSize)
    platform.log.warn(
      { pool_size: poolSize },
      'a process that serves keeps fewer connections than DATABASE_POOL_SIZE: PostgreSQL has no more',
    );
  const own = openMetrics();
  await openWorker(platform, own, opened);
  opened.push(startProcessReport(platform, 'service'), startUpgradeNote(platform));
  const sum = metricSum();
  const socket = serviceSocket(platform.config, 'api');
  if (socket !== null) removeDraft(socket);
  await beforeListening();
  const processes = await startWebProcesses({
    ...platform.config,
    settings: settingsOfWeb(platform, poolSize),
    log: platform.log,
    listening: () => waiting?.leave(),
    ended: sum.keep,
  });
  // After the worker.
  opened.unshift(() => processes.stop());
  platform.config = withPort(platform.config, processes.port);
  addWorkerLag(own, () => platform.workerLag());
  addBackgroundWork(own);
  addProcessReports(own, () => loadReports(platform.database, 'process'));
  addCheckFigures(own, () => checkFigures(platform.database));
  addCertificateFigures(own, () => certificateFigures(platform.database));
  addProofFigures(own, () => proofFigures(platform.database));
  addBackupFigures(own, () => readBackupJournal(platform.config));
  addAlarmFigures(own, alarmFiguresOf(platform.database));
  addWebProcesses(own, () => processes.serving());
  const admin = await listenAdmin(
    platform.config,
    async () => sum.of([await own.registry.getMetricsAsJSON(), ...(await processes.metrics())]),
    adminRoutes(platform),
    mailPages(() => platform),
  );
  opened.push(() => admin.close());
  return { config: platform.config, adminPort: admin.port, failed: processes.failed };
}

/** Settings of web processes that override the environment: values that this process has determined or started. */
function settingsOfWeb({ config, databaseUrl }: Platform, poolSize: number): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    DATABASE_POOL_SIZE: String(poolSize),
    INGRESS_PORT: String(config.ingressPort),
    INGRESS_TLS_PORT: config.ingressTlsPort === null ? '' : String(config.ingressTlsPort),
  };
}
