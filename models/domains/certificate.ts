// Certificates of host names, and what proves to an authority that a name leads here.
import type { SecretBox } from '../../core/secrets';
import type { Certificate, DomainStatus, DomainType } from '../../schema/types';
import type { Session } from '../../db/control_database';
import { named } from '../../db/statement';
import { sealedColumns } from '../base/sealed_columns';

/** What a certificate is for, as far as its job reads it. */
export interface CertifiedDomain {
  id: string;
  project_id: string;
  dns: 'automatic' | 'manual';
  type: DomainType;
  status: DomainStatus;
  /** Since when an active domain lacks its records. */
  missing_since: string | null;
  certificate: Certificate;
}

/** The served chain and private key, PEM, leaf first. */
export interface ServedCertificate {
  chain: string;
  key: string;
}

const SERVED = named(`select id, chain, key from certificates where id = any($1) and chain is not null
  order by expires_at < now(), id <> $2 limit 1`);

/** The certificate of a host name, else of the wildcard above it, else null. One that is over is the last choice. */
export async function findServedCertificate(
  sql: Session,
  secrets: SecretBox,
  hostname: string,
): Promise<ServedCertificate | null> {
  const exact = hostname.toLowerCase();
  const [row] = await sql.query<{ id: string; chain: string; key: string }>(SERVED, [
    [exact, exact.replace(/^[^.]+/, '*')],
    exact,
  ]);
  return row ? { chain: row.chain, key: secrets.open(row.key, sealedColumns.certificateKey.contextOf(row.id)) } : null;
}

const CHALLENGE = named('select key_authorization from acme_challenges where token = $1');
/** Base64url (RFC 8555 section 8.3). */
const TOKEN = /^[\w-]{1,256}$/;

/** What GET /.well-known/acme-challenge/<token> has to answer, null for a token that is none of ours. */
export async function findChallenge(sql: Session, token: string): Promise<string | null> {
  if (!TOKEN.test(token)) return null;
  const [row] = await sql.query<{ key_authorization: string }>(CHALLENGE, [token]);
  return row?.key_authorization ?? null;
}

/** The columns of a certificate's row, its key sealed. */
export function sealedCertificate(
  secrets: SecretBox,
  hostname: string,
  { chain, key }: ServedCertificate,
): ServedCertificate {
  return { chain, key: secrets.seal(key, sealedColumns.certificateKey.contextOf(hostname)) };
}

const DOMAIN = named(
  `select id, project_id, dns, type, status, missing_since, certificate from domains
   where id = $1 and deleted_at is null`,
);

/** The domain that a certificate is for; null when it has been removed. */
export async function findCertifiedDomain(sql: Session, domainId: string): Promise<CertifiedDomain | null> {
  const [row] = await sql.query<CertifiedDomain>(DOMAIN, [domainId]);
  return row ?? null;
}

// Observed: the version of the domain stays, its ETag does not. A worker that has lost the row writes nothing.
const SHOW =
  named(`update domains d set certificate = $3, observed_generation = d.observed_generation + 1 from certificates c
  where c.id = $1 and c.fence = $2 and d.id = c.domain_id and d.certificate is distinct from $3`);
const REASON = named(`update certificates set reason = $3, is_waiting = $4,
    reason_since = case when $3::text is null then null else coalesce(reason_since, now()) end
  where id = $1 and fence = $2 and (reason, is_waiting) is distinct from ($3, $4)`);

/** What stands in the way of a certificate; null: nothing. */
interface Obstacle {
  reason: string;
  /** Nothing has failed: it is not its turn yet. */
  isWaiting: boolean;
}

/** Shows in the API how far the certificate is, and notes what stands in its way. */
export async function saveCertificateStatus(
  sql: Session,
  row: { id: string; fence: number },
  shown: Certificate,
  obstacle: Obstacle | null,
): Promise<void> {
  await sql.query(REASON, [row.id, row.fence, obstacle?.reason ?? null, obstacle?.isWaiting ?? false]);
  await sql.query(SHOW, [row.id, row.fence, JSON.stringify(shown)]);
}

const PUBLISH = named(`insert into acme_challenges (token, key_authorization, certificate_id) values ($1, $2, $3)
  on conflict (token) do update set key_authorization = excluded.key_authorization,
    certificate_id = excluded.certificate_id`);

export async function publishChallenge(sql: Session, hostname: string, token: string, text: string): Promise<void> {
  await sql.query(PUBLISH, [token, text, hostname]);
}

// Of HTTP challenges it is the token, which has no dot.
const DELEGATED = named(`select token as name, key_authorization as value, served_at is not null as is_served
  from acme_challenges where token like '\\_acme-challenge.%'`);
const MARK_SERVED = named(`update acme_challenges set served_at = now() where token = $1 and key_authorization = $2`);
const IS_SERVED = named(`select 1 from acme_challenges where token = $1 and key_authorization = $2
  and served_at is not null`);

export interface DelegatedChallenge {
  /** `_acme-challenge.apps.example.com` */
  name: string;
  value: string;
  is_served: boolean;
}

/** Challenges by DNS whose name alone is delegated to our name server: it answers for them as long as they are here. */
export async function listDelegatedChallenges(sql: Session): Promise<DelegatedChallenge[]> {
  return sql.query<DelegatedChallenge>(DELEGATED, []);
}

export async function markChallengeServed(sql: Session, { name, value }: DelegatedChallenge): Promise<void> {
  await sql.query(MARK_SERVED, [name, value]);
}

export async function isDelegatedChallengeServed(sql: Session, name: string, value: string): Promise<boolean> {
  return (await sql.query(IS_SERVED, [name, value])).length > 0;
}

const CLEAR = named('delete from acme_challenges where certificate_id = $1');

/** Takes back the challenges of a host name, also those that a killed worker has left. */
export async function clearChallenges(sql: Session, hostname: string): Promise<void> {
  await sql.query(CLEAR, [hostname]);
}

const ACCOUNT = named('select key from acme_accounts where authority = $1');
const NEW_ACCOUNT = named(
  'insert into acme_accounts (authority, key) values ($1, $2) on conflict (authority) do nothing',
);

/** The one account key for an authority, PEM. @param make a new key, for the first time */
export async function ensureAccountKey(
  sql: Session,
  secrets: SecretBox,
  authority: string,
  make: () => Promise<string>,
): Promise<string> {
  const place = sealedColumns.acmeAccountKey.contextOf(authority);
  const find = async (): Promise<string | undefined> =>
    (await sql.query<{ key: string }>(ACCOUNT, [authority]))[0]?.key;
  let sealed = await find();
  if (sealed === undefined) {
    await sql.query(NEW_ACCOUNT, [authority, secrets.seal(await make(), place)]);
    sealed = await find();
  }
  return secrets.open(sealed as string, place);
}

const REPLACE_ACCOUNT = named('update acme_accounts set key = $3 where authority = $1 and key = $2');

/** Another key for an authority that has closed the account, unless another worker has replaced `old` already. */
export async function replaceAccountKey(
  sql: Session,
  secrets: SecretBox,
  authority: string,
  keys: { old: string; next: string },
): Promise<void> {
  const place = sealedColumns.acmeAccountKey.contextOf(authority);
  const [found] = await sql.query<{ key: string }>(ACCOUNT, [authority]);
  if (!found || secrets.open(found.key, place) !== keys.old) return;
  await sql.query(REPLACE_ACCOUNT, [authority, found.key, secrets.seal(keys.next, place)]);
}

/** One that ends soon, because nobody manages to renew it, is replaced by those of the names in time. */
const COVER = named(`select reason is null as is_open, chain is not null
    and expires_at > now() + least(interval '7 days', (expires_at - issued_at) * 0.2) as is_good
  from certificates where id = $1 and domain_id is null`);

/** How far the platform's own wildcard above a host name is; null: there is none. */
export async function findCover(
  sql: Session,
  hostname: string,
): Promise<{ is_good: boolean; is_open: boolean } | null> {
  const [row] = await sql.query<{ is_good: boolean; is_open: boolean }>(COVER, [hostname.replace(/^[^.]+/, '*')]);
  return row ?? null;
}

const WAKE = named('update certificates set next_at = now() where id = $1 and lease_until is null and next_at > now()');

/** Looks at once at a wildcard that others wait for. */
export async function wakeCover(sql: Session, hostname: string): Promise<void> {
  await sql.query(WAKE, [hostname.replace(/^[^.]+/, '*')]);
}
