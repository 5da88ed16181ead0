// A login at another provider: the redirect there, the callback, and our two-factor code where the provider has not
// required a second factor.
import { LOGIN_PATHS, loginCallbackPath, ownPath } from '../../core/mail/account_paths';
import type { Context } from '../../core/context';
import { Problem, problem } from '../../core/errors';
import { escapeHtml } from '../../core/protocols/html';
import {
  mintLoginChecks,
  type LoginProviderClient,
  type LoginProviderSetting,
  type ProvidedLogin,
} from '../../core/accounts/login_provider';
import { mintSecret } from '../../core/accounts/tokens';
import { requireSameOrigin } from '../graphql/request';
import { recordActivity } from '../../models/projects/activity';
import { noteChange } from '../../models/base/row';
import {
  findAttempt,
  saveAttempt,
  takeAttempt,
  type LoginAttempt,
  type PendingCode,
} from '../../models/identity/login/attempt';
import {
  createInvitedUser,
  linkLogin,
  linkMatched,
  matchLogin,
  noteLoginUse,
  userOfLogin,
} from '../../models/identity/login/linked_login';
import { startSession } from '../../models/identity/session';
import { requireSecondFactor } from '../../models/identity/two_factor';
import { findUserById, requirePassword, type UserRow } from '../../models/identity/user';
import { textOf } from '../plain_page';
import { browserCookie, readBrowserSecret } from './browser_cookie';
import { codeForm } from './pages';
import { goOn, failureText, requireProvider, showPage, type Visit } from './visit';
import { addressBlock } from '../../core/protocols/addresses';
import { ADDRESS_TIMES, findKnownBrowser } from '../../models/identity/login_attempts';

const OVER = 'This login has expired, is already finished, or was started in another browser. Start again.';

/** POST: sends the browser to the provider. With `link`, for a person who is logged in. */
export async function beginLogin(visit: Visit): Promise<void> {
  const { platform, request, response, ctx, browser, form } = visit;
  requireSameOrigin(request, platform.config.baseUrl);
  await ctx.attempt(`login provider ${addressBlock(ctx.address)}`, ADDRESS_TIMES);
  const setting = requireProvider(ctx, request.params.name);
  const isLink = textOf(form.link) !== '';
  if (isLink) await requirePassword(ctx, textOf(form.password));
  const checks = mintLoginChecks();
  const back = platform.config.baseUrl + loginCallbackPath(setting.name);
  const url = await clientOf(ctx, setting).authorizationUrl(back, checks);
  const return_to = ownPath(textOf(form.return_to));
  const session_id = isLink ? (ctx.identity?.id ?? null) : null;
  await saveAttempt<LoginAttempt>(ctx, checks.state, browser, {
    provider: setting.name,
    return_to,
    session_id,
    checks,
  });
  // Not by a redirect: browsers would hold it, and all redirects behind it, to the addresses for forms of the page.
  ctx.reply.headers.Refresh = `0; url=${url}`;
  response.appendHeader('Set-Cookie', browserCookie(platform.config, browser));
  const { title } = setting;
  const leading = `<p><a href="${escapeHtml(url)}">Continue to ${escapeHtml(title)}</a></p>`;
  const page = { title: `Log in at ${title}`, text: `You are being sent to ${title}.`, more: leading };
  showPage(visit, { status: 200, ...page, returnTo: return_to });
}

/** GET: the provider sends the browser back. */
export async function finishLogin(visit: Visit): Promise<void> {
  const { platform, request, ctx } = visit;
  const setting = requireProvider(ctx, request.params.name);
  const attempt = await takeAttempt<LoginAttempt>(ctx, textOf(request.query.state), browserOf(visit));
  // A state of another provider: its answer must not be redeemed here (mix-up, RFC 9700 section 4.4).
  if (!attempt || attempt.provider !== setting.name) throw problem('not_found', OVER);
  const login = await clientOf(ctx, setting).finish(
    new URL(platform.config.baseUrl + request.originalUrl),
    attempt.checks,
  );
  if (attempt.session_id !== null) return link(visit, setting, attempt, login);
  const found = (await userOfLogin(ctx, login)) ?? (await matchLogin(ctx, setting, login));
  const user = found === 'new' ? null : found;
  requireActive(user);
  if (user?.totp_confirmed_at && !login.multi_factor) return askCode(visit, { ...attempt, user_id: user.id, login });
  await ctx.transact((inner) => enter(inner, setting, login, user));
  goOn(visit, attempt.return_to);
}

/** GET shows the form for the two-factor code, POST verifies the code. */
export async function finishWithCode(visit: Visit): Promise<void> {
  const { platform, request, ctx, form } = visit;
  const isAnswer = request.method === 'POST';
  const id = textOf(isAnswer ? form.attempt : request.query.attempt);
  const browser = browserOf(visit);
  const pending = await findAttempt<PendingCode>(ctx, id, browser);
  if (!pending) throw problem('not_found', OVER);
  const page = { id, returnTo: pending.return_to };
  if (!isAnswer) return showCodePage(visit, { ...page, status: 200, failure: '' });
  requireSameOrigin(request, platform.config.baseUrl);
  const setting = requireProvider(ctx, pending.provider);
  const user = await findUserById(ctx, pending.user_id);
  requireActive(user);
  if (!user) throw problem('not_found', OVER);
  try {
    const isKnown = (await findKnownBrowser(ctx, user.email)) !== null;
    await requireSecondFactor(ctx, user, textOf(form.code) || null, isKnown);
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error;
    Object.assign(ctx.reply.headers, error.headers);
    return showCodePage(visit, { ...page, status: error.status, failure: failureText(error) });
  }
  await ctx.transact(async (inner) => {
    if (!(await takeAttempt(inner, id, browser))) throw problem('not_found', OVER);
    await enter(inner, setting, pending.login, user);
  });
  goOn(visit, pending.return_to);
}

async function askCode(visit: Visit, { provider, return_to, user_id, login }: PendingCode): Promise<void> {
  const id = mintSecret('lgc_');
  await saveAttempt<PendingCode>(visit.ctx, id, visit.browser, { provider, return_to, user_id, login });
  goOn(visit, `${LOGIN_PATHS.code}?attempt=${id}`);
}

interface CodePage {
  id: string;
  returnTo: string;
  status: number;
  failure: string;
}

function showCodePage(visit: Visit, { id, failure, ...page }: CodePage): void {
  const text = 'Two-factor authentication is on for your user.';
  showPage(visit, { ...page, title: 'Two-factor code', text, more: codeForm(id, failure) });
}

/** Begins the session. @param user null: a new user is created from an invitation */
async function enter(
  ctx: Context,
  setting: LoginProviderSetting,
  login: ProvidedLogin,
  user: UserRow | null,
): Promise<void> {
  const owner = await userOfLogin(ctx, login);
  const person = owner ?? user ?? (await createInvitedUser(ctx, login));
  if (user && person.id !== user.id) throw problem('not_found', OVER);
  if (!owner) await linkMatched(ctx, setting, login, person);
  await noteLoginUse(ctx, login);
  await startSession(ctx, person);
  recordActivity(ctx, 'session.created');
  if (owner) return;
  noteChange(ctx, { type: 'user', id: person.id, name: person.name });
  recordActivity(ctx, 'login.linked');
}

/** Requires that the session that requested the link is still the current one. */
async function link(
  visit: Visit,
  setting: LoginProviderSetting,
  { session_id, return_to }: LoginAttempt,
  login: ProvidedLogin,
): Promise<void> {
  const { ctx } = visit;
  if (!ctx.identity || ctx.identity.id !== session_id) throw problem('session_required', OVER);
  requireActive(ctx.identity);
  await ctx.transact(async (inner) => {
    await linkLogin(inner, setting, login);
    recordActivity(inner, 'login.linked');
  });
  goOn(visit, return_to);
}

function requireActive(person: { account_status: string } | null): void {
  if (person?.account_status === 'suspended') throw problem('account_suspended');
}

function browserOf({ platform, request }: Visit): string {
  return readBrowserSecret(platform.config, request) ?? '';
}

function clientOf({ probes }: Context, { name }: LoginProviderSetting): LoginProviderClient {
  const client = probes.login(name);
  if (!client) throw problem('not_found', 'This installation knows no such provider.');
  return client;
}
