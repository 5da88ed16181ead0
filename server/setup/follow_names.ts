// What an installation already has follows its new names, or is named to the operator where others have to change it.
import type { Config } from '../../core/config';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';

// `status` is set for the triggers that tell the ingress.
const APPLICATIONS = named(`update applications set status = status,
    default_hostname = split_part(default_hostname, '.', 1) || '.' || $1
  where default_hostname <> split_part(default_hostname, '.', 1) || '.' || $1 returning deleted_at`);
const PREVIEWS = named(`update previews set status = status, hostname = split_part(hostname, '.', 1) || '.' || $1
  where hostname <> split_part(hostname, '.', 1) || '.' || $1 returning deleted_at`);
const CDN_ZONES = named(`update cdn_zones set hostname = split_part(hostname, '.', 1) || '.' || $1, next_at = now()
  where hostname <> split_part(hostname, '.', 1) || '.' || $1 returning deleted_at`);
// Of names that nothing has any more.
const OLD_CERTIFICATES = named(`delete from certificates c where not (
    c.application_id is null and c.preview_id is null and c.cdn_zone_id is null
    or exists (select 1 from applications a where a.id = c.application_id and a.default_hostname = c.id)
    or exists (select 1 from previews p where p.id = c.preview_id and p.hostname = c.id)
    or exists (select 1 from cdn_zones z where z.id = c.cdn_zone_id and z.hostname = c.id))
  returning null as deleted_at`);
// Their jobs register the new address at the provider.
const WEBHOOKS = named(`update git_repositories set provider_hook_id = null, next_at = now()
  where provider_hook_id is not null and deleted_at is null returning deleted_at`);
const BY_HAND = named(`select
  (select count(*)::int from git_integrations) as integrations,
  (select count(*)::int from email_domains where deleted_at is null) as mail,
  (select count(*)::int from domains where deleted_at is null) as domains`);

type Sql = Pick<Session, 'query'>;

interface ByHand {
  integrations: number;
  mail: number;
  domains: number;
}

/** Gives applications, previews and CDN zones names below the domains of the settings. @returns how many it moved */
export async function moveDefaultNames(sql: Sql, { appsDomain, cdnDomain }: Config): Promise<number> {
  const moved = await update(sql, APPLICATIONS, [appsDomain]);
  return moved + (await update(sql, PREVIEWS, [appsDomain])) + (await update(sql, CDN_ZONES, [cdnDomain]));
}

/**
 * When the new names serve: registers webhooks anew, and forgets certificates of names that have moved. May run again.
 * @returns sentences on what the operator has to do
 */
export async function followAddress(sql: Sql, before: Config, now: Config): Promise<string[]> {
  await update(sql, OLD_CERTIFICATES, []);
  const isNewAddress = before.baseUrl !== now.baseUrl;
  const hooks = isNewAddress ? await update(sql, WEBHOOKS, []) : 0;
  const [byHand] = await sql.query<ByHand>(BY_HAND, []);
  return [
    ...(hooks
      ? [`${hooks} webhooks are registered anew at their Git providers. Delete those of ${before.baseUrl} there.`]
      : []),
    ...(isNewAddress ? addressText(before, now, byHand as ByHand) : []),
    ...nameText(before, now, byHand as ByHand),
  ];
}

async function update(sql: Sql, statement: ReturnType<typeof named>, values: unknown[]): Promise<number> {
  const rows = await sql.query<{ deleted_at: string | null }>(statement, values);
  return rows.filter(({ deleted_at }) => deleted_at === null).length;
}

function addressText(before: Config, { baseUrl, loginProviders, gitOauthClients }: Config, byHand: ByHand): string[] {
  const logins = loginProviders.map(({ title }) => title).join(', ');
  return [
    ...(logins
      ? [`Change the redirect URI at the login providers (${logins}) to ${baseUrl}/login/with/<name>/callback.`]
      : []),
    ...(gitOauthClients.length || byHand.integrations
      ? [`Change the addresses of OAuth clients and apps at Git providers from ${before.baseUrl} to ${baseUrl}.`]
      : []),
  ];
}

function nameText(before: Config, now: Config, { mail, domains }: ByHand): string[] {
  return [
    ...(mail && before.smtpHost !== now.smtpHost
      ? [`${mail} domains of mail need the records with ${now.smtpHost} that the dashboard shows.`]
      : []),
    ...(domains && before.ingressHost !== now.ingressHost
      ? [`Custom domains with a CNAME to ${before.ingressHost} need one to ${now.ingressHost}.`]
      : []),
  ];
}
