// Mail on this host: the servers that take it in, the loop that hands it on, and the one that takes bounces.
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import { rootCertificates } from 'node:tls';
import type { Config } from '../core/config';
import { mailDirectory } from '../core/mail_directory';
import { isPublicAddress } from '../core/addresses';
import { limits } from '../core/limits';
import { StartupError } from '../core/startup_error';
import { issueServerCertificate, newAuthority } from '../drivers/certificates/authority';
import { dnsQuestions } from '../drivers/dns';
import { openBounceServer } from '../drivers/mail/bounce_server';
import { stsPolicies } from '../drivers/mail/mta_sts';
import { directRoute, smarthostHop, type Route } from '../drivers/mail/route';
import { openSubmission, type MailListener } from '../drivers/mail/submission';
import { openTransport } from '../drivers/mail/transport';
import { authorityFor } from '../models/authority';
import { listen } from '../platform/listener';
import type { Platform } from '../platform/platform';
import { outboundOf } from '../platform/probes';
import { startMailLoop } from './mail_loop';
import { bounceRules } from './mail_reports';
import { openAcceptances, submissionRules, type Acceptances } from './mail_rules';
import { openMailStore, type MailStore } from './mail_store';
import { startMailUpkeep } from './mail_upkeep';
import { startPlatformMail } from './platform_mail';
import { trackedMessage } from './mail_tracking';

const MIB = 1024 * 1024;
const CHECK_EVERY_MS = 60_000;

export interface Mail {
  /** Those that are bound. */
  ports: number[];
  close(): Promise<void>;
}

/** @returns null where SMTP_PORTS is 0 */
export async function openMailAgent(platform: Platform): Promise<Mail | null> {
  const { config, database, databaseUrl, secrets, log } = platform;
  if (!config.smtpPorts.length) return null;
  const store = openMailStore(mailDirectory(config));
  const acceptances = openAcceptances(database, config);
  const tls = await certificateOf(platform);
  const submission = await listenForMail(platform, { store, acceptances, tls });
  const bounces = await openBounces(platform, tls);
  const watch = watchCertificate(config, [submission, ...(bounces ? [bounces] : [])]);
  const transport = openTransport(config.smtpHost);
  const loop = startMailLoop({
    ...{ config, database, secrets, store, transport, log, routeOf: routesOf(config) },
    tracked: trackedMessage({ baseUrl: () => platform.config.baseUrl, secrets, store }),
    listen: (handlers) => listen(databaseUrl, handlers, log),
  });
  const upkeep = startMailUpkeep({ config, database, store, log });
  const own = startPlatformMail({
    ...{ config, database, secrets, store, acceptances, log },
    listen: (handlers) => listen(databaseUrl, handlers, log),
  });
  log.info({ ports: submission.ports, mode: config.mailMode }, 'the mail server answers');
  return {
    ports: submission.ports,
    async close() {
      watch();
      await submission.close();
      await bounces?.close();
      await own.stop();
      await acceptances.idle();
      await upkeep.stop();
      await loop.stop();
      transport.close();
    },
  };
}

async function listenForMail(
  { config, database, log }: Platform,
  { store, acceptances, tls }: { store: MailStore; acceptances: Acceptances; tls: { key: string; cert: string } },
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

async function openBounces(
  { config, database, secrets, log }: Platform,
  tls: { key: string; cert: string },
): Promise<MailListener | null> {
  if (config.mxPort === 0) return null;
  return openBounceServer({
    ...{ port: config.mxPort, addresses: config.smtpListen, host: config.smtpHost, tls },
    rules: bounceRules({ database, secrets, log }),
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
  const isAllowed = config.allowPrivateAddresses ? (): boolean => true : isPublicAddress;
  const policyOf = stsPolicies({ dns, outbound: outboundOf(config) });
  return (destination) =>
    directRoute(destination, { dns, isAllowed, policyOf, port: config.mailDirectPort, ca: roots });
}

/** Of the operator, or of the platform's own authority, a new one at each start. */
async function certificateOf({ config, database, secrets }: Platform): Promise<{ key: string; cert: string }> {
  const own = readCertificate(config);
  if (own) return own;
  const authority = await authorityFor(database, secrets, 'mail', () => newAuthority(`Mail of ${config.appsDomain}`));
  const { certificate, key } = await issueServerCertificate(authority, [config.smtpHost, 'localhost', '127.0.0.1']);
  return { cert: certificate, key };
}

/** @throws StartupError for one file without the other, or one that cannot be read */
function readCertificate({ smtpCertFile, smtpKeyFile }: Config): { key: string; cert: string } | null {
  if (smtpCertFile === null && smtpKeyFile === null) return null;
  if (smtpCertFile === null || smtpKeyFile === null)
    throw new StartupError('SMTP_CERT_FILE and SMTP_KEY_FILE need each other');
  try {
    return { cert: readFileSync(smtpCertFile, 'utf8'), key: readFileSync(smtpKeyFile, 'utf8') };
  } catch (error) {
    throw new StartupError(`SMTP_CERT_FILE or SMTP_KEY_FILE cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Files that change are used at once. @returns how to end it */
function watchCertificate(config: Config, listeners: readonly MailListener[]): () => void {
  const files = [config.smtpCertFile, config.smtpKeyFile].flatMap((file) => file ?? []);
  const reload = (): void => {
    try {
      const tls = readCertificate(config);
      if (tls) listeners.forEach((listener) => listener.setCertificate(tls));
    } catch {
      // Half written: the second file follows, and with it the next call.
    }
  };
  for (const file of files) watchFile(file, { interval: CHECK_EVERY_MS, persistent: false }, reload);
  return () => files.forEach((file) => unwatchFile(file, reload));
}
