// The address of what runs behind a host name of the platform: https only where TLS is served for that name.
import type { Config } from '../../../core/config';
import type { Context, Sql } from '../../../core/context';
import { named } from '../../../db/statement';
import { loaderOf } from '../../base/load';
import { certificateOf, certifiedHostnames } from '../../base/default_certificate';

type UrlSettings = Pick<
  Config,
  'ingressPort' | 'ingressTlsPort' | 'ingressCertFile' | 'acmeDirectory' | 'appsDomain' | 'baseUrl' | 'trustProxy'
>;

const USUAL_PORTS = { http: 80, https: 443 };

/**
 * The address without a path: https where the ingress has TLS and the operator's certificate for the names below
 * APPS_DOMAIN, or where a reverse proxy in front ends TLS, else http. The port stands in it where it is not the usual
 * one. What is known of a certificate of its own is for `defaultUrl`.
 * @param hostname of an application or a preview
 */
export function applicationUrl(config: Omit<UrlSettings, 'acmeDirectory' | 'appsDomain'>, hostname: string): string {
  return addressOf(config, hostname, config.ingressCertFile !== null);
}

/** The address at a default host name: https once the ingress serves a certificate for it. */
export async function defaultUrl(sql: Sql, config: UrlSettings, hostname: string): Promise<string> {
  return addressOf(config, hostname, (await certifiedHostnames(sql, config, [hostname])).has(hostname));
}

/** The same for a resolver: one query for all of a page. */
export async function shownUrl(ctx: Context, hostname: string): Promise<string> {
  return addressOf(ctx.config, hostname, (await certificateOf(ctx, hostname)).status === 'issued');
}

type AddressSettings = Pick<UrlSettings, 'ingressPort' | 'ingressTlsPort' | 'baseUrl' | 'trustProxy'>;

function addressOf(config: AddressSettings, hostname: string, hasCertificate: boolean): string {
  const { ingressPort, ingressTlsPort, baseUrl, trustProxy } = config;
  if (ingressTlsPort !== null && hasCertificate) return formatAddress('https', hostname, ingressTlsPort);
  if (ingressTlsPort === null && trustProxy > 0 && baseUrl.startsWith('https:')) return `https://${hostname}`;
  return formatAddress('http', hostname, ingressPort);
}

function formatAddress(scheme: keyof typeof USUAL_PORTS, hostname: string, port: number): string {
  return port === USUAL_PORTS[scheme] ? `${scheme}://${hostname}` : `${scheme}://${hostname}:${port}`;
}

interface Addressed {
  id: string;
  project_id: string;
  default_hostname: string;
}

interface Reached {
  id: string;
  hostname: string | null;
  certificate: string | null;
}

const REACHED = named(`select a.id, d.hostname, d.certificate ->> 'status' as certificate from applications a
    join processes p on p.application_id = a.id and p.type = 'web' and (p.instances > 0 or p.autoscaling is not null)
    left join lateral (select hostname, certificate from domains where application_id = a.id and status = 'active'
      and type <> 'wildcard' and deleted_at is null order by id limit 1) d on true
  where a.id = any($1) and a.project_id = any($2)`);

/**
 * Where visitors reach an application: at its oldest active custom domain, else at the host name of the platform. Null
 * while its process type `web` is scaled to 0. One query for all applications of a page.
 */
export function visitorUrl(ctx: Context, application: Addressed): Promise<string | null> {
  const load = async (all: readonly Addressed[]): Promise<(string | null)[]> => {
    const ids = all.map(({ id }) => id);
    const projects = [...new Set(all.map(({ project_id }) => project_id))];
    const rows = new Map((await ctx.sql.query<Reached>(REACHED, [ids, projects])).map((row) => [row.id, row]));
    const names = all.map(({ default_hostname }) => default_hostname);
    const certified = await certifiedHostnames(ctx.sql, ctx.config, names);
    return all.map(({ id, default_hostname }) => {
      const row = rows.get(id);
      if (!row) return null;
      if (row.hostname === null) return addressOf(ctx.config, default_hostname, certified.has(default_hostname));
      return addressOf(ctx.config, row.hostname, row.certificate === 'issued');
    });
  };
  return loaderOf(ctx, 'application.url', load).load(application);
}
