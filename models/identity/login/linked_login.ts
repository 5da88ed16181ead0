// Logins at other providers, linked to users. A person is identified by issuer and subject; the e-mail address only
// selects the user at the first login, and only where the user cannot have been taken over before.
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { mintId } from '../../../core/ids';
import type { LoginProviderSetting, ProvidedLogin } from '../../../core/accounts/login_provider';
import { named } from '../../../db/statement';
import { noteChange } from '../../base/row';
import { createUser, currentUser, findUser, findUserById, sessionUser, type UserRow } from '../user';

interface LinkedLoginRow {
  id: string;
  provider: string;
  email: string | null;
  created_at: string;
  last_used_at: string | null;
}

const OWNER = named('select user_id from linked_logins where issuer = $1 and subject = $2');
const COLUMNS = 'id, provider, email, created_at, last_used_at';
const OF_USER = named(`select ${COLUMNS} from linked_logins where user_id = $1 order by id`);
const LINK = named(`insert into linked_logins (id, user_id, provider, issuer, subject, email)
  values ($1, $2, $3, $4, $5, $6)`);
const UNLINK = named(`delete from linked_logins where id = $1 and user_id = $2 returning ${COLUMNS}`);
const USED = named('update linked_logins set last_used_at = now() where issuer = $1 and subject = $2');
const LOCK_USER = named('select 1 from users where id = $1 for update');
const CONFIRM = named('update users set email_confirmed_at = coalesce(email_confirmed_at, now()) where id = $1');
// The user has never had a way to log in, or the operator has approved linking by e-mail for the next login.
const AWAITS_LINK =
  named(`select 1 from users u where u.id = $1 and (coalesce(u.link_by_email_until, '-infinity') > now()
  or (u.password_hash is null and not exists (select 1 from linked_logins l where l.user_id = u.id)))`);
const END_WAITING = named('update users set link_by_email_until = null where id = $1');
const IS_INVITED = named('select 1 from invitations where email = $1 and expires_at > now() limit 1');
const AWAIT_LINK = named(`update users set link_by_email_until = now() + make_interval(days => $2) where id = $1`);

/** Days in which a login is linked by its e-mail address, once the operator has allowed it. */
const LINK_BY_EMAIL_DAYS = 7;

/** The user that a login is linked to; null if it is not linked. */
export async function userOfLogin(ctx: Context, { issuer, subject }: ProvidedLogin): Promise<UserRow | null> {
  const [row] = await ctx.sql.query<{ user_id: string }>(OWNER, [issuer, subject]);
  return row ? findUserById(ctx, row.user_id) : null;
}

/**
 * The user for a login at its first use, by the verified e-mail address: a user without any login so far, or a new one
 * for an invited address. @throws LoginRefusal
 */
export async function matchLogin(
  ctx: Context,
  { title }: LoginProviderSetting,
  login: ProvidedLogin,
): Promise<UserRow | 'new'> {
  const { email, email_verified } = login;
  if (!email || !email_verified)
    throw new LoginRefusal(
      `This login of ${title} belongs to no user, and ${title} did not confirm your e-mail address. ` +
        `If you have a user, log in another way and link ${title} under /account/logins.`,
    );
  const user = await findUser(ctx, email);
  if (user && (await ctx.sql.query(AWAITS_LINK, [user.id])).length) return user;
  if (user)
    throw new LoginRefusal(
      `A user with the e-mail address ${email} exists, and this login of ${title} is not linked to it. Log in as you ` +
        `did before, then link ${title} under /account/logins.`,
    );
  if ((await ctx.sql.query(IS_INVITED, [email])).length) return 'new';
  throw new LoginRefusal(
    `Nobody with the e-mail address ${email} is invited. Ask an owner of a project to invite you.`,
  );
}

/** Makes the user of an invited person. The invitation is accepted afterwards, by its link. @throws already_exists */
export function createInvitedUser(ctx: Context, { email, name }: ProvidedLogin): Promise<UserRow> {
  return createUser(ctx, { email: email ?? '', name: name ?? email ?? '', password_hash: null });
}

/** Links what matchLogin has found. @throws already_exists where a login was linked meanwhile; LoginRefusal */
export async function linkMatched(
  ctx: Context,
  setting: LoginProviderSetting,
  login: ProvidedLogin,
  user: UserRow,
): Promise<void> {
  await ctx.sql.query(LOCK_USER, [user.id]);
  // A password that was set, or another login that was linked, since then.
  if (!(await ctx.sql.query(AWAITS_LINK, [user.id])).length)
    throw new LoginRefusal(
      `The user ${user.email} now has another way to log in. Log in that way, then link ` +
        `${setting.title} under /account/logins.`,
    );
  await insertLink(ctx, setting, login, user.id);
  await ctx.sql.query(END_WAITING, [user.id]);
  if (login.email === user.email) await ctx.sql.query(CONFIRM, [user.id]);
}

/**
 * Links a login to the user of the session. @throws already_exists where another user has the login, or this one has
 * another login
 */
export async function linkLogin(ctx: Context, setting: LoginProviderSetting, login: ProvidedLogin): Promise<void> {
  const { id } = sessionUser(ctx);
  await ctx.sql.query(LOCK_USER, [id]);
  const owner = await userOfLogin(ctx, login);
  if (owner)
    throw problem(
      'already_exists',
      owner.id === id
        ? `This login of ${setting.title} is already linked to your user.`
        : `This login of ${setting.title} is linked to another user.`,
    );
  const linked = await insertLink(ctx, setting, login, id);
  noteChange(ctx, { type: 'linked_login', id: linked, name: setting.title });
}

/** The person's logins at other providers, the oldest first. */
export function listLinkedLogins(ctx: Context): Promise<LinkedLoginRow[]> {
  return ctx.sql.query<LinkedLoginRow>(OF_USER, [sessionUser(ctx).id]);
}

/** @throws not_found, resource_protected for the last way to log in */
export async function unlinkLogin(ctx: Context, id: string): Promise<void> {
  const user = sessionUser(ctx);
  // Two at the same time: the second sees what the first has left.
  await ctx.sql.query(LOCK_USER, [user.id]);
  const [unlinked] = await ctx.sql.query<LinkedLoginRow>(UNLINK, [id, user.id]);
  if (!unlinked) throw problem('not_found', 'You have no such login.');
  if (!(await hasWayToLogIn(ctx)))
    throw problem('resource_protected', 'This is your last way to log in. Set a password or link another login first.');
  noteChange(ctx, { type: 'linked_login', id, name: titleOf(ctx, unlinked.provider) });
}

/** Notes the use of a login. */
export async function noteLoginUse(ctx: Context, { issuer, subject }: ProvidedLogin): Promise<void> {
  await ctx.sql.query(USED, [issuer, subject]);
}

/** The operator says that the next login with the verified e-mail address of the user is theirs. */
export async function awaitLink(ctx: Context, userId: string): Promise<void> {
  await ctx.sql.query(AWAIT_LINK, [userId, LINK_BY_EMAIL_DAYS]);
}

/** Name of a provider for people, also of one that is not configured any more. */
export function titleOf({ config }: Pick<Context, 'config'>, provider: string): string {
  return config.loginProviders.find(({ name }) => name === provider)?.title ?? provider;
}

/** Why a login leads to no user: a sentence for the person. */
export class LoginRefusal extends Error {
  override readonly name = 'LoginRefusal';
}

async function insertLink(
  ctx: Context,
  { name }: LoginProviderSetting,
  { issuer, subject, email }: ProvidedLogin,
  userId: string,
): Promise<string> {
  const id = mintId('lgn');
  await ctx.sql.query(LINK, [id, userId, name, issuer, subject, email]);
  return id;
}

async function hasWayToLogIn(ctx: Context): Promise<boolean> {
  const { password_hash } = await currentUser(ctx);
  if (password_hash && ctx.config.loginPassword === 'on') return true;
  const configured = new Set(ctx.config.loginProviders.map(({ name }) => name));
  return (await listLinkedLogins(ctx)).some(({ provider }) => configured.has(provider));
}
