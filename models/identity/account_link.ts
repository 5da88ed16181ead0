// Links that people get by mail: to set a new password, or to confirm an address. Only the SHA-256 of a token is
// stored; each is used once.
import { operatorCommand } from '../../core/catalog/setup_command';
import type { Config } from '../../core/config';
import type { Context, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import {
  emailConfirmationMail,
  passwordChangedMail,
  passwordResetMail,
  type PlatformMail,
} from '../../core/mail/platform_mail';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import { named } from '../../db/statement';
import { noteChange } from '../base/row';
import { queueMail, queueRequestedMail } from '../base/mail_outbox';
import { currentUser, hashNewPassword, normalEmail, requirePasswordLogin, setPassword, type UserRow } from './user';
import { addressBlock } from '../../core/protocols/addresses';
import { ADDRESS_TIMES } from './login_attempts';

type Purpose = 'password_reset' | 'email_confirmation' | 'first_start';

const RESET_MINUTES = 60;
const CONFIRMATION_HOURS = 48;
/** Rate limit of links per person, independent of the requester. */
const LINKS_PER_HOUR = 3;
/** The count needs them for an hour. */
const KEPT_HOURS = 2;

const PRUNE = named(`delete from account_links where expires_at < now() - make_interval(hours => ${KEPT_HOURS})`);
// The lock makes requests at the same time count each other.
const LOCK = named('select 1 from users where id = $1 for no key update');
const COUNT = named(`select count(*)::int as count from account_links
  where user_id = $1 and purpose = $2 and created_at > now() - interval '1 hour'`);
const INSERT = named(`insert into account_links (hash, purpose, user_id, expires_at)
  values ($1, $2, $3, now() + make_interval(mins => $4))`);
const OPEN = named(`select u.id, u.email, u.name, u.account_id from account_links l join users u on u.id = l.user_id
  where l.hash = $1 and l.purpose = $2 and l.used_at is null and l.expires_at > now()`);
const USE = named(`update account_links l set used_at = now() from users u
  where u.id = l.user_id and l.hash = $1 and l.purpose = $2 and l.used_at is null and l.expires_at > now()
  returning u.id, u.email, u.name, u.account_id`);
const CONFIRM = named(`update users set email_confirmed_at = coalesce(email_confirmed_at, now()) where id = $1`);
const BY_EMAIL = named(`select u.id, u.name from users u join accounts a on a.id = u.account_id
  where u.email = $1 and a.status = 'active'`);

type Person = Pick<UserRow, 'id' | 'email' | 'name' | 'account_id'>;

/**
 * Outside of the transaction: a refusal must stay counted.
 * @returns whether a mail is due: where others go on requesting them, the person has had the mails of an hour, and is
 * answered as usual
 * @throws engine_unavailable, rate_limited
 */
export async function prepareResetRequest(ctx: Context, email: string): Promise<boolean> {
  requirePasswordLogin(ctx);
  requireMail(ctx);
  await ctx.attempt(`password reset address ${addressBlock(ctx.address)}`);
  return ctx.attempt(`password reset e-mail ${normalEmail(email)}`).then(
    () => true,
    () => false,
  );
}

/**
 * Queues a link for an address, if it belongs to a user. The host that composes the mail looks up the user: neither the
 * response nor its time reveals whether the user exists.
 */
export async function requestPasswordReset(ctx: Context, email: string): Promise<void> {
  if (ctx.probed) await queueRequestedMail(ctx, normalEmail(email), { requested: 'password_reset' });
}

/** The requested mail; null where the address has no user, or the rate limit is reached. */
export async function writeResetMail(sql: Sql, { baseUrl }: Config, email: string): Promise<PlatformMail | null> {
  const [user] = await sql.query<{ id: string; name: string }>(BY_EMAIL, [email]);
  const token = user && (await newLink(sql, user.id, 'password_reset', RESET_MINUTES));
  return token ? passwordResetMail({ name: user.name, token, minutes: RESET_MINUTES, baseUrl }) : null;
}

/**
 * What a reset needs before its transaction: the hash of the new password.
 * @throws not_found, validation_failed on `new_password`, rate_limited, engine_unavailable
 */
export async function prepareReset(ctx: Context, token: string, newPassword: string): Promise<string> {
  requirePasswordLogin(ctx);
  await ctx.attempt(`password reset link ${addressBlock(ctx.address)}`, ADDRESS_TIMES);
  const [user] = await ctx.sql.query<Person>(OPEN, [sha256(token), 'password_reset']);
  if (!user) throw noLink();
  return hashNewPassword(newPassword, 'new_password', user);
}

/** Sets the password, once per link, and ends all sessions. Two-factor authentication stays. @throws not_found */
export async function resetPassword(ctx: Context, token: string, hash: string): Promise<void> {
  const [user] = await ctx.sql.query<Person>(USE, [sha256(token), 'password_reset']);
  if (!user) throw noLink();
  await ctx.sql.query(CONFIRM, [user.id]);
  await setPassword(ctx, user.id, hash, null);
  await queueMail(ctx, [user.email], passwordChangedMail({ name: user.name, baseUrl: ctx.config.baseUrl }));
  noteChange(ctx, { type: 'user', id: user.id, name: user.name }, ['password']);
  ctx.activity.person = user;
}

/** Sends a link to the address of the person. @throws engine_unavailable, invalid_state, rate_limited */
export async function requestEmailConfirmation(ctx: Context): Promise<void> {
  requireMail(ctx);
  const user = await currentUser(ctx);
  if (user.email_confirmed_at)
    throw problem('invalid_state', 'The e-mail address is already confirmed.', {
      resource_status: 'confirmed',
      allowed_statuses: ['unconfirmed'],
    });
  const token = await newLink(ctx.sql, user.id, 'email_confirmation', CONFIRMATION_HOURS * 60);
  if (!token)
    throw problem(
      'rate_limited',
      `At most ${LINKS_PER_HOUR} messages are sent within an hour. Try again later.`,
      {},
      { 'Retry-After': '3600' },
    );
  const { name, email } = user;
  const parts = { name, token, hours: CONFIRMATION_HOURS, baseUrl: ctx.config.baseUrl };
  await queueMail(ctx, [email], emailConfirmationMail(parts));
  noteChange(ctx, { type: 'user', id: user.id, name });
}

/** The link proves that its holder reads the mail of the address. @throws not_found */
export async function confirmEmail(ctx: Context, token: string): Promise<void> {
  const [user] = await ctx.sql.query<Person>(USE, [sha256(token), 'email_confirmation']);
  if (!user) throw noLink();
  await ctx.sql.query(CONFIRM, [user.id]);
  noteChange(ctx, { type: 'user', id: user.id, name: user.name }, ['email_confirmed_at']);
  ctx.activity.person = user;
}

/** The token of a new link; null where the person has had too many. */
async function newLink(sql: Sql, userId: string, purpose: Purpose, minutes: number): Promise<string | null> {
  await sql.query(PRUNE, []);
  await sql.query(LOCK, [userId]);
  const [links] = await sql.query<{ count: number }>(COUNT, [userId, purpose]);
  if ((links?.count ?? 0) >= LINKS_PER_HOUR) return null;
  const token = mintSecret(purpose === 'password_reset' ? 'pwr_' : 'cfm_');
  await sql.query(INSERT, [sha256(token), purpose, userId, minutes]);
  return token;
}

function requireMail({ config }: Context): void {
  if (config.smtpPorts.length) return;
  const what = 'This installation sends no mail: the operator has set SMTP_PORTS to 0.';
  throw problem(
    'engine_unavailable',
    `${what} The operator sets passwords with \`${operatorCommand()} user password\`.`,
  );
}

function noLink(): Error {
  return problem('not_found', 'The link does not exist, was already used, or has expired.');
}
