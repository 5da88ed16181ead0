// Puts together what the alarms of the installation are about: this machine, its servers, its rows.
import { readFile } from 'node:fs/promises';
import type { Config } from '../../core/config';
import { driverContext } from '../../core/driver';
import { own, trusted } from '../../core/outbound/client';
import { backgroundWork, repeatWork } from '../../core/process/background';
import { bareHost } from '../../core/protocols/addresses';
import { dnsQuestions } from '../../core/protocols/dns';
import { hostMemory } from '../../drivers/host';
import type { HostDrivers } from '../../jobs/job';
import { clockAnswerOf, clockReadings, type ClockAnswer } from '../../jobs/observers/alarms/clock';
import { diskReadings } from '../../jobs/observers/alarms/disks';
import { engineReadings, probePort, type Engine } from '../../jobs/observers/alarms/engines';
import { ALARMS_WORK, startAlarms, type AlarmSource } from '../../jobs/observers/alarms/evaluation';
import {
  backgroundReadings,
  backupReadings,
  certificateReadings,
  memoryReadings,
  queueReadings,
  releaseReadings,
} from '../../jobs/observers/alarms/rows';
import { certificateFigures } from '../../models/domains/certificate/expiry_warnings';
import type { Reading } from '../../models/observers/installation_alarm/alarm_rules';
import { notedRelease } from '../../models/identity/installation';
import { checkFigures } from '../../models/observers/observer/claim';
import { notificationLagSeconds } from '../../models/observers/notification/delivery';
import { promisedCapacity } from '../../models/reference/capacity';
import { promisedMemory } from '../../models/reference/promised_memory';
import { version } from '../../package.json';
import { readBackupJournal } from '../platform/backup_journal';
import type { Platform } from '../platform/platform';
import { BACKUP_WORK } from './installation_backup';

const WITHIN_MS = 5_000;
/** The time of servers elsewhere is read less often than the rest. */
const CLOCK_EVERY = 20;
const HEARTBEAT_MS = 60_000;
const WORK = { except: [ALARMS_WORK], long: [BACKUP_WORK] };

type Served = Pick<HostDrivers, 'ingress' | 'nameserver'>;

/** @returns how to end it */
export function openInstallationAlarms(platform: Platform, served: Served): () => Promise<void> {
  const { database, secrets, log, config } = platform;
  let evaluatedAt: number | null = null;
  const alarms = startAlarms({
    ...{ database, secrets, log, config, everySeconds: config.alarmSeconds },
    sources: sourcesOf(platform, served),
    evaluated: () => (evaluatedAt = Date.now()),
  });
  const { heartbeatUrl } = config;
  if (heartbeatUrl === null) return () => alarms.stop();
  const failure = 'HEARTBEAT_URL could not be reached';
  const heartbeat = repeatWork({ name: 'heartbeat', everyMs: HEARTBEAT_MS, log, failure }, async () => {
    // No request is the message.
    if (evaluatedAt === null || Date.now() - evaluatedAt > 2 * HEARTBEAT_MS) return;
    const answer = await trusted(heartbeatUrl, { within: { ms: WITHIN_MS, of: 'head' }, redirects: 'followed' });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`HEARTBEAT_URL answered with the status ${answer.status}`);
  });
  return async () => {
    await heartbeat.stop();
    await alarms.stop();
  };
}

function sourcesOf(platform: Platform, served: Served): AlarmSource[] {
  const { config, database } = platform;
  const { dataDir, runtimeDir, volumeDir, databaseDir, s3Dir, registryDir, cdnDir } = config;
  const directories = [dataDir, runtimeDir, volumeDir, databaseDir, s3Dir, registryDir, cdnDir];
  const since = Date.now();
  return [
    { names: ['disk', 'inodes'], read: () => diskReadings(directories) },
    { names: ['engine'], read: () => engineReadings(enginesOf(platform, served)) },
    { names: ['clock'], read: clockOf(config) },
    { names: ['certificate'], read: async () => certificateReadings(await certificateFigures(database)) },
    { names: ['release'], read: async () => releaseReadings(await notedRelease(database), version) },
    { names: ['memory'], read: () => readMemory(platform) },
    { names: ['queue'], read: () => readQueues(platform) },
    { names: ['background'], read: () => backgroundReadings(backgroundWork(), WORK, Date.now()) },
    {
      names: ['backup', 'backup_proof'],
      read: async () =>
        config.resticRepository === null
          ? []
          : backupReadings(await readBackupJournal(config), config.backupEveryHours, since, Date.now()),
    },
  ];
}

async function readMemory({ config, database }: Platform): Promise<Reading[]> {
  const databases = await promisedCapacity(database);
  const applications = config.workloads === 'kubernetes' ? 0 : await promisedMemory(database);
  return memoryReadings(databases.memory_mb + applications, hostMemory().memory_total_bytes);
}

async function readQueues({ database, workerLag }: Platform): Promise<Reading[]> {
  const [work, checks, messages] = await Promise.all([
    workerLag(),
    checkFigures(database),
    notificationLagSeconds(database),
  ]);
  return queueReadings([
    { name: 'work', lagSeconds: work },
    { name: 'checks', lagSeconds: checks.lag_seconds },
    { name: 'messages', lagSeconds: messages },
  ]);
}

function enginesOf({ config }: Platform, { ingress, nameserver }: Served): Engine[] {
  const engines: Engine[] = [];
  const { http } = ingress.ports;
  const url = `http://${urlHost(loopbackOf(config.ingressListen))}:${http}/`;
  engines.push({
    ...{ name: 'ingress', serves: 'Applications cannot be reached.' },
    // Whatever it answers, it answers.
    probe: (signal) =>
      own(url, { within: { ms: WITHIN_MS, of: 'head' }, signal, redirects: 'returned' }).then((answer) =>
        answer.body?.cancel(),
      ),
  });
  if (config.dnsPort !== 0 || config.powerdnsUrl !== null)
    engines.push({
      ...{ name: 'name server', serves: 'DNS zones are not answered.' },
      probe: () => probeNameserver(config, nameserver),
    });
  const listeners: [name: string, serves: string, host: string | undefined, port: number][] = [
    ['object storage', 'Buckets cannot be reached.', config.s3Listen[0], config.s3Port],
    ['registry', 'Images cannot be pushed or pulled.', config.registryListen, config.registryPort],
    ['mail server', 'Relay zones take no mail.', config.smtpListen[0], config.smtpPorts[0]?.port ?? 0],
  ];
  for (const [name, serves, host, port] of listeners)
    if (port !== 0 && host !== undefined) engines.push({ name, serves, probe: probePort(loopbackOf(host), port) });
  return engines;
}

async function probeNameserver({ dnsListen, dnsDomain }: Config, driver: Served['nameserver']): Promise<void> {
  if (driver === null) throw new Error('it could not be opened');
  const { healthy, reason, facts } = await driver.fingerprint(driverContext(WITHIN_MS));
  if (!healthy) throw new Error(reason ?? 'it is not healthy');
  const [address] = dnsListen;
  if (typeof facts.port !== 'number' || address === undefined) return;
  const host = loopbackOf(address);
  await dnsQuestions({ resolvers: [`${urlHost(host)}:${facts.port}`] }).ns(dnsDomain);
}

/** Where this machine reaches a server that listens on the address. */
function loopbackOf(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1';
  return address === '::' ? '::1' : bareHost(address);
}

const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** Asks the servers that the installation knows anyway. */
function clockOf(config: Config): AlarmSource['read'] {
  const { acmeDirectory, acmeCaFile, releasesUrl } = config;
  const servers = [acmeDirectory, releasesUrl].filter((url) => url !== null);
  let turn = 0;
  let last: ClockAnswer[] = [];
  return async () => {
    if (turn++ % CLOCK_EVERY === 0)
      last = (await Promise.all(servers.map((url) => readClockOf(url, acmeCaFile)))).filter(
        (answer) => answer !== null,
      );
    return clockReadings(last);
  };
}

async function readClockOf(url: string, caFile: string | null): Promise<ClockAnswer | null> {
  try {
    const ca = caFile === null ? null : await readFile(caFile, 'utf8');
    const sentAt = Date.now();
    const within = { ms: WITHIN_MS, of: 'head' } as const;
    const answer = await trusted(url, { method: 'HEAD', within, redirects: 'returned', ca });
    return clockAnswerOf(new URL(url).host, answer.headers, sentAt, Date.now());
  } catch {
    return null;
  }
}
