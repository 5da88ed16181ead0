// The whole service in one process: faces, worker, metrics. Assembled here, in the order in which it starts. Where
// several processes serve the API (cluster.ts), each of them is the part that openWeb opens.
import cluster from 'node:cluster';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import express, { type Express } from 'express';
import type { Config } from '../core/config';
import { withPort } from '../core/config';
import { serviceSocket } from '../core/platform_names';
import { MAIL_LINK_PATH } from '../core/mail/mail_links';
import { makePassableDirectory } from '../core/directory';
import { memoize } from '../core/memoize';
import { PROBE_CHECKS_PATH, PROBE_RESULTS_PATH } from '../core/outbound/probe_protocol';
import { version } from '../package.json';
import { loadReports } from '../models/base/installation_report';
import { idempotencyRecords } from '../models/idempotency_record';
import { DOWNLOAD_PATH } from '../models/databases/database_backup/download';
import { VOLUME_DOWNLOAD_PATH } from '../models/volumes/volume_backup/download';
import { IMPORT_UPLOAD_PATH } from '../models/databases/database_import/address';
import { UPLOAD_PATH } from '../models/deployments/source_upload/address';
import { proofFigures } from '../models/databases/database_proof';
import { certificateFigures } from '../models/domains/certificate/expiry_warnings';
import { checkFigures } from '../models/observers/observer/claim';
import { EXPORT_PATH } from '../models/projects/installation_activity';
import { buildCore, type Core } from '../resolvers';
import { restHandler } from '../rest/app';
import { consolePages, graphiqlPage } from '../rest/console';
import { buildFacade } from '../rest/facade';
import type { RestParts } from '../rest/exchange';
import { openapiDocument } from '../rest/openapi';
import { NOSNIFF } from '../rest/send_text';
import { STACK_SCHEMA_PATH, stackSchema } from '../rest/stack_schema';
import { readBackupJournal } from './platform/backup_journal';
import { accountPages } from './http/account_pages';
import { addAlarmFigures, alarmFiguresOf } from './http/alarm_figures';
import { activityDownload } from './http/activity_download';
import {
  addCheckCounts,
  addBackupFigures,
  addCertificateFigures,
  addProofFigures,
  addCheckFigures,
  addNameserver,
  addNetworks,
  addBackgroundWork,
  addProcessReports,
  addWorkerLag,
  listenAdmin,
  type Metrics,
  openMetrics,
} from './http/admin';
import { adminRoutes } from './http/ai_usage_ingest';
import { authenticate } from './platform/authenticate';
import { backupDownload, findDatabaseBackup, findVolumeBackup } from './http/backup_download';
import { objectStorageOrigin } from '../models/object_storage/bucket/endpoint';
import { dashboardFolder } from './dashboard_folder';
import { dashboard } from './http/dashboard';
import { requestContext } from './platform/context';
import { AUTHORITY_PATH, databaseAuthorityFile } from './database_authority';
import { graphqlFace } from './graphql/face';
import { webSocketRefusal } from './graphql/web_sockets';
import { gitHooks } from './http/git_hooks';
import { gitOauthCallback } from './http/git_oauth';
import { listenHttp } from './http/http';
import { installationControl } from './installation/control';
import { startUpgradeNote } from './installation/upgrade_note';
import { lastHandlers } from './http/last_handlers';
import { loginRoutes } from './login/routes';
import { mailLinks } from './http/mail_links';
import { mailPages } from './http/mail_pages';
import { oauthRoutes } from './oauth/routes';
import { importUploads } from './http/import_uploads';
import { sourceUploads } from './http/source_uploads';
import { facesThatAnswer503 } from './http/starting_faces';
import { probeChecks, probeResults } from './http/probes';
import { HOOK_PATH } from '../models/integrations/git_integration/hook';
import { OAUTH_CALLBACK_PATH } from '../models/integrations/git_integration/oauth';
import type { Platform } from './platform/platform';
import { startProcessReport } from './platform/process_report';
import { reasonsNotReady, type Readiness } from './http/readiness';
import { requestLogger } from './http/request_log';
import { runAttachments } from './runs/upgrade';
import type * as OfDistribution from './http/distribution';
import type * as OfWorker from './start_worker';

export interface Service {
  config: Config;
  adminPort: number;
  close(): Promise<void>;
}

/** What must be done before the port of the API answers. */
export type BeforeListening = () => Promise<void>;

/** Facts of the host that a start does not need are looked for when it is over. */
const FACTS_AFTER_MS = 10_000;
const ANSWERED_WITHIN_MS = 20;

// Not with the faces, which a start would keep waiting.
const load = createRequire(__filename);

/** Functions that close the opened parts, in the order of opening. */
export type Opened = (() => Promise<void>)[];

/**
 * Starts to serve on an open platform.
 * @param waiting whose port it takes over when it can answer (http/waiting_port.ts)
 * @throws StartupError for a taken port; Error for a contradiction in the schema
 */
export function startService(
  platform: Platform,
  beforeListening: BeforeListening = async () => {},
  waiting: Server | null = null,
): Promise<Service> {
  return closable((opened) => open(platform, beforeListening, opened, waiting));
}

/** Opens part by part; closes in reverse order, also the opened ones when a later part fails. */
export async function closable<Parts>(
  open: (opened: Opened) => Promise<Parts>,
): Promise<Parts & { close(): Promise<void> }> {
  const opened: Opened = [];
  const close = async (): Promise<void> => {
    for (const step of opened.reverse()) await step();
  };
  try {
    return { ...(await open(opened)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  platform: Platform,
  beforeListening: BeforeListening,
  opened: Opened,
  waiting: Server | null,
): Promise<Omit<Service, 'close'>> {
  // First, since it takes the processor for a while: answers of the database that come meanwhile would be too late.
  platform.log.info('preparing the API');
  const built = buildFaces();
  const metrics = openMetrics();
  addWorkerLag(metrics, () => platform.workerLag());
  addBackgroundWork(metrics);
  addProcessReports(metrics, () => loadReports(platform.database, 'process'));
  addCheckFigures(metrics, () => checkFigures(platform.database));
  addCertificateFigures(metrics, () => certificateFigures(platform.database));
  addProofFigures(metrics, () => proofFigures(platform.database));
  addBackupFigures(metrics, () => readBackupJournal(platform.config));
  addAlarmFigures(metrics, alarmFiguresOf(platform.database));
  await beforeListening();
  const readiness: Readiness = { missing: 'starting' };
  await openWeb(platform, built, metrics, opened, readiness, waiting);
  // Behind the faces, which need rows alone: looking at what the host can do takes longer than all before it. Who waits
  // is answered first, since loading the modules for that takes the processor, too.
  await sleep(ANSWERED_WITHIN_MS);
  await openWorker(platform, metrics, opened);
  opened.push(startProcessReport(platform, 'service'), startUpgradeNote(platform));
  const pages = mailPages(() => platform);
  const admin = await listenAdmin(platform.config, () => metrics.registry, adminRoutes(platform), pages);
  opened.push(() => admin.close());
  // First of all: who balances load sends no more, and what comes meanwhile is answered.
  opened.push(() => {
    readiness.missing = 'draining';
    return Promise.resolve();
  });
  if (readiness.missing === 'starting') readiness.missing = null;
  return { config: platform.config, adminPort: admin.port };
}

/**
 * The work behind the answers, where it is done in this process. It ends before the faces, which answer meanwhile: an
 * upload to a bucket may be waited for.
 */
export async function openWorker(platform: Platform, metrics: Metrics, opened: Opened): Promise<void> {
  if (platform.config.worker !== 'in_process') return;
  const { startWorker } = load('./start_worker') as typeof OfWorker;
  const worker = await startWorker(platform, { whenTaken: 'refuse' });
  opened.push(() => worker.stop());
  addCheckCounts(metrics, () => worker.checks());
  addNetworks(metrics, () => worker.runtimeFacts());
  if (platform.config.dnsPort !== 0 || platform.config.powerdnsUrl) addNameserver(metrics, () => worker.nameserver());
}

export interface Built {
  core: Core;
  handlers: RestParts['handlers'];
}

/**
 * What the faces serve, made of the schema: the same for all that a process opens. @throws Error for a contradiction in
 * it
 */
export const buildFaces = memoize((): Built => {
  const core = buildCore();
  return { core, handlers: buildFacade(core.schema, core.table) };
});

/** The faces, on the port of the API. Answers the settings with that port. */
export async function openWeb(
  platform: Platform,
  { core, handlers }: Built,
  metrics: Metrics,
  opened: Opened,
  readiness: Readiness,
  waiting: Server | null = null,
): Promise<Config> {
  // With PORT=0 the base address is known only after listening, so the faces read the config when a request comes.
  const faces = facesThatAnswer503(() => platform.config.baseUrl);
  const http = await listenHttp(
    platform.config,
    {
      rest: (request, response, id) => faces.rest(request, response, id),
      others: (request, response) => faces.express(request, response),
      upgrade: (...request) => faces.upgrade(...request),
      baseUrl: () => platform.config.baseUrl,
      hasOwnName: () => serviceSocket(platform.config, 'api') !== null,
      corsOrigins: () => platform.config.corsOrigins,
    },
    waiting,
  );
  // Not awaited: a request that needs the facts earlier loads them itself.
  const finding = setTimeout(() => void platform.facts(), FACTS_AFTER_MS);
  opened.push(() => {
    clearTimeout(finding);
    readiness.missing = 'draining';
    platform.closing.abort();
    return http.close(platform.config.shutdownGraceSeconds);
  });
  const config = withPort(platform.config, http.port);
  platform.config = config;
  platform.installation = installationControl(platform);
  const done = requestLogger(platform, metrics);
  const schema = (): Core['graphqlSchema'] => core.graphqlSchema;
  const graphql = graphqlFace(platform, schema, graphiqlPage, done);
  opened.splice(-1, 0, () => graphql.stop());
  const parts = restParts(platform, core, handlers, done);
  faces.rest = restHandler(parts);
  const [attachRun, refuseSubscriptions] = [runAttachments(platform, parts), webSocketRefusal(done)];
  faces.upgrade = (...request) => refuseSubscriptions(...request) || attachRun(...request);
  const pages = peoplePages(platform, schema);
  if (config.distributionUrl !== null && config.registryPort !== 0) {
    const { distributionRoutes } = load('./http/distribution') as typeof OfDistribution;
    const distribution = distributionRoutes(platform, config.distributionUrl);
    pages.use(distribution.router);
    opened.splice(-1, 0, () => distribution.close());
  }
  faces.express = graphql.gate(expressApp(platform, graphql.router, pages, readiness));
  // Not earlier: requests that come through the ingress wait until they can be answered.
  const socket = serviceSocket(config, 'api');
  if (socket === null) return config;
  makePassableDirectory(config.runtimeDir);
  await http.listenToIngress(socket, cluster.isWorker ? process.ppid : process.pid);
  return config;
}

function restParts(
  platform: Platform,
  core: Core,
  handlers: RestParts['handlers'],
  done: RestParts['done'],
): RestParts {
  const { config } = platform;
  // Generated at the first request: most runs never need it.
  const described = memoize(() => {
    const { table, schema, transitional } = core;
    return openapiDocument({ table, schema, transitional, baseUrl: config.baseUrl, version });
  });
  const openapi = memoize(() => JSON.stringify(described()));
  const stack = memoize(() => JSON.stringify(stackSchema(core, config.baseUrl)));
  const pages = consolePages(described);
  return {
    config,
    table: core.table,
    operations: core.operations,
    handlers,
    answers: idempotencyRecords,
    transitional: core.transitional,
    live: core.live,
    context: (request, requestId) => requestContext(platform, request, requestId),
    authenticate: (header, address) => authenticate(platform, header, address),
    document(path, request) {
      if (path === '/v2/openapi.json') return { type: 'application/json', body: openapi() };
      // JSON is YAML (YAML 1.2.2, section 1.3).
      if (path === '/v2/openapi.yaml') return { type: 'application/yaml', body: openapi() };
      if (path === STACK_SCHEMA_PATH) return { type: 'application/schema+json', body: stack() };
      return path.startsWith('/v2/docs') ? pages(path, String(request.headers['accept-encoding'] ?? '')) : null;
    },
    done,
  };
}

/** HTML pages: targets of links in mails, logins, and the authorisation server. */
function peoplePages(platform: Platform, schema: () => Core['graphqlSchema']): express.Router {
  const router = express.Router().use(accountPages(platform, schema)).use(loginRoutes(platform, schema));
  return router.use(oauthRoutes(platform, schema));
}

function expressApp(platform: Platform, graphql: express.Router, pages: express.Router, readiness: Readiness): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((_, response, next) => {
    response.set(NOSNIFF);
    next();
  });
  const pagesOfDashboard = dashboard(dashboardFolder(), () => [objectStorageOrigin(platform.config) ?? []].flat());
  app.use(pagesOfDashboard.files);
  app.get('/healthz', (_, response) => void response.json({ status: 'ok' }));
  app.get('/readyz', async (_, response) => {
    const reasons = await reasonsNotReady(platform, readiness);
    response.status(reasons.length ? 503 : 200).json({ status: reasons.length ? 'not_ready' : 'ready', reasons });
  });
  app.use('/graphql', graphql);
  app.use(pages);
  app.get(`${DOWNLOAD_PATH}:id`, backupDownload(platform, findDatabaseBackup));
  app.get(`${VOLUME_DOWNLOAD_PATH}:id`, backupDownload(platform, findVolumeBackup));
  app.get(`${EXPORT_PATH}:order`, activityDownload(platform));
  app.put(`${UPLOAD_PATH}:id`, sourceUploads(platform));
  app.put(`${IMPORT_UPLOAD_PATH}:id`, importUploads(platform));
  app.get(AUTHORITY_PATH, databaseAuthorityFile(platform));
  app.get(`${MAIL_LINK_PATH}*path`, mailLinks(platform));
  app.post(`${HOOK_PATH}:token`, gitHooks(platform));
  app.post(PROBE_CHECKS_PATH, probeChecks(platform));
  app.post(PROBE_RESULTS_PATH, probeResults(platform));
  app.all(OAUTH_CALLBACK_PATH, gitOauthCallback(platform));
  app.use(pagesOfDashboard.pages);
  return app.use(...lastHandlers(platform));
}
