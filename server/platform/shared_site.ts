// Whether browsers take applications of tenants and the dashboard for one site. Then an application can set cookies
// that are sent to the dashboard, and SameSite protects nothing.
import { getDomain } from 'tldts';
import type { Config } from '../../core/config';

const OPTIONS = { extractHostname: false, allowPrivateDomains: true };

/** What the operator should change; null where the domains are apart, by the public suffix list. */
export function sharedSiteWarning({ baseUrl, appsDomain }: Pick<Config, 'baseUrl' | 'appsDomain'>): string | null {
  const { hostname } = new URL(baseUrl);
  const site = getDomain(hostname, OPTIONS);
  if (site === null || site !== getDomain(`application.${appsDomain}`, OPTIONS)) return null;
  return (
    `BASE_URL (${hostname}) and APPS_DOMAIN (${appsDomain}) share the domain ${site}. Applications can set cookies ` +
    'for it, which browsers send to the dashboard. Use another domain for applications.'
  );
}
