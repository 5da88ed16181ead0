// The certificate of the mail servers: files of the operator, else the one that was got for SMTP_HOST by ACME (of a
// custom domain, or ordered for the name itself, see own_certificates.ts), else one of the platform's own authority. A
// new one is used from the next session on.
import { readFileSync, unwatchFile, watchFile } from 'node:fs';
import type { Config } from '../../../core/config';
import { StartupError } from '../../../core/startup_error';
import { issueServerCertificate, newAuthority } from '../../../drivers/certificates/authority';
import type { MailListener } from '../../../engines/mail';
import { authorityFor } from '../../../models/databases/authority';
import { findServedCertificate } from '../../../models/domains/certificate';
import { listen } from '../../platform/listener';
import type { Platform } from '../../platform/platform';

export type MailTls = Parameters<MailListener['setCertificate']>[0];

const CHECK_EVERY_MS = 5_000;

/** @throws StartupError for one file without the other, or one that cannot be read */
export async function mailCertificate(platform: Platform): Promise<MailTls> {
  const files = readFiles(platform.config);
  const given = files ?? (await servedCertificate(platform));
  if (given) return given;
  const { config, database, secrets } = platform;
  const authority = await authorityFor(database, secrets, 'mail', () => newAuthority(`Mail of ${config.appsDomain}`));
  const { certificate, key } = await issueServerCertificate(authority, [config.smtpHost, 'localhost', '127.0.0.1']);
  return { cert: certificate, key };
}

/** Gives the listeners each new certificate. @returns how to end it */
export function watchMailCertificate(platform: Platform, listeners: readonly MailListener[]): () => Promise<void> {
  const { config, databaseUrl, log } = platform;
  const use = (tls: MailTls | null): void => {
    if (tls) listeners.forEach((listener) => listener.setCertificate(tls));
  };
  const files = [config.smtpCertFile, config.smtpKeyFile].flatMap((file) => file ?? []);
  if (files.length) return watchFiles(config, files, use);
  const names = new Set([config.smtpHost, config.smtpHost.replace(/^[^.]+/, '*')]);
  const listener = listen(
    databaseUrl,
    {
      certificates: (name) => {
        if (!names.has(name)) return;
        servedCertificate(platform)
          .then(use)
          .catch((error: unknown) => log.warn({ err: error }, 'the certificate of SMTP_HOST could not be read'));
      },
    },
    log,
  );
  return () => listener.close();
}

function watchFiles(config: Config, files: readonly string[], use: (tls: MailTls | null) => void) {
  const reload = (): void => {
    try {
      use(readFiles(config));
    } catch {
      // Half written: the second file follows, and with it the next call.
    }
  };
  for (const file of files) watchFile(file, { interval: CHECK_EVERY_MS, persistent: false }, reload);
  return async (): Promise<void> => files.forEach((file) => unwatchFile(file, reload));
}

async function servedCertificate({ config, database, secrets }: Platform): Promise<MailTls | null> {
  const served = await findServedCertificate(database, secrets, config.smtpHost);
  return served && { cert: served.chain, key: served.key };
}

function readFiles({ smtpCertFile, smtpKeyFile }: Config): MailTls | null {
  if (smtpCertFile === null && smtpKeyFile === null) return null;
  if (smtpCertFile === null || smtpKeyFile === null)
    throw new StartupError('set both SMTP_CERT_FILE and SMTP_KEY_FILE, or neither');
  try {
    return { cert: readFileSync(smtpCertFile, 'utf8'), key: readFileSync(smtpKeyFile, 'utf8') };
  } catch (error) {
    throw new StartupError(`SMTP_CERT_FILE or SMTP_KEY_FILE cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}
