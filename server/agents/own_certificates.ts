// Orders the certificates of the platform's own names and of default host names, and forgets those that the settings no
// longer name. The ingress and the mail servers serve them from the rows.
import type { Config } from '../../core/config';
import { platformNames } from '../../core/platform_names';
import { hasDefaultCertificates, isCertifiable } from '../../models/base/default_certificate';
import { ensureDefaultCertificates, ensureOwnCertificates } from '../../models/domains/certificate/desired';
import { listen } from '../platform/listener';
import type { Platform } from '../platform/platform';

/** @returns how to end it */
export async function openOwnCertificates(platform: Platform): Promise<() => Promise<void>> {
  const { config, database, databaseUrl, log } = platform;
  const names = ownCertificateNames(config);
  await ensureOwnCertificates(database, names);
  await ensureDefaultCertificates(database, config);
  const listener = listen(
    databaseUrl,
    {
      // With a custom domain that is gone went the certificate of its name.
      certificates: (name) => {
        if (!names.includes(name)) return;
        ensureOwnCertificates(database, names).catch((error: unknown) =>
          log.warn({ err: error }, 'the certificate of a name of the platform could not be ordered'),
        );
      },
    },
    log,
  );
  return () => listener.close();
}

/** Host names to order certificates for; wildcards are for default host names, where the platform has the DNS zone. */
function ownCertificateNames(config: Config): string[] {
  if (config.acmeDirectory === null) return [];
  const { smtpHost, isSmtpHostSet, smtpCertFile, smtpPorts, appsDomain, cdnDomain } = config;
  const names = platformNames(config).map(({ hostname }) => hostname);
  if (isSmtpHostSet && smtpCertFile === null && smtpPorts.length) names.push(smtpHost);
  const wildcards = hasDefaultCertificates(config) ? [`*.${appsDomain}`, `*.${cdnDomain}`] : [];
  return [...new Set([...wildcards, ...names.filter(isCertifiable)])];
}
