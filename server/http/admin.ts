// Metrics for Prometheus, on a separate port that is reachable only from this machine.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';
import { version } from '../../package.json';
import type { CheckCounts } from '../../jobs/observers/check_loop';
import type { proofFigures } from '../../models/databases/database_proof';
import type { certificateFigures } from '../../models/domains/certificate/expiry_warnings';
import type { Report } from '../../models/base/installation_report';
import type { CheckFigures } from '../../models/observers/observer/claim';
import type { ProcessReport } from '../../core/catalog/installation_reports';
import { limits } from '../../core/limits';
import { backgroundWork, type WorkState } from '../../core/process/background';
import { StartupError } from '../../core/startup_error';
import type { BackupJournal } from '../platform/backup_journal';
import { isAdminHost } from './admin_host';
import { listenErrorReason } from './listen';
import type { AdminPages } from './mail_pages';

export interface Metrics {
  registry: Registry;
  /** One finished request: operation id or null, status, seconds. */
  observe(operation: string | null, status: number, seconds: number): void;
}

export function openMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'platform_build_info',
    help: 'The version of the platform',
    labelNames: ['version'],
    registers: [registry],
    aggregator: 'first',
  }).set({ version }, 1);
  const requests = new Counter({
    name: 'platform_requests_total',
    help: 'Finished requests',
    labelNames: ['operation', 'status'],
    registers: [registry],
  });
  const seconds = new Histogram({
    name: 'platform_request_seconds',
    help: 'Time to answer',
    labelNames: ['operation'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  return {
    registry,
    observe(operation, status, time) {
      const name = operation ?? 'none';
      requests.inc({ operation: name, status: String(status) });
      seconds.observe({ operation: name }, time);
    },
  };
}

/** Adds metrics of the installation, which only one process exposes. */
export function addWorkerLag({ registry }: Metrics, workerLag: () => Promise<number>): void {
  new Gauge({
    name: 'platform_worker_lag_seconds',
    help: 'Age of the oldest due work that no worker has claimed',
    registers: [registry],
    async collect() {
      this.set(await workerLag().catch(() => NaN));
    },
  });
}

/** Adds how the checks of observers and their messages fare, the same for all processes. */
export function addCheckFigures({ registry }: Metrics, figures: () => Promise<CheckFigures>): void {
  const add = (name: string, help: string, read: (found: CheckFigures) => number): void =>
    void new Gauge({
      ...{ name, help, registers: [registry] },
      async collect() {
        this.set(await figures().then(read, () => NaN));
      },
    });
  add('platform_check_lag_seconds', 'Delay of the most overdue check of an observer', ({ lag_seconds }) => lag_seconds);
  add(
    'platform_check_regions_suspended',
    'Regions whose failures are not counted, because their own network seems to be down',
    ({ suspended }) => suspended,
  );
  add(
    'platform_check_regions_lost',
    'Regions that do not count, because none of their probes sends results',
    ({ lost }) => lost,
  );
  add(
    'platform_notifications_pending',
    'Messages of notifiers that are waiting or being sent',
    ({ pending }) => pending,
  );
}

/** Adds how long certificates of the platform's own names are valid, and how many of others there are. */
export function addCertificateFigures(
  { registry }: Metrics,
  figures: () => ReturnType<typeof certificateFigures>,
): void {
  const read = (): ReturnType<typeof certificateFigures> => figures().catch(() => ({ own: [], counts: [] }));
  new Gauge({
    name: 'platform_certificates',
    help: 'Certificates by what they are for and by their state',
    labelNames: ['kind', 'state'],
    registers: [registry],
    async collect() {
      const { counts } = await read();
      this.reset();
      for (const { kind, state, count } of counts) this.set({ kind, state }, count);
    },
  });
  new Gauge({
    name: 'platform_certificate_expiry_seconds',
    help: 'Time until the certificate of a host name of the platform ends',
    labelNames: ['name'],
    registers: [registry],
    async collect() {
      const { own } = await read();
      this.reset();
      for (const { id, seconds } of own) if (seconds !== null) this.set({ name: id }, seconds);
    },
  });
}

/** Adds how many databases have a newest backup that is proven, or not. */
export function addProofFigures({ registry }: Metrics, figures: () => ReturnType<typeof proofFigures>): void {
  new Gauge({
    name: 'platform_databases_by_proof',
    help: 'Databases by the proof of their newest backup',
    labelNames: ['proof'],
    registers: [registry],
    async collect() {
      const found = await figures().catch(() => []);
      this.reset();
      for (const { proof, count } of found) this.set({ proof }, count);
    },
  });
}

/** Adds what the checks of this process have come to. */
export function addCheckCounts({ registry }: Metrics, counts: () => Omit<CheckCounts, 'lag_ms'>): void {
  new Counter({
    name: 'platform_checks_total',
    help: 'Checks of observers from this process; void: not counted, because this process or its network was at fault',
    labelNames: ['result'],
    registers: [registry],
    collect() {
      const { pass, fail, void_overloaded, void_network } = counts();
      this.reset();
      for (const [result, count] of Object.entries({ pass, fail, void_overloaded, void_network }))
        this.inc({ result }, count);
    },
  });
}

/** Adds whether DNS zones are answered. */
export function addNameserver({ registry }: Metrics, isHealthy: () => Promise<boolean> | null): void {
  new Gauge({
    name: 'platform_nameserver_up',
    help: '1: the name server listens, or PowerDNS answers; 0: DNS zones are not served or not changed',
    registers: [registry],
    async collect() {
      const up = await isHealthy();
      this.set(up ? 1 : 0);
    },
  });
}

/** Adds when the installation was last backed up, and the backup proven. */
export function addBackupFigures({ registry }: Metrics, journal: () => Promise<BackupJournal | null>): void {
  const add = (name: string, help: string, read: (found: BackupJournal) => number): void =>
    void new Gauge({
      ...{ name: `platform_backup_${name}`, help, registers: [registry] },
      async collect() {
        const found = await journal();
        this.set(found ? read(found) : NaN);
      },
    });
  const seconds = (at: string | null | undefined): number => (at ? Date.parse(at) / 1000 : NaN);
  add('last_timestamp_seconds', 'When the last whole backup of the installation began', (found) =>
    seconds(found.last_whole_at),
  );
  add('failing', '1 where the last attempt to back up the installation failed', ({ error }) => Number(error !== null));
  add('proof_timestamp_seconds', 'When a backup was last restored aside and compared', ({ proof }) =>
    seconds(proof?.at),
  );
  add('proof_failing', '1 where the last backup was not usable', ({ proof }) => Number(proof?.error != null));
}

/** Adds which network applications and databases have. */
export function addNetworks({ registry }: Metrics, facts: () => Promise<Record<string, unknown>>): void {
  new Gauge({
    name: 'platform_networks',
    help: 'Always 1. network: shared (all on that of the host), root or user (each project has its own, made by it)',
    labelNames: ['network', 'way_out'],
    registers: [registry],
    async collect() {
      this.reset();
      const { network, way_out } = await facts();
      if (network) this.set({ network: String(network), way_out: String(way_out) }, 1);
    },
  });
}

/** Adds how many processes serve the API, where they are not this one. */
export function addWebProcesses({ registry }: Metrics, serving: () => number): void {
  new Gauge({
    name: 'platform_web_processes',
    help: 'Processes that serve the API',
    registers: [registry],
    collect() {
      this.set(serving());
    },
  });
}

/** What this process does again and again, with its last errors: for `platform doctor`. */
export const BACKGROUND_PATH = '/background';

export const respondWithBackground: AdminRoute = async (_, response) => {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(backgroundWork()));
};

/** The same as metrics. */
export function addBackgroundWork({ registry }: Metrics): void {
  const add = (name: string, help: string, read: (work: WorkState) => number | null): void =>
    void new Gauge({
      ...{ name: `platform_background_${name}`, help, labelNames: ['work'], registers: [registry] },
      collect() {
        this.reset();
        for (const work of backgroundWork()) this.set({ work: work.name }, read(work) ?? NaN);
      },
    });
  const seconds = (ms: number | null): number | null => ms && ms / 1000;
  add('period_seconds', 'Time between two runs of a repeated work', ({ everyMs }) => everyMs / 1000);
  add('last_run_timestamp_seconds', 'When the last run of a repeated work began', (work) => seconds(work.lastRunAt));
  add('last_success_timestamp_seconds', 'When the last run of a repeated work without an error ended', (work) =>
    seconds(work.lastSuccessAt),
  );
  add('failing', '1 where the last run of a repeated work has failed', (work) => Number(work.lastError !== null));
}

/** Adds how the other processes of the installation fare, which have no admin port. */
export function addProcessReports({ registry }: Metrics, reports: () => Promise<Report<ProcessReport>[]>): void {
  const add = (name: string, help: string, read: (report: Report<ProcessReport>) => number): void =>
    void new Gauge({
      ...{ name: `platform_process_${name}`, help, labelNames: ['machine', 'role', 'pid'], registers: [registry] },
      async collect() {
        const found = await reports().catch(() => []);
        this.reset();
        for (const report of found)
          this.set({ machine: report.machine, role: report.facts.role, pid: report.facts.pid }, read(report));
      },
    });
  add(
    'report_age_seconds',
    'Time since a process last reported, which it does twice a minute',
    (report) => report.age_seconds,
  );
  add(
    'failing_work',
    'Repeated works of a process whose last run has failed',
    ({ facts }) => facts.work.filter(({ lastError }) => lastError !== null).length,
  );
}

/** What /metrics answers with. */
type Exposition = () => Pick<Registry, 'metrics' | 'contentType'> | Promise<Pick<Registry, 'metrics' | 'contentType'>>;

/** Answers a request on the admin port by itself, errors included. */
export type AdminRoute = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

const WRONG_HOST = 'This port answers to addresses, local names and names of the domain of BASE_URL.\n';

/** Serves /metrics, and other paths that are given. @throws StartupError for a taken port */
export async function listenAdmin(
  config: { adminHost: string; adminPort: number; baseUrl: string },
  exposition: Exposition,
  routes: Record<string, AdminRoute> = {},
  pages: AdminPages = () => Promise.resolve(false),
): Promise<{ port: number; close(): Promise<void> }> {
  const all: Record<string, AdminRoute> = { ...routes, '/metrics': (_, response) => answer(response, exposition) };
  const server = createServer({ headersTimeout: limits.headersTimeoutMs }, (request, response) => {
    if (!isAdminHost(request.headers.host, config.baseUrl)) return void response.writeHead(421).end(WRONG_HOST);
    const path = request.url ?? '';
    const route = Object.hasOwn(all, path) ? all[path] : undefined;
    const served = route ? route(request, response) : respondWithPage(pages, request, response);
    served.catch(() => void (response.headersSent ? response.destroy() : response.writeHead(500).end()));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new StartupError(
          `can't listen on ${config.adminHost}:${config.adminPort} (ADMIN_PORT): ${listenErrorReason(error)}`,
        ),
      ),
    );
    server.listen(config.adminPort, config.adminHost, resolve);
  });
  const { port } = server.address() as { port: number };
  return { port, close: () => new Promise((resolve) => (server.close(() => resolve()), server.closeAllConnections())) };
}

async function answer(response: ServerResponse, exposition: Exposition): Promise<void> {
  const registry = await exposition();
  const text = await registry.metrics();
  response.writeHead(200, { 'Content-Type': registry.contentType }).end(text);
}

async function respondWithPage(pages: AdminPages, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (!(await pages(request, response))) response.writeHead(404).end();
}
