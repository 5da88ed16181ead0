// The name server that this host answers with, embedded or PowerDNS, and its counters as metrics.
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Config } from '../../core/config';
import { dnsPortsOf } from '../../core/protocols/dns_ports';
import type { Logger } from '../../core/log/log';
import { StartupError } from '../../core/startup_error';
import { repeatWork, type RepeatedWork } from '../../core/process/background';
import type { SecretBox } from '../../core/secrets';
import type { ControlDatabase } from '../../db/control_database';
import { dnsQuestions } from '../../core/protocols/dns';
import { driverContext } from '../../core/driver';
import {
  type NameserverDriver,
  type ZoneRecord,
  type ZoneSpec,
  openEmbeddedNameserver,
  type EmbeddedNameserver,
} from '../../engines/dns';
import { openPowerdns } from '../../drivers/powerdns/driver';
import { addMetricPoints, type MetricPointInput } from '../../models/applications/metric_point';
import { makeZonesDue, zoneProjects } from '../../models/dns/dns_zone/job_queries';
import { serveDnsChallenges } from './dns_challenges';

const COUNT_EVERY_MS = 15_000;
const ENSURE_OWN_EVERY_MS = 60_000;
const COUNT_WITHIN_MS = 10_000;
const LIST_WITHIN_MS = 10_000;
const MISSING_RETRY_MS = 5_000;
const COOKIE_SECRET_BYTES = 16;

interface Nameserver {
  driver: NameserverDriver;
  close(): Promise<void>;
}

interface Parts {
  config: Config;
  secrets: SecretBox;
  database: ControlDatabase;
  log: Logger;
}

/** @returns null where DNS_PORT is 0, or where the copies of the zones cannot be read: then the log says why */
export async function openNameserver(parts: Parts): Promise<Nameserver | null> {
  const { config, database, log } = parts;
  if (config.powerdnsUrl !== null) return openExternal(config.powerdnsUrl, parts);
  if (config.dnsPort === 0) return null;
  try {
    const server = await openEmbeddedNameserver(optionsOf(parts, 'dns'));
    const counting = startCounting(server, database, log);
    const missing = startServingMissing(server, database, log);
    const challenges = serveDnsChallenges(server, parts, 'marks');
    return {
      driver: server,
      async close() {
        await challenges.stop();
        await missing.stop();
        await counting.finish();
        await server.close();
      },
    };
  } catch (error) {
    log.error({ err: error }, 'the name server cannot be opened; DNS zones are not served');
    return null;
  }
}

/**
 * Zones without a readable copy are not answered: the directory is new, damaged, or needs a key that is not there.
 * Their job is woken once, when the database answers.
 */
function startServingMissing(server: EmbeddedNameserver, database: ControlDatabase, log: Logger): RepeatedWork {
  const failure = 'DNS zones without a copy cannot be looked for; it is tried again';
  const work = repeatWork({ name: 'dns_zones_without_copy', everyMs: MISSING_RETRY_MS, log, failure }, async () => {
    const served: string[] = [];
    for await (const { owner_id } of server.list(driverContext(LIST_WITHIN_MS))) served.push(owner_id);
    await makeZonesDue(database, served);
    void work.stop();
  });
  work.runNow();
  return work;
}

/**
 * A name server beside that of the jobs, with the copies of zones that it had: it answers once it is told to listen.
 * @throws StartupError where there is nothing that it could answer
 */
export async function openFurtherNameserver(parts: Omit<Parts, 'database'>): Promise<EmbeddedNameserver> {
  const { powerdnsUrl, dnsPort } = parts.config;
  if (powerdnsUrl !== null)
    throw new StartupError('npm run dns needs the embedded name server: with POWERDNS_URL, PowerDNS serves the zones.');
  if (dnsPort === 0) throw new StartupError('npm run dns needs a port: DNS_PORT is 0.');
  const options = optionsOf(parts, 'dns-further');
  return openEmbeddedNameserver({ ...options, notifying: 'on_request', listenFrom: 'on_request' });
}

/** Stores its counters, and serves challenges of certificates. Stops with the returned function. */
export function attendNameserver(server: EmbeddedNameserver, parts: Parts): () => Promise<void> {
  const counting = startCounting(server, parts.database, parts.log);
  const challenges = serveDnsChallenges(server, parts, 'follows');
  return async () => {
    await challenges.stop();
    await counting.finish();
  };
}

type EmbeddedOptions = Parameters<typeof openEmbeddedNameserver>[0];

/** @param folder of the data directory, for the copies of the zones */
function optionsOf({ config, secrets, log }: Omit<Parts, 'database'>, folder: string): EmbeddedOptions {
  const { dnsPort, dnsListen, dnsResolvers, dnsResponsesPerSecond } = config;
  const ports = dnsPortsOf(dnsPort);
  const ended = (reason: string): void => log.error({ reason }, 'the process of the name server ended');
  return {
    directory: join(config.dataDir, folder),
    addresses: [...dnsListen],
    ports,
    sealer: {
      prefix: secrets.prefix,
      seal: (text, id) => secrets.seal(text, `dns copy:${id}`),
      open: (sealed, id) => secrets.open(sealed, `dns copy:${id}`),
    },
    questions: dnsQuestions({ resolvers: [...dnsResolvers] }),
    responsesPerSecond: dnsResponsesPerSecond,
    own: [ownZone(config)],
    secondaries: config.dnsSecondaries.map(secondaryOf),
    transferKey: keyOf(config.dnsTransferKey),
    cookieSecret: secrets.subKey('dns cookies').export().subarray(0, COOKIE_SECRET_BYTES),
    listening: {
      failed: (error) =>
        log.error({ err: error, ports }, 'the name server cannot listen; until it can, DNS zones are not answered'),
      bound: (port) => log.info({ port, addresses: dnsListen }, 'the name server answers'),
    },
    ...(config.dnsProcess === 'separate' && { process: { resolvers: [...dnsResolvers], ended } }),
  };
}

/** `192.0.2.1`, `192.0.2.1:5353`, `[2001:db8::1]:5353`. */
function secondaryOf(text: string): { address: string; port: number } {
  const [, address, port] = /^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(isIP(text) === 6 ? `[${text}]` : text) ?? [];
  return { address: address ?? text, port: Number(port ?? 53) };
}

function keyOf(text: string | null): { name: string; secret: Buffer } | null {
  const [name, secret] = text?.split(':') ?? [];
  return name && secret ? { name: name.toLowerCase(), secret: Buffer.from(secret, 'base64') } : null;
}

/** PowerDNS may be away: then its zones wait, and the log says so. */
function openExternal(url: string, { config, database, log }: Parts): Nameserver {
  const driver = openPowerdns({ url, key: config.powerdnsApiKey ?? '' });
  log.info({ url }, 'PowerDNS answers for DNS zones');
  const own = { id: 'own', spec: ownZone(config) };
  const failure = 'PowerDNS does not take the zone of the name servers';
  const ensuring = repeatWork({ name: 'dns_own_zone', everyMs: ENSURE_OWN_EVERY_MS, log, failure }, () =>
    driver.ensure(own, { state: 'absent' }, driverContext(COUNT_WITHIN_MS)),
  );
  ensuring.runNow();
  const counting = startCounting(driver, database, log);
  const challenges = serveDnsChallenges(driver, { config, database, log }, 'marks');
  return {
    driver,
    async close() {
      await ensuring.stop();
      await challenges.stop();
      await counting.finish();
    },
  };
}

/** The zone of the name servers themselves: every name below it has their addresses. */
function ownZone({ dnsDomain, dnsIps }: Config): ZoneSpec {
  const records = dnsIps.flatMap((value): ZoneRecord[] => {
    const type = value.includes(':') ? 'AAAA' : 'A';
    return ['@', '*'].map((name) => ({ name, type, value, ttl: null }));
  });
  return {
    name: dnsDomain,
    serial: 1,
    default_ttl: 3600,
    soa: { email: `hostmaster@${dnsDomain}`, refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 300 },
    name_servers: [`ns1.${dnsDomain}`, `ns2.${dnsDomain}`],
    records,
    keys: [],
  };
}

const METRICS = {
  queries: 'queries',
  responses_noerror: 'noerror',
  responses_nxdomain: 'nxdomain',
  responses_servfail: 'servfail',
} as const;

function startCounting(driver: NameserverDriver, database: ControlDatabase, log: Logger): RepeatedWork {
  const failure = 'counters of the name server could not be stored';
  return repeatWork({ name: 'dns_counters', everyMs: COUNT_EVERY_MS, log, failure }, () =>
    storeCounters(driver, database),
  );
}

async function storeCounters(driver: NameserverDriver, database: ControlDatabase): Promise<void> {
  const counters = await driver.takeCounters(driverContext(COUNT_WITHIN_MS));
  const projects = await zoneProjects(database, [...counters.keys()]);
  const at = new Date();
  at.setUTCSeconds(0, 0);
  const points: MetricPointInput[] = [];
  for (const [zoneId, types] of counters) {
    const project_id = projects.get(zoneId);
    if (project_id === undefined) continue;
    for (const [part_id, counted] of types) {
      for (const [metric, counter] of Object.entries(METRICS)) {
        const total = counted[counter];
        if (total) points.push({ at, project_id, resource_id: zoneId, part_id, metric, samples: 0, total });
      }
    }
  }
  if (points.length) await addMetricPoints(database, points);
}
