// Warnings of certificates that were not renewed in time: one, and one more message when the certificate is renewed.
// The time is 14 days before the end, for those that live for less than 47 days three tenths of their life; renewals
// begin when a third of it is left.
import type { Config } from '../../../core/config';
import type { SecretBox } from '../../../core/secrets';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { queueMail } from '../../base/mail_outbox';
import { recordEvent } from '../../projects/activity';

interface WarnedCertificate {
  id: string;
  domain_id: string | null;
  application_id: string | null;
  preview_id: string | null;
  cdn_zone_id: string | null;
  expires_at: string | null;
  reason: string | null;
}

const ENDS = `chain is not null and expires_at - now() < least(interval '14 days', (expires_at - issued_at) * 0.3)`;
/** A name of the platform itself that has none: told after an hour, in which an authority may be away. */
const MISSING = `chain is null and domain_id is null and application_id is null and preview_id is null
  and cdn_zone_id is null and reason is not null and not is_waiting and reason_since < now() - interval '1 hour'`;
const NEEDS_WARNING = `((${ENDS}) or (${MISSING}))`;
const COLUMNS = 'id, domain_id, application_id, preview_id, cdn_zone_id, expires_at, reason';

const BEGIN = named(`update certificates set warned_at = now() where id in (select id from certificates
    where warned_at is null and ${NEEDS_WARNING} order by id limit $1 for update skip locked) returning ${COLUMNS}`);
const END = named(`update certificates set warned_at = null where id in (select id from certificates
    where warned_at is not null and not ${NEEDS_WARNING} order by id limit $1 for update skip locked)
  returning ${COLUMNS}`);

interface Parts {
  config: Config;
  secrets: SecretBox;
}

/**
 * Tells of certificates that are in trouble since the last call, and of those that no longer are: projects by their
 * activity, the operator by e-mail of names of the platform. @returns how many rows have changed
 */
export function warnOfCertificates(database: Session, batch: number, parts: Parts): Promise<number> {
  return database.transaction(async (sql) => {
    const begun = await sql.query<WarnedCertificate>(BEGIN, [batch]);
    const ended = await sql.query<WarnedCertificate>(END, [batch]);
    for (const row of begun) await recordWarning(sql, row, 'certificate_expiring');
    for (const row of ended) await recordWarning(sql, row, 'certificate_renewed');
    await mailOperator(sql, parts, begun.filter(isOfPlatform), ended.filter(isOfPlatform));
    return Math.max(begun.length, ended.length);
  });
}

/** Previews pass: nobody is told of theirs. */
function isOfPlatform({ domain_id, application_id, preview_id, cdn_zone_id }: WarnedCertificate): boolean {
  return [domain_id, application_id, preview_id, cdn_zone_id].every((owner) => owner === null);
}

const DOMAIN = named('select id, project_id, hostname, cdn_zone_id from domains where id = $1');
const APPLICATION = named('select id, project_id, name from applications where id = $1');
const CDN_ZONE = named('select id, project_id, name from cdn_zones where id = $1');

async function recordWarning(sql: Session, row: WarnedCertificate, event: string): Promise<void> {
  const [statement, id, table] =
    row.domain_id !== null
      ? [DOMAIN, row.domain_id, 'domains']
      : row.application_id !== null
        ? [APPLICATION, row.application_id, 'applications']
        : [CDN_ZONE, row.cdn_zone_id, 'cdn_zones'];
  if (id === null) return;
  const [owner] = await sql.query<{ id: string; cdn_zone_id?: string | null }>(statement, [id]);
  if (owner) await recordEvent(sql, owner.cdn_zone_id ? 'cdn_domains' : table, owner, event);
}

/** Nobody reads mail at the address that stands for an unset one. */
const NOBODY = 'owner@example.com';

async function mailOperator(
  sql: Session,
  { config, secrets }: Parts,
  begun: readonly WarnedCertificate[],
  ended: readonly WarnedCertificate[],
): Promise<void> {
  const to = config.acmeEmail ?? config.ownerEmail;
  if (to === NOBODY || !(begun.length + ended.length)) return;
  await queueMail({ sql, secrets, config }, [to], {
    subject: begun.length
      ? 'A certificate of the platform needs attention'
      : 'Certificates of the platform are renewed',
    lines: [
      ...begun.map(expiryWarning),
      ...ended.map(({ id }) => `The certificate of ${id} is in order again.`),
      ...(begun.length ? ['`platform doctor` shows the present state.'] : []),
    ],
  });
}

/** One sentence for the operator. */
export function expiryWarning({
  id,
  expires_at,
  reason,
}: Pick<WarnedCertificate, 'id' | 'expires_at' | 'reason'>): string {
  const why = reason ?? 'No attempt to renew it has been made: see whether the worker runs.';
  if (expires_at === null) return `${id} has no certificate. ${why}`;
  const isOver = Date.parse(expires_at) < Date.now();
  return `The certificate of ${id} ${isOver ? 'has ended' : 'ends'} on ${expires_at.slice(0, 16)} UTC. ${why}`;
}

const FIGURES = named(`select case when domain_id is not null then 'domain' when application_id is not null then
      'application' when preview_id is not null then 'preview' when cdn_zone_id is not null then 'cdn_zone'
      else 'platform' end as kind,
    case when ${NEEDS_WARNING} then 'expiring' when chain is not null then 'good' when is_waiting then 'waiting'
      when reason is not null then 'failed' else 'none' end as state, count(*)::int as count
  from certificates group by 1, 2`);
const OWN = named(`select id, expires_at, reason, extract(epoch from expires_at - now())::float8 as seconds,
    ${NEEDS_WARNING} as needs_warning
  from certificates where domain_id is null and application_id is null and preview_id is null and cdn_zone_id is null
  order by id`);

interface OwnFigure extends Pick<WarnedCertificate, 'id' | 'expires_at' | 'reason'> {
  /** Until its end; null: there is none. */
  seconds: number | null;
  needs_warning: boolean;
}

/** For metrics and for the operator: certificates of names of the platform one by one, the others counted. */
export async function certificateFigures(
  sql: Pick<Session, 'query'>,
): Promise<{ own: OwnFigure[]; counts: { kind: string; state: string; count: number }[] }> {
  return { own: await sql.query<OwnFigure>(OWN, []), counts: await sql.query(FIGURES, []) };
}
