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
// Their jobs register the new address at the provider.
const WEBHOOKS = named(`update git_repositories set provider_hook_id = null, next_at = now()
  where provider_hook_id is not null and deleted_at is null returning deleted_at`);
const BY_HAND = named(`select
  (select count(*)::int from git_integrations) as integrations,
  (select count(*)::int from email_domains where deleted_at is null) as mail,
  (select count(*)::int from domains where deleted_at is null) as domains`);

interface ByHand {
  integrations: number;
  mail: number;
  domains: number;
}

/**
 * Runs in one transaction, with the new settings, and may run again.
 * @returns sentences on what has moved and what the operator has to do
 */
export async function followNames(sql: Pick<Session, 'query'>, before: Config, now: Config): Promise<string[]> {
  const moved = await Promise.all([
    update(sql, APPLICATIONS, [now.appsDomain]),
    update(sql, PREVIEWS, [now.appsDomain]),
    update(sql, CDN_ZONES, [now.cdnDomain]),
  ]);
  const isNewAddress = before.baseUrl !== now.baseUrl;
  const hooks = isNewAddress ? await update(sql, WEBHOOKS, []) : 0;
  const [byHand] = await sql.query<ByHand>(BY_HAND, []);
  return [
    ...movedText(
      moved.reduce((sum, count) => sum + count, 0),
      now,
    ),
    ...(hooks
      ? [`${hooks} webhooks are registered anew at their Git providers. Delete those of ${before.baseUrl} there.`]
      : []),
    ...(isNewAddress ? addressText(before, now, byHand as ByHand) : []),
    ...nameText(before, now, byHand as ByHand),
  ];
}

async function update(
  sql: Pick<Session, 'query'>,
  statement: ReturnType<typeof named>,
  values: unknown[],
): Promise<number> {
  const rows = await sql.query<{ deleted_at: string | null }>(statement, values);
  return rows.filter(({ deleted_at }) => deleted_at === null).length;
}

function movedText(count: number, { appsDomain }: Config): string[] {
  if (!count) return [];
  return [
    `${count} applications, previews and CDN zones have names below ${appsDomain} now. Variables with their address ` +
      'change at the next restart.',
  ];
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
