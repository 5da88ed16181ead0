// Certificates of host names, and what proves to an authority that a name leads here.
import type { SecretBox } from '../../core/secrets';
import type { Certificate, DomainStatus, DomainType } from '../../schema/types';
import type { ControlDatabase, Session } from '../../db/control_database';
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

const SERVED = named(
  'select id, chain, key from certificates where id = any($1) and chain is not null order by id <> $2 limit 1',
);

/** The certificate of a host name, else of the wildcard above it, else null. */
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

const WANT_OWN = named(`insert into certificates (id) select $1
  where not exists (select 1 from certificates where id = any($2)) on conflict (id) do nothing returning id`);
const FORGET_OWN = named('delete from certificates where domain_id is null and id <> $1');

/**
 * Orders the certificate of the platform's host name, unless a custom domain has one for the name, and deletes the
 * entries of other names. Null: the platform needs no certificate.
 */
export async function wantOwnCertificate(database: ControlDatabase, hostname: string | null): Promise<void> {
  await database.transaction(async (sql) => {
    await sql.query(FORGET_OWN, [hostname ?? '']);
    if (hostname === null) return;
    const made = await sql.query(WANT_OWN, [hostname, [hostname, hostname.replace(/^[^.]+/, '*')]]);
    if (made.length) sql.due('certificates');
  });
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

/** Shows in the API how far the certificate is. */
export async function saveCertificateStatus(
  sql: Session,
  row: { id: string; fence: number },
  shown: Certificate,
): Promise<void> {
  await sql.query(SHOW, [row.id, row.fence, JSON.stringify(shown)]);
}

const PUBLISH = named(`insert into acme_challenges (token, key_authorization, certificate_id) values ($1, $2, $3)
  on conflict (token) do update set key_authorization = excluded.key_authorization,
    certificate_id = excluded.certificate_id`);

export async function publishChallenge(sql: Session, hostname: string, token: string, text: string): Promise<void> {
  await sql.query(PUBLISH, [token, text, hostname]);
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
