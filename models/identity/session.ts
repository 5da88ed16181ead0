// Sessions of the dashboard: 256 random bits in a cookie, their SHA-256 in the database.
import type { Context, Identity } from '../../core/context';
import { problem } from '../../core/errors';
import { mintId } from '../../core/ids';
import { limits } from '../../core/limits';
import { verifyPassword } from '../../core/accounts/passwords';
import { knownBrowserCookie } from '../../core/accounts/known_browser';
import { sessionCookie } from '../../core/accounts/session_cookie';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import { addressBlock } from '../../core/protocols/addresses';
import { sessionIdentity } from './identity';
import { countLogin, findKnownBrowser } from './login_attempts';
import type { Page } from '../base/page';
import { newest, noteChange, type NewestArguments } from '../base/row';
import { named } from '../../db/statement';
import { isOperator } from './operator';
import { recoveryCodesLeft, requireSecondFactor } from './two_factor';
import { currentUser, findUser, normalEmail, requirePasswordLogin, sessionUser, type UserRow } from './user';
import type { AccountStatus } from '../../schema/types';

export interface SessionRow {
  id: string;
  address: string;
  user_agent: string;
  current: boolean;
  created_at: string;
  last_seen_at: string;
  expires_at: string;
}

export interface Viewer {
  user: { id: string; name: string; email: string };
  account: { id: string; name: string; status: AccountStatus };
  session: SessionRow;
  email_confirmed: boolean;
  two_factor_enabled: boolean;
  recovery_codes_left: number;
  is_operator: boolean;
}

const DAY_SECONDS = 86_400;
const ALIVE = `select id, address, user_agent, id = $2 as current, created_at, last_seen_at, expires_at from sessions
  where user_id = $1 and expires_at > now() and last_seen_at > now() - make_interval(hours => $3)`;
const CURRENT = named(`${ALIVE} and id = $2`);
const INSERT = named(
  `insert into sessions (id, hash, user_id, address, user_agent, expires_at)
    values ($1, $2, $3, $4, $5, now() + make_interval(days => $6))`,
);
const END = named('delete from sessions where id = $1 and user_id = $2 returning id');

/**
 * The user of an e-mail, a password and, where two-factor is on, a code. Takes as long for an unknown e-mail.
 * @throws credentials_invalid, two_factor_required, account_suspended, rate_limited, engine_unavailable
 */
export async function authenticateSession(
  ctx: Context,
  input: { email: string; password: string; code?: string | null },
): Promise<UserRow> {
  requirePasswordLogin(ctx);
  const email = normalEmail(input.email);
  const browser = await findKnownBrowser(ctx, email);
  await countLogin(ctx, email, browser);
  const user = await findUser(ctx, email);
  const stranger = browser === null ? addressBlock(ctx.address) : null;
  const right = await verifyPassword(input.password, user?.password_hash ?? null, stranger);
  if (!user || !right) throw problem('credentials_invalid', 'E-mail or password is wrong.');
  await requireSecondFactor(ctx, user, input.code ?? null, browser !== null);
  if (user.account_status === 'suspended') throw problem('account_suspended');
  return user;
}

/**
 * Begins a session and sets its cookie; a session that the browser had before ends. The context acts as the user from
 * here on.
 */
export async function startSession(ctx: Context, user: UserRow): Promise<Viewer> {
  if (ctx.identity?.user) await endSession(ctx, ctx.identity.id, ctx.identity.user.id);
  const secret = mintSecret('ses_');
  const id = mintId('ses');
  await ctx.sql.query(INSERT, [id, sha256(secret), user.id, ctx.address, ctx.user_agent, limits.sessionTtlDays]);
  ctx.reply.headers['Set-Cookie'] = sessionCookie(ctx.config, secret, limits.sessionTtlDays * DAY_SECONDS);
  ctx.identity = await sessionIdentity(ctx.sql, sha256(secret), limits.sessionIdleHours);
  noteChange(ctx, { type: 'session', id, name: null });
  return viewer(ctx);
}

/** Ends the session of the request and clears its cookie. */
export async function logout(ctx: Context): Promise<void> {
  const { id } = ctx.identity as Identity;
  await endSession(ctx, id, sessionUser(ctx).id);
  clearCookie(ctx);
  noteChange(ctx, { type: 'session', id, name: null });
}

/** Ends one of the person's sessions. @throws not_found */
export async function revokeSession(ctx: Context, id: string): Promise<void> {
  if (!(await endSession(ctx, id, sessionUser(ctx).id))) throw problem('not_found', 'You have no such session.');
  if (id === ctx.identity?.id) clearCookie(ctx);
  noteChange(ctx, { type: 'session', id, name: null });
}

/** One page of the person's sessions that have not ended. */
export function listSessions(ctx: Context, args: NewestArguments): Promise<Page<SessionRow>> {
  return newest<SessionRow>(ctx, args, { text: ALIVE, values: ofSession(ctx), id: 'id', idOf: (row) => row.id });
}

/** Who is logged in. */
export async function viewer(ctx: Context): Promise<Viewer> {
  const user = await currentUser(ctx);
  const [session] = await ctx.sql.query<SessionRow>(CURRENT, ofSession(ctx));
  if (!session) throw problem('session_required');
  return {
    user: { id: user.id, name: user.name, email: user.email },
    account: { id: user.account_id, name: user.account_name, status: user.account_status },
    session,
    email_confirmed: user.email_confirmed_at !== null,
    two_factor_enabled: user.totp_confirmed_at !== null,
    recovery_codes_left: await recoveryCodesLeft(ctx, user.id),
    is_operator: await isOperator(ctx.sql, user.id),
  };
}

function ofSession(ctx: Context): unknown[] {
  return [sessionUser(ctx).id, ctx.identity?.id, limits.sessionIdleHours];
}

async function endSession(ctx: Context, id: string, userId: string): Promise<boolean> {
  const ended = await ctx.sql.query(END, [id, userId]);
  await ctx.forget({ key_id: id });
  return ended.length > 0;
}

/** Of the session, nothing stays in the browser but that the person was there. */
function clearCookie(ctx: Context): void {
  const known = knownBrowserCookie(ctx, normalEmail(sessionUser(ctx).email));
  ctx.reply.headers['Set-Cookie'] = [sessionCookie(ctx.config, '', 0), known];
}
