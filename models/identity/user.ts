// People who log in. A user belongs to the account that owns what they make.
import type { Context, Identity } from '../../core/context';
import { problem } from '../../core/errors';
import { mintId } from '../../core/ids';
import { hashPassword, passwordProblem, verifyPassword } from '../../core/accounts/passwords';
import { noteChange } from '../base/row';
import { named } from '../../db/statement';
import type { AccountStatus } from '../../schema/types';

export interface UserRow {
  id: string;
  account_id: string;
  email: string;
  name: string;
  password_hash: string | null;
  /** Sealed. */
  totp_secret: string | null;
  totp_confirmed_at: string | null;
  email_confirmed_at: string | null;
  created_at: string;
  account_name: string;
  account_status: AccountStatus;
}

const SELECT = `select u.id, u.account_id, u.email, u.name, u.password_hash, u.totp_secret, u.totp_confirmed_at,
  u.email_confirmed_at, u.created_at, a.name as account_name, a.status as account_status
  from users u join accounts a on a.id = u.account_id`;
const BY_EMAIL = named(`${SELECT} where u.email = $1`);
const BY_ID = named(`${SELECT} where u.id = $1`);
const INSERT_ACCOUNT = named('insert into accounts (id, name) values ($1, $2)');
const INSERT = named('insert into users (id, account_id, email, name, password_hash) values ($1, $2, $3, $4, $5)');
const SET_PASSWORD = named('update users set password_hash = $2 where id = $1');
const END_OTHERS = named('delete from sessions where user_id = $1 and id is distinct from $2');
const VOID_RESETS = named(`update account_links set used_at = now()
  where user_id = $1 and purpose in ('password_reset', 'first_start') and used_at is null`);
const RESET_TWO_FACTOR = named(
  `update users set totp_secret = null, totp_confirmed_at = null, totp_last_step = 0, code_failures = 0,
    code_retry_at = null, known_code_failures = 0, known_code_retry_at = null where id = $1`,
);
const DROP_RECOVERY = named('delete from recovery_codes where user_id = $1');

/** So long ago a login may be that stands for a password. */
const NEW_SESSION_MINUTES = 15;

/** E-mails are compared without case. */
export function normalEmail(email: string): string {
  return email.trim().toLowerCase();
}

export async function findUser(ctx: Context, email: string): Promise<UserRow | null> {
  const [row] = await ctx.sql.query<UserRow>(BY_EMAIL, [normalEmail(email)]);
  return row ?? null;
}

export async function findUserById(ctx: Context, id: string): Promise<UserRow | null> {
  const [row] = await ctx.sql.query<UserRow>(BY_ID, [id]);
  return row ?? null;
}

/** The person of the session. @throws session_required where the user has gone */
export async function currentUser(ctx: Context): Promise<UserRow> {
  const [row] = await ctx.sql.query<UserRow>(BY_ID, [sessionUser(ctx).id]);
  if (!row) throw problem('session_required');
  return row;
}

/** Who the session acts as. @throws session_required */
export function sessionUser(ctx: Context): NonNullable<Identity['user']> {
  const user = ctx.identity?.user;
  if (!user) throw problem('session_required');
  return user;
}

/** Creates a user account. @throws already_exists with field email */
export async function createUser(
  ctx: Context,
  input: { email: string; name: string; password_hash: string | null },
): Promise<UserRow> {
  const account_id = mintId('acc');
  const email = normalEmail(input.email);
  await ctx.sql.query(INSERT_ACCOUNT, [account_id, input.name]);
  await ctx.sql.query(INSERT, [mintId('usr'), account_id, email, input.name, input.password_hash]);
  return (await findUser(ctx, email)) as UserRow;
}

/**
 * Verifies the person's password again, before an action that a stolen session must not perform. A user without a
 * password must have logged in recently instead. @throws validation_failed on `password`, rate_limited
 */
export async function requirePassword(ctx: Context, password: string): Promise<UserRow> {
  const user = await currentUser(ctx);
  await ctx.attempt(`password ${user.id}`);
  if (!user.password_hash || ctx.config.loginPassword === 'off') return requireNewSession(ctx, user);
  if (!(await verifyPassword(password, user.password_hash))) throw wrongField('password', 'is wrong');
  return user;
}

function requireNewSession(ctx: Context, user: UserRow): UserRow {
  const age = Date.now() - Date.parse(ctx.identity?.created_at ?? '');
  if (age < NEW_SESSION_MINUTES * 60_000) return user;
  throw wrongField(
    'password',
    `is not used by this user. Log in again, then repeat the request within ${NEW_SESSION_MINUTES} minutes`,
  );
}

/**
 * Where passwords are disabled, all logins, changes and registrations by password are rejected.
 * @throws engine_unavailable
 */
export function requirePasswordLogin({ config }: Pick<Context, 'config'>): void {
  if (config.loginPassword === 'on') return;
  const titles = config.loginProviders.map(({ title }) => title).join(' or ');
  throw problem('engine_unavailable', `This installation does not accept passwords. Log in with ${titles}.`);
}

/**
 * The hash of a new password of the person with this e-mail and name. @throws validation_failed on `field` where it is
 * too short, too long or easily guessed
 */
export async function hashNewPassword(
  password: string,
  field: string,
  { email, name }: Pick<UserRow, 'email' | 'name'>,
): Promise<string> {
  const wrong = passwordProblem(password, [email, name]);
  if (wrong) throw problem('validation_failed', undefined, { errors: [{ field, ...wrong }] });
  return hashPassword(password);
}

/** Turns two-factor off and forgets its codes. */
export async function resetTwoFactor(ctx: Context, userId: string): Promise<void> {
  await ctx.sql.query(RESET_TWO_FACTOR, [userId]);
  await ctx.sql.query(DROP_RECOVERY, [userId]);
}

/** Sets a user's password. Ends their sessions but one, and voids links that would set another password. */
export async function setPassword(
  ctx: Context,
  userId: string,
  hash: string,
  keptSession = ctx.identity?.id ?? null,
): Promise<void> {
  await ctx.sql.query(SET_PASSWORD, [userId, hash]);
  await ctx.sql.query(END_OTHERS, [userId, keptSession]);
  await ctx.sql.query(VOID_RESETS, [userId]);
  await ctx.forget({ user_id: userId });
}

/**
 * The person sets their own password, which was checked before.
 * @param changed what changes with it, for the activity entry
 */
export async function changePassword(ctx: Context, hash: string, changed: string[] = []): Promise<void> {
  const { id, name } = sessionUser(ctx);
  await setPassword(ctx, id, hash);
  noteChange(ctx, { type: 'user', id, name }, ['password', ...changed]);
}

/** A 422 about one field. */
export function wrongField(field: string, detail: string): Error {
  return problem('validation_failed', undefined, { errors: [{ field, code: 'invalid_format', detail }] });
}
