// Pending logins at other providers: the parameters that were sent, bound to the browser that began. Each attempt can
// be used once, and its contents are sealed.
import type { Context, Sql } from '../../../core/context';
import type { LoginChecks, ProvidedLogin } from '../../../core/accounts/login_provider';
import { sha256 } from '../../../core/accounts/tokens';
import { named } from '../../../db/statement';
import { sealedColumns } from '../../base/sealed_columns';

export interface LoginAttempt {
  /** Name of the provider. */
  provider: string;
  /** Path of our own where the person goes on. */
  return_to: string;
  /** The session that requested to link the login; null for a login. */
  session_id: string | null;
  checks: LoginChecks;
}

/** The provider has said who it is, and a two-factor code of ours is still to come. */
export interface PendingCode {
  provider: string;
  return_to: string;
  user_id: string;
  login: ProvidedLogin;
}

type Holder = Pick<Context, 'sql' | 'secrets'>;

/** The person may have to log in at the provider first. */
export const ATTEMPT_MINUTES = 15;

const SAVE = named(`insert into login_attempts (hash, browser_hash, payload, expires_at)
  values ($1, $2, $3, now() + make_interval(mins => ${ATTEMPT_MINUTES}))`);
const FIND = named(`select payload from login_attempts where hash = $1 and browser_hash = $2 and expires_at > now()`);
const TAKE = named(`delete from login_attempts where hash = $1 and browser_hash = $2 and expires_at > now()
  returning payload`);

/** @param id known to the browser and the provider @param browser secret of the cookie */
export async function saveAttempt<Payload extends LoginAttempt | PendingCode>(
  { sql, secrets }: Holder,
  id: string,
  browser: string,
  payload: Payload,
): Promise<void> {
  const hash = sha256(id);
  await sql.query(SAVE, [
    hash,
    sha256(browser),
    secrets.seal(JSON.stringify(payload), sealedColumns.loginAttempt.contextOf(hash)),
  ]);
}

/** An attempt of this browser, which it stays; null where there is none. */
export function findAttempt<Payload>(holder: Holder, id: string, browser: string): Promise<Payload | null> {
  return open(holder, FIND, id, browser);
}

/** An attempt of this browser, once: of several at the same time one gets it. */
export function takeAttempt<Payload>(holder: Holder, id: string, browser: string): Promise<Payload | null> {
  return open(holder, TAKE, id, browser);
}

async function open<Payload>(
  { sql, secrets }: Holder,
  statement: Parameters<Sql['query']>[0],
  id: string,
  browser: string,
): Promise<Payload | null> {
  const hash = sha256(id);
  const [row] = await sql.query<{ payload: string }>(statement, [hash, sha256(browser)]);
  return row ? (JSON.parse(secrets.open(row.payload, sealedColumns.loginAttempt.contextOf(hash))) as Payload) : null;
}
