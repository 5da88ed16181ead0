// Certificates of default host names: each is ordered when the application, preview or CDN zone is made, never by a
// handshake; whether one is served, and what prevents it.
import type { Config } from '../../core/config';
import type { Context, Sql } from '../../core/context';
import { named } from '../../db/statement';
import type { Certificate } from '../../schema/types';
import { loaderOf } from './load';

export type DefaultSettings = Pick<Config, 'acmeDirectory' | 'ingressTlsPort' | 'appsDomain'>;

/** Whether default host names get certificates here at all. */
export function hasDefaultCertificates({ acmeDirectory, ingressTlsPort, appsDomain }: DefaultSettings): boolean {
  return acmeDirectory !== null && ingressTlsPort !== null && isCertifiable(appsDomain);
}

/** Whether an authority elsewhere can know the name. */
export function isCertifiable(hostname: string): boolean {
  return hostname.includes('.') && !hostname.endsWith('.localhost') && /[a-z]/.test(hostname.slice(-1));
}

type Owner = { application_id: string } | { preview_id: string } | { cdn_zone_id: string };

const WANT_DEFAULT = named(`insert into certificates (id, application_id, preview_id, cdn_zone_id)
  values ($1, $2, $3, $4) on conflict (id) do nothing`);

/** In the transaction that makes what is reached by the name. */
export async function wantDefaultCertificate(
  { sql, config }: { sql: Sql; config: DefaultSettings },
  hostname: string,
  owner: Owner,
): Promise<void> {
  if (!hasDefaultCertificates(config)) return;
  const { application_id = null, preview_id = null, cdn_zone_id = null } = owner as Partial<Record<string, string>>;
  await sql.query(WANT_DEFAULT, [hostname, application_id, preview_id, cdn_zone_id]);
  sql.due('certificates');
}

interface Row {
  hostname: string;
  exists: boolean;
  /** Of its own certificate or of the wildcard above, whichever is good for longer. */
  issuer: string | null;
  expires_at: string | null;
  reason: string | null;
  is_waiting: boolean | null;
}

const SHOWN = named(`select w.hostname, own.id is not null as exists, own.reason, own.is_waiting, good.issuer,
    good.expires_at
  from unnest($1::text[]) as w (hostname) left join certificates own on own.id = w.hostname
  left join lateral (select c.issuer, c.expires_at from certificates c
    where c.id in (w.hostname, regexp_replace(w.hostname, '^[^.]+', '*')) and c.chain is not null
      and c.expires_at > now() order by c.expires_at desc limit 1) good on true`);

type Settings = Pick<Config, 'acmeDirectory' | 'ingressTlsPort' | 'ingressCertFile' | 'appsDomain'>;

const NONE: Certificate = { status: 'none', issuer: null, expires_at: null, error: null };
const OF_OPERATOR: Certificate = { ...NONE, status: 'issued' };

/** Which of these default host names the ingress serves with TLS. */
export async function certifiedHostnames(
  sql: Sql,
  config: Settings,
  hostnames: readonly string[],
): Promise<ReadonlySet<string>> {
  const all = await shownCertificates(sql, config, hostnames);
  return new Set(hostnames.filter((_, index) => all[index]?.status === 'issued'));
}

/** Those of these default host names, in their order. One query at most. */
async function shownCertificates(sql: Sql, config: Settings, hostnames: readonly string[]): Promise<Certificate[]> {
  if (config.ingressTlsPort !== null && config.ingressCertFile !== null) return hostnames.map(() => OF_OPERATOR);
  if (!hasDefaultCertificates(config)) return hostnames.map(() => NONE);
  const rows = await sql.query<Row>(SHOWN, [[...hostnames]]);
  const found = new Map(rows.map((row) => [row.hostname, row]));
  return hostnames.map((hostname) => shownOf(found.get(hostname)));
}

function shownOf(row: Row | undefined): Certificate {
  if (!row) return NONE;
  const { issuer, expires_at, reason: error } = row;
  if (expires_at !== null) return { status: 'issued', issuer, expires_at, error };
  if (!row.exists) return NONE;
  return { ...NONE, status: error === null || row.is_waiting ? 'pending' : 'failed', error };
}

/** The certificate of a default host name. One query for all of a page. */
export function certificateOf(ctx: Context, hostname: string): Promise<Certificate> {
  const load = (all: readonly string[]): Promise<Certificate[]> => shownCertificates(ctx.sql, ctx.config, all);
  return loaderOf(ctx, 'certificate', load).load(hostname);
}
