// Looks at everything that the service needs, and changes nothing but a file in the backup store, which goes again.
import { accessSync, constants, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadConfig, type Config } from '../../core/config';
import { gibibytesText } from '../../core/sentence';
import type { HostFacts } from '../../core/catalog/host_facts';
import { own } from '../../core/outbound/client';
import type { WorkState } from '../../core/process/background';
import { BACKGROUND_PATH } from '../http/admin';
import { loadKeyRing } from '../../core/secrets';
import { removedSettings } from '../../core/settings/removed';
import { aptInstallCommand, missingPrograms } from '../../core/catalog/missing_programs';
import { openBackupStore } from '../../drivers/backup_store/open';
import { probeBackupStore } from '../../drivers/backup_store/probe';
import { openFileStore } from '../../drivers/file_store/open';
import { dnsQuestions } from '../../core/protocols/dns';
import { driverContext } from '../../core/driver';
import { setupCommand } from '../../core/catalog/setup_command';
import { hostFacts } from '../../drivers/host';
import { probeHost } from '../../drivers/runtime/host_probe';
import { FIRST_USER_ID } from '../../drivers/runtime/sandbox/user_ids';
import { missingDomain } from '../../core/catalog/missing_domain';
import { sharedSiteWarning } from '../platform/shared_site';
import { listenErrorReason } from '../http/listen';
import type { Command } from './command';
import { alarms } from './doctor_alarms';
import { installationBackup } from './doctor_backup';
import { deletedResources } from './doctor_bin';
import { certificates } from './doctor_certificates';
import { cluster } from './doctor_cluster';
import { database, operators } from './doctor_database';
import { hostUrl } from './doctor_host_url';
import { nameserver } from './doctor_nameserver';
import { projectNetworks } from './doctor_networks';
import { reports } from './doctor_reports';
import type { Finding } from './finding';
import { lastUpgrade } from './doctor_upgrade';

type Check = (config: Config) => Promise<Finding | Finding[]> | Finding | Finding[];

const DISK_FREE_MIN_BYTES = 1e9;
const NAME_ASKED = 'example.com';
const HEALTH_WITHIN_MS = 2_000;
const STORE_WITHIN_MS = 20_000;

export const commands: Command[] = [
  {
    name: 'doctor',
    summary: 'Check settings, data directory, secret key, database, host, backup store, DNS and ports.',
    async run() {
      const config = loadConfig(process.env);
      const rows: Finding[] = settingsFound(config);
      for (const [name, check] of Object.entries(checks)) rows.push(...(await guarded(name, check, config)));
      return {
        rows: rows as unknown as Record<string, unknown>[],
        ok: rows.every(({ status }) => status !== 'failed'),
      };
    },
  },
];

function settingsFound({ dataDir }: Config): Finding[] {
  const removed = removedSettings(process.env);
  if (!removed.length) return [{ check: 'settings', status: 'ok', detail: `data directory ${dataDir}` }];
  return removed.map((detail) => ({ check: 'settings', status: 'warning', detail }));
}

const checks: Record<string, Check> = {
  'data directory': dataDirectory,
  'secret key': secretKey,
  database,
  operators,
  host,
  bin: deletedResources,
  isolation,
  'networks of projects': projectNetworks,
  cluster,
  domains,
  'files of the host': hostUrl,
  'backup store': backupStore,
  'file store': fileStore,
  backup: installationBackup,
  'DNS resolver': resolver,
  'name server': nameserver,
  certificates,
  port: (config) => port('port', config.host, config.port),
  'admin port': (config) => port('admin port', config.adminHost, config.adminPort),
  'background work': background,
  alarms,
  processes: reports,
  upgrade: lastUpgrade,
};

/** What a check did not foresee is a finding too, not the end of the list. */
async function guarded(check: string, run: Check, config: Config): Promise<Finding[]> {
  try {
    return [await run(config)].flat();
  } catch (error) {
    return [{ check, status: 'failed', detail: String((error as Error).message).split('\n')[0] as string }];
  }
}

function dataDirectory({ dataDir }: Config): Finding {
  const check = 'data directory';
  if (!existsSync(dataDir))
    return { check, status: 'warning', detail: `${dataDir} does not exist yet; the first start creates it` };
  accessSync(dataDir, constants.W_OK | constants.X_OK);
  return { check, status: 'ok', detail: 'can be written' };
}

function domains(config: Config): Finding[] {
  const warning = missingDomain(config) ?? sharedSiteWarning(config);
  return warning ? [{ check: 'domains', status: 'warning', detail: warning }] : [];
}

function secretKey({ secretKey: setting, dataDir }: Config): Finding {
  const check = 'secret key';
  const file = path.join(dataDir, 'secret-key');
  if (setting === null && !existsSync(file))
    return { check, status: 'warning', detail: 'does not exist yet; the first start creates it' };
  if (setting === null && statSync(file).mode & 0o077)
    return {
      check,
      status: 'warning',
      detail: `other users can read ${file}; the next start restricts its permissions`,
    };
  const [current] = loadKeyRing({ setting, dataDir });
  return { check, status: 'ok', detail: `key ${current?.id} from ${setting === null ? file : 'PLATFORM_SECRET_KEY'}` };
}

async function host({ dataDir }: Config): Promise<Finding[]> {
  const facts = await hostFacts({ directory: existsSync(dataDir) ? dataDir : process.cwd() });
  const engines = (['postgresql', 'mariadb', 'redis', 'valkey'] as const).flatMap((engine) =>
    facts[engine].map(({ version }) => `${engine} ${version}`),
  );
  const programs = Object.entries(facts.programs).map(([name, program]) => `${name} ${program?.version}`);
  const room = facts.disk_free_bytes >= DISK_FREE_MIN_BYTES;
  return [
    {
      check: 'disk',
      status: room ? 'ok' : 'warning',
      detail: `${gibibytesText(facts.disk_free_bytes)} of ${gibibytesText(facts.disk_total_bytes)} free`,
    },
    {
      check: 'memory',
      status: 'ok',
      detail:
        `${gibibytesText(facts.memory_available_bytes)} of ${gibibytesText(facts.memory_total_bytes)} available, ` +
        `${facts.cpus} CPUs`,
    },
    { check: 'engines', status: engines.length ? 'ok' : 'warning', detail: engines.join(', ') || 'none found' },
    { check: 'programs', status: 'ok', detail: programs.join(', ') || 'none found' },
    ...missing(facts),
    {
      check: 'image builders',
      status: 'ok',
      detail: facts.oci_builders.join(', ') || 'none found: Dockerfiles cannot be built',
    },
  ];
}

const BOUNDS = {
  unit: 'unit (each unit has its own limit)',
  user: 'user (one limit for all units of a user)',
  monitor: 'monitor (no hard limit: a unit that is seen with too many processes is stopped)',
};

/** What keeps units apart here, found out by trial as the start does. */
async function isolation({ sandbox, tenantUidBase, volumeDriver }: Config): Promise<Finding> {
  const directory = mkdtempSync(path.join(tmpdir(), 'platform-doctor-'));
  try {
    const found = await probeHost({
      ...{ directory, sandbox, tenantUidBase: tenantUidBase ?? FIRST_USER_ID },
      disks: volumeDriver === 'directory' ? 'soft' : 'auto',
    });
    const limit = found.groups ? 'unit' : found.processLimit;
    const facts = [
      `sandbox ${found.bubblewrap ? 'bubblewrap' : 'none'}`,
      `system calls ${found.seccomp ? 'filtered' : 'not filtered'}`,
      `limits ${found.groups ? 'control groups' : 'by the monitor, once a second'}`,
      `users ${found.users}`,
      `disks of instances and databases ${found.hardDisks ? 'limited' : 'measured'}`,
      `process_limit ${BOUNDS[limit]}`,
    ];
    if (found.unsupportedReason) return { check: 'isolation', status: 'failed', detail: found.unsupportedReason };
    return { check: 'isolation', status: limit === 'monitor' ? 'warning' : 'ok', detail: facts.join(', ') };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** One line for each missing program, and one that installs all of them. */
function missing(facts: HostFacts): Finding[] {
  const programs = missingPrograms(facts, process.getuid?.() === 0);
  const command = aptInstallCommand(programs);
  const findings = programs.map(({ name, consequence }): Finding => ({
    check: 'missing program',
    status: 'warning',
    detail: `${name}: ${consequence}`,
  }));
  const detail = `${setupCommand()}, or ${command}`;
  return command ? [...findings, { check: 'install', status: 'warning', detail }] : [];
}

async function backupStore(config: Config): Promise<Finding> {
  const check = 'backup store';
  const store = openBackupStore(config);
  if (!store) return { check, status: 'ok', detail: 'none: backups of databases stay on this host' };
  await probeBackupStore(store, driverContext(STORE_WITHIN_MS));
  return { check, status: 'ok', detail: `${store.address} stores and returns files` };
}

async function fileStore(config: Config): Promise<Finding> {
  const check = 'file store';
  const store = openFileStore(config, () => Promise.reject(new Error('a probe reads no files of an installation')));
  if (!store) return { check, status: 'ok', detail: 'none: uploads and mail messages stay on this host' };
  await store.probe(driverContext(STORE_WITHIN_MS));
  return { check, status: 'ok', detail: `${store.address} stores and returns files` };
}

async function resolver({ dnsResolvers }: Config): Promise<Finding> {
  const check = 'DNS resolver';
  const servers = dnsResolvers.length ? dnsResolvers.join(', ') : 'of the system';
  try {
    await dnsQuestions({ resolvers: [...dnsResolvers] }).a(NAME_ASKED);
    return { check, status: 'ok', detail: `answers (${servers})` };
  } catch {
    return { check, status: 'warning', detail: `no answer (${servers}): custom domains cannot be verified` };
  }
}

/** A taken port is right when it is our own service that answers there. */
async function port(check: string, address: string, number: number): Promise<Finding> {
  if (number === 0) return { check, status: 'ok', detail: 'a free one at each start' };
  const problem = await tryPort(address, number);
  if (!problem) return { check, status: 'ok', detail: `${address}:${number} is free` };
  if (problem.code === 'EADDRINUSE' && (await isOurs(address, number)))
    return { check, status: 'ok', detail: `a running service answers at ${address}:${number}` };
  return { check, status: 'failed', detail: `${address}:${number}: ${listenErrorReason(problem)}` };
}

function tryPort(address: string, number: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen(number, address, () => server.close(() => resolve(null)));
  });
}

async function isOurs(address: string, number: number): Promise<boolean> {
  const name = address === '0.0.0.0' || address === '::' ? 'localhost' : address;
  const base = `http://${name.includes(':') ? `[${name}]` : name}:${number}`;
  const answers = await Promise.all(
    ['/healthz', '/metrics'].map((path) =>
      own(base + path, { within: { ms: HEALTH_WITHIN_MS, of: 'response' } }).then(
        (answer) => answer.text(),
        () => '',
      ),
    ),
  );
  return answers.some((text) => text.includes('"status":"ok"') || text.includes('platform_'));
}

/** A run may take some time, and a busy machine delays the next one. */
const BACKGROUND_LATE_MS = 60_000;

/** What the running service does again and again, and what of it fails. */
export async function background({ adminHost, adminPort }: Config): Promise<Finding[]> {
  const check = 'background work';
  const host = adminHost.includes(':') ? `[${adminHost}]` : adminHost;
  const url = `http://${host}:${adminPort}${BACKGROUND_PATH}`;
  const answer = await own(url, { within: { ms: HEALTH_WITHIN_MS, of: 'response' } }).catch(() => null);
  // Another program may have the port, which is a finding of its own.
  const works = answer?.ok ? ((await answer.json().catch(() => null)) as WorkState[] | null) : null;
  if (!Array.isArray(works)) return [{ check, status: 'ok', detail: 'no running service: nothing to look at' }];
  const now = Date.now();
  const problems = works.flatMap((work) => problemOf(work, now) ?? []);
  if (problems.length) return problems.map((detail) => ({ check, status: 'warning', detail }));
  return [{ check, status: 'ok', detail: `${works.length} repeated works run without an error` }];
}

function problemOf({ name, everyMs, lastRunAt, lastSuccessAt, lastError }: WorkState, now: number): string | null {
  const since = lastSuccessAt === null ? 'never succeeded' : `last succeeded ${timeOf(lastSuccessAt)}`;
  if (lastError !== null) return `${name} fails: ${lastError}; it has ${since}, and is tried every ${everyMs / 1000} s`;
  if (lastRunAt === null || now - lastRunAt <= 3 * everyMs + BACKGROUND_LATE_MS) return null;
  return `${name} is done every ${everyMs / 1000} s, but its last run began ${timeOf(lastRunAt)}`;
}

function timeOf(at: number): string {
  return `at ${new Date(at).toISOString()}`;
}
