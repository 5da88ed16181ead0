// What the authorisation server remembers, by the SHA-256 of what a client or browser holds. Contents are sealed.
import type { Context, Sql } from '../../../core/context';
import { sha256 } from '../../../core/accounts/tokens';
import { named } from '../../../db/statement';
import { sealedColumns } from '../../base/sealed_columns';

type OauthPayload = Record<string, unknown>;

interface Row {
  hash: string;
  payload: string;
  consumed_at: string | null;
}

/** Seals and finds. */
type Holder = Pick<Context, 'sql' | 'secrets'>;

const SAVE = named(`insert into oauth_records (kind, hash, user_code_hash, grant_id, scopes, payload, expires_at)
  values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7))
  on conflict (kind, hash) do update set user_code_hash = excluded.user_code_hash, grant_id = excluded.grant_id,
    scopes = excluded.scopes, payload = excluded.payload, expires_at = excluded.expires_at`);
const FIND_ROWS = 'select hash, payload, consumed_at from oauth_records where kind = $1';
const FIND = named(`${FIND_ROWS} and hash = $2`);
// Two at once: the second finds nothing. It does not wait to find it spent, which would end what the first has got.
const LOCK = named(`${FIND_ROWS} and hash = $2 for update skip locked`);
const BY_USER_CODE = named(`${FIND_ROWS} and user_code_hash = $2`);
// A grant lives as long as the key that shows it.
const GRANT = named(`select r.hash, r.payload, r.consumed_at from oauth_records r join api_keys k on k.id = r.grant_id
  where r.kind = $1 and r.hash = $2 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())`);
// A self-registered client expires when it has not been used for long.
const CLIENT = named(`${FIND_ROWS} and hash = $2 and (expires_at is null or expires_at > now())`);
const OF_KIND = named(`${FIND_ROWS} and (expires_at is null or expires_at > now()) order by created_at`);
// What is consumed keeps its time: a second use is not a fresh one.
const CONSUME = named(
  'update oauth_records set consumed_at = coalesce(consumed_at, now()) where kind = $1 and hash = $2',
);
const DESTROY = named('delete from oauth_records where kind = $1 and hash = $2 returning grant_id');
const DESTROY_OF_GRANT = named('delete from oauth_records where kind = $1 and grant_id = $2');
const POLL = named(`with polled as (
    select kind, hash, coalesce(polled_at > now() - make_interval(secs => poll_seconds - 1), false) as too_soon
    from oauth_records where kind = 'DeviceCode' and hash = $1 for update skip locked)
  update oauth_records r set polled_at = now(),
    poll_seconds = r.poll_seconds + case when polled.too_soon then 5 else 0 end
  from polled where r.kind = polled.kind and r.hash = polled.hash returning polled.too_soon`);

const OF_OWN: Record<string, typeof FIND> = { Grant: GRANT, Client: CLIENT };

/** @param seconds until it ends; null = never */
export async function saveRecord(
  { sql, secrets }: Holder,
  kind: string,
  id: string,
  payload: OauthPayload,
  seconds: number | null,
): Promise<void> {
  const hash = sha256(id);
  const { grantId, userCode, scope } = payload as { grantId?: string; userCode?: string; scope?: string };
  await sql.query(SAVE, [
    kind,
    hash,
    userCode ? sha256(userCode) : null,
    (kind === 'Grant' ? id : grantId) ?? null,
    kind === 'AccessToken' ? (scope ?? '').split(' ').filter(Boolean) : null,
    secrets.seal(JSON.stringify(payload), sealedColumns.oauthRecord.contextOf(kind, hash)),
    seconds,
  ]);
}

/** @param use `lock` where the record will be consumed: of concurrent requests only one finds it */
export async function findRecord(
  holder: Holder,
  kind: string,
  id: string,
  use: 'read' | 'lock',
): Promise<OauthPayload | undefined> {
  const statement = OF_OWN[kind] ?? (use === 'lock' ? LOCK : FIND);
  const [row] = await holder.sql.query<Row>(statement, [kind, sha256(id)]);
  return row && opened(holder, kind, row);
}

export async function findRecordByUserCode(
  holder: Holder,
  kind: string,
  userCode: string,
): Promise<OauthPayload | undefined> {
  const [row] = await holder.sql.query<Row>(BY_USER_CODE, [kind, sha256(userCode)]);
  return row && opened(holder, kind, row);
}

/** All of a kind, the oldest first. */
export async function listRecords(holder: Holder, kind: string): Promise<OauthPayload[]> {
  const rows = await holder.sql.query<Row>(OF_KIND, [kind]);
  return rows.map((row) => opened(holder, kind, row));
}

/** @returns the connection, where access tokens of it ended with it */
export async function consumeRecord(sql: Sql, kind: string, id: string): Promise<string | null> {
  const hash = sha256(id);
  const ended = kind === 'RefreshToken' ? await sql.query<{ grant_id: string }>(VOID_SIBLINGS, [hash]) : [];
  await sql.query(CONSUME, [kind, hash]);
  return ended[0]?.grant_id ?? null;
}

/** Seconds in which a refresh token may come again: its answer was lost, or several windows sent it at once. */
const REUSE_SECONDS = 60;

// All refreshes of a connection, one after the other.
const LOCK_TOKEN_FAMILY = named(`select g.hash from oauth_records t join oauth_records g
    on g.kind = 'Grant' and g.hash = encode(sha256(convert_to(t.grant_id, 'UTF8')), 'hex')
  where t.kind = 'RefreshToken' and t.hash = $1 for update of g`);
// The first use of a successor ends the others, with the access tokens of their transactions: their time lies before
// that of any reuse.
const VOID_SIBLINGS = named(`with void as (update oauth_records t set consumed_at = '2000-01-01' from oauth_records used
    where used.kind = 'RefreshToken' and used.hash = $1 and used.consumed_at is null
      and t.kind = 'RefreshToken' and t.grant_id = used.grant_id and t.consumed_at is null and t.hash <> used.hash
    returning t.grant_id, t.created_at)
  delete from oauth_records a using void
  where a.kind = 'AccessToken' and a.grant_id = void.grant_id and a.created_at = void.created_at returning a.grant_id`);
const REPEATABLE = named(`select hash from oauth_records used where kind = 'RefreshToken' and hash = $1
  and consumed_at > now() - make_interval(secs => $2) and not exists (select from oauth_records later
    where later.kind = 'RefreshToken' and later.grant_id = used.grant_id and later.consumed_at > used.consumed_at)`);

/** Serialises the refreshes of the connection that a refresh token is of, until the end of the transaction. */
export async function lockTokenFamily(sql: Sql, token: string): Promise<void> {
  await sql.query(LOCK_TOKEN_FAMILY, [sha256(token)]);
}

/**
 * Whether a refresh token that was used may be used again (RFC 9700 section 4.14.2 leaves room for it): soon after its
 * first use, and while none of its successors has been used. Each use gets a successor of its own. Whoever uses one,
 * the client or a thief, ends the others, and whoever uses one of those, ends everything.
 */
export async function mayRepeatRefresh(sql: Sql, token: string): Promise<boolean> {
  return (await sql.query(REPEATABLE, [sha256(token), REUSE_SECONDS])).length > 0;
}

/** @returns the connection that it was of */
export async function destroyRecord(sql: Sql, kind: string, id: string): Promise<string | null> {
  const [row] = await sql.query<{ grant_id: string | null }>(DESTROY, [kind, sha256(id)]);
  return row?.grant_id ?? null;
}

export async function destroyRecordsOfGrant(sql: Sql, kind: string, grantId: string): Promise<void> {
  await sql.query(DESTROY_OF_GRANT, [kind, grantId]);
}

/**
 * Records that a device polled for its tokens. Polling too early adds five seconds to its interval (RFC 8628 section
 * 3.5).
 */
export async function isPolledTooSoon(sql: Sql, deviceCode: string): Promise<boolean> {
  const hash = sha256(deviceCode);
  const [row] = await sql.query<{ too_soon: boolean }>(POLL, [hash]);
  // Another poll of the same device is being answered.
  if (!row) return (await sql.query(FIND, ['DeviceCode', hash])).length > 0;
  return row.too_soon;
}

function opened({ secrets }: Holder, kind: string, { hash, payload, consumed_at }: Row): OauthPayload {
  const found = JSON.parse(secrets.open(payload, sealedColumns.oauthRecord.contextOf(kind, hash))) as OauthPayload;
  return consumed_at ? { ...found, consumed: Math.floor(Date.parse(consumed_at) / 1000) } : found;
}
