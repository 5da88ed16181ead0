// Mail on this host: the servers that take it in, the loop that hands it on, and the one that takes bounces.
import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import type { Config } from '../../../core/config';
import { mailDirectory } from '../../../core/mail/mail_directory';
import { limits } from '../../../core/limits';
import { dnsQuestions } from '../../../core/protocols/dns';
import {
  openBounceServer,
  stsPolicies,
  directRoute,
  smarthostHop,
  type Route,
  openSubmission,
  type MailListener,
  openTransport,
} from '../../../engines/mail';
import { listen } from '../../platform/listener';
import type { Platform } from '../../platform/platform';
import { outboundOf } from '../../platform/outbound';
import { mailCertificate, watchMailCertificate, type MailTls } from './mail_certificate';
import { startMailLoop } from '../../../jobs/email/mail/mail_loop';
import { bounceRules } from '../../../jobs/email/mail/reports';
import { openAcceptances, submissionRules, type Acceptances } from '../../../jobs/email/mail/rules';
import { openMailStore, type MailStore } from '../../../jobs/email/mail/store';
import { startPlatformMail } from '../../../jobs/email/mail/platform_mail';
import { trackedMessage } from '../../../jobs/email/mail/tracking';
import type { Logger } from '../../../core/log/log';
import { repeatWork, type RepeatedWork } from '../../../core/process/background';
import type { ControlDatabase } from '../../../db/control_database';
import { filesWithoutMessage, pruneMessages, pruneSink } from '../../../models/email/mail/upkeep';

const MIB = 1024 * 1024;

interface Mail {
  close(): Promise<void>;
}

/** What takes mail in. */
export interface MailServers {
  /** Those that are bound. */
  ports: number[];
  store: MailStore;
  acceptances: Acceptances;
  close(): Promise<void>;
}

/**
 * The mail of the host: the loop that hands it on, and the servers where not every worker has them.
 * @returns null where SMTP_PORTS is 0
 */
export async function openMailAgent(platform: Platform, shared: MailServers | null): Promise<Mail | null> {
  const { config, database, databaseUrl, secrets, log } = platform;
  const servers = shared ?? (await openMailServers(platform));
  if (servers === null) return null;
  const { store, acceptances } = servers;
  const transport = openTransport(config.smtpHost);
  const loop = startMailLoop({
    ...{ config, database, secrets, store, transport, log, routeOf: routesOf(config) },
    tracked: trackedMessage({ baseUrl: () => platform.config.baseUrl, secrets, store }),
    listen: (handlers) => listen(databaseUrl, handlers, log),
  });
  const own = startPlatformMail({
    ...{ config, database, secrets, store, acceptances, log },
    listen: (handlers) => listen(databaseUrl, handlers, log),
  });
  return {
    async close() {
      if (!shared) await servers.close();
      await own.stop();
      await acceptances.idle();
      await loop.stop();
      transport.close();
    },
  };
}

/**
 * On a cluster with a file store every worker takes mail in: nothing of a message stays on its machine.
 * @returns null elsewhere: the host opens its own
 */
export async function openSharedMailServers(platform: Platform): Promise<MailServers | null> {
  return platform.config.workloads === 'kubernetes' && platform.fileStore !== null ? openMailServers(platform) : null;
}

/** @returns null where SMTP_PORTS is 0 */
async function openMailServers(platform: Platform): Promise<MailServers | null> {
  const { config, database, fileStore, log } = platform;
  if (!config.smtpPorts.length) return null;
  const store = openMailStore({ directory: mailDirectory(config), fileStore, log });
  const acceptances = openAcceptances(database);
  const tls = await mailCertificate(platform);
  const submission = await listenForMail(platform, { store, acceptances, tls });
  const bounces = await openBounces(platform, tls);
  const unwatch = watchMailCertificate(platform, [submission, ...(bounces ? [bounces] : [])]);
  const upkeep = startMailUpkeep({ config, database, store, log });
  log.info({ ports: submission.ports, mode: config.mailMode }, 'the mail server answers');
  return {
    ...{ ports: submission.ports, store, acceptances },
    async close() {
      await unwatch();
      await submission.close();
      await bounces?.close();
      await acceptances.idle();
      await upkeep.stop();
    },
  };
}

async function listenForMail(
  { config, database, log }: Platform,
  { store, acceptances, tls }: { store: MailStore; acceptances: Acceptances; tls: MailTls },
): Promise<MailListener> {
  const submission = await openSubmission({
    ...{ ports: config.smtpPorts, addresses: config.smtpListen, host: config.smtpHost, tls },
    ...{ bytesMax: config.mailSizeMb * MIB, recipientsMax: limits.mailRecipientsPerMessage },
    rules: submissionRules({ database, store, acceptances, log }),
    log: (message, error) => log.error({ err: error }, message),
  });
  for (const { port, error } of submission.failed)
    log.error({ err: error, port }, 'a port of SMTP_PORTS cannot be bound; it takes no mail');
  return submission;
}

async function openBounces({ config, database, secrets, log }: Platform, tls: MailTls): Promise<MailListener | null> {
  if (config.mxPort === 0) return null;
  return openBounceServer({
    ...{ port: config.mxPort, addresses: config.smtpListen, host: config.smtpHost, tls },
    rules: bounceRules({ config, database, secrets, log }),
    log: (message, error) => log.error({ err: error }, message),
  }).catch((error: unknown) => {
    log.error({ err: error, port: config.mxPort }, 'MX_PORT cannot be bound; bounces are not received');
    return null;
  });
}

/** Where mail goes: always to the smarthost, or to the exchanges of each destination. */
function routesOf(config: Config): (destination: string) => Promise<Route> {
  const ca = config.outboundCaFile ? readFileSync(config.outboundCaFile, 'utf8') : null;
  const roots = ca === null ? null : `${rootCertificates.join('\n')}\n${ca}`;
  if (config.mailMode === 'smarthost') {
    const hop = smarthostHop(config.smtpUrl ?? '', roots);
    return () => Promise.resolve({ kind: 'hops', hops: [hop] });
  }
  const dns = dnsQuestions({ resolvers: [...config.dnsResolvers] });
  const outbound = outboundOf(config);
  const policyOf = stsPolicies({ dns, outbound });
  return (destination) =>
    directRoute(destination, {
      dns,
      isAllowed: (address) => outbound.isAllowed(address),
      policyOf,
      port: config.mailDirectPort,
      ca: roots,
    });
}

// Clears away what mail leaves behind: messages of long ago, what the sink does not keep, and files of messages that
// were never taken over, because the process died before their rows were there.

const EVERY_MS = 10 * 60_000;
const FILES_AT_ONCE = 1000;
/** That the sink keeps; older ones are deleted. */
const SINK_MESSAGES_MAX = 1_000;

interface Parts {
  config: Config;
  database: ControlDatabase;
  store: MailStore;
  log: Logger;
}

/** Begins at once. */
function startMailUpkeep(parts: Parts): Pick<RepeatedWork, 'stop'> {
  const failure = 'the upkeep of mail has failed';
  const upkeep = repeatWork({ name: 'mail_upkeep', everyMs: EVERY_MS, log: parts.log, failure }, () => maintain(parts));
  upkeep.runNow();
  return upkeep;
}

async function maintain({ database, store }: Parts): Promise<void> {
  await store.remove(await pruneMessages(database));
  await store.remove(await pruneSink(database, SINK_MESSAGES_MAX));
  await store.storeAll((files) => filesWithoutMessage(database, files));
  const old = await store.old();
  for (let at = 0; at < old.length; at += FILES_AT_ONCE)
    await store.remove(await filesWithoutMessage(database, old.slice(at, at + FILES_AT_ONCE)));
}
