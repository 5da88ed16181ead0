// Routes of the pages for logging in, and for the logins at other providers that belong to a person.
import express, { type Request, type Response, type Router } from 'express';
import { LOGIN_PATHS, ownPath } from '../../core/mail/account_paths';
import { Problem, problem } from '../../core/errors';
import { requireSameOrigin } from '../graphql/request';
import { runDocument } from '../graphql/run_document';
import { listLinkedLogins, titleOf } from '../../models/identity/login/linked_login';
import { currentUser } from '../../models/identity/user';
import type { Platform } from '../platform/platform';
import type { Core } from '../../resolvers';
import { textOf } from '../plain_page';
import { linkedLogins, loginForms } from './pages';
import { beginLogin, finishLogin, finishWithCode } from './provider_login';
import { goOn, openVisit, failureText, showFailure, showPage, type Visit } from './visit';

const FORM_BYTES_MAX = 16 * 1024;
const LOGIN = `mutation ($input: LoginInput!) { login(input: $input) { user { id } } }`;
const UNLINK = 'mutation ($id: ID!) { unlinkLogin(id: $id) }';

/** @param schema with the checks of the GraphQL face */
export function loginRoutes(platform: Platform, schema: () => Core['graphqlSchema']): Router {
  const router = express.Router();
  const form = express.urlencoded({ extended: false, limit: FORM_BYTES_MAX });
  const answer = (work: (visit: Visit) => Promise<void>) => async (request: Request, response: Response) => {
    try {
      await work(await openVisit(platform, schema(), request, response));
    } catch (error) {
      showFailure(platform, response, error);
    }
  };
  router.get(LOGIN_PATHS.login, answer(showLogin));
  router.post(LOGIN_PATHS.login, form, answer(logIn));
  router.post(`${LOGIN_PATHS.with}:name`, form, answer(beginOrExplain));
  router.get(`${LOGIN_PATHS.with}:name/callback`, answer(finishLogin));
  router.get(LOGIN_PATHS.code, answer(finishWithCode));
  router.post(LOGIN_PATHS.code, form, answer(finishWithCode));
  router.get(
    LOGIN_PATHS.linked,
    answer((visit) => showLinked(visit, 200, '')),
  );
  router.post(LOGIN_PATHS.linked, form, answer(unlink));
  return router;
}

async function showLogin(visit: Visit): Promise<void> {
  showLoginPage(
    visit,
    200,
    { email: '', failure: '', asksCode: false },
    ownPath(textOf(visit.request.query.return_to)),
  );
}

function showLoginPage(
  visit: Visit,
  status: number,
  last: { email: string; failure: string; asksCode: boolean },
  returnTo: string,
): void {
  const forms = loginForms(visit.platform.config, { ...last, action: LOGIN_PATHS.login, returnTo });
  const { host } = new URL(visit.platform.config.baseUrl);
  showPage(visit, { status, title: 'Log in', text: `Log in to ${host}.`, more: forms, returnTo });
}

/** With the password: the operation of the dashboard, with its limits. */
async function logIn(visit: Visit): Promise<void> {
  const { platform, schema, request, ctx, form } = visit;
  requireSameOrigin(request, platform.config.baseUrl);
  const [email, password, code] = [textOf(form.email), textOf(form.password), textOf(form.code)];
  const returnTo = ownPath(textOf(form.return_to));
  try {
    const input = { email, password, ...(code && { code }) };
    await runDocument(schema, ctx, { query: LOGIN, variables: { input } });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    Object.assign(ctx.reply.headers, error.headers);
    const asksCode = error.code === 'two_factor_required' || code !== '';
    return showLoginPage(visit, error.status, { email, failure: loginFailure(error), asksCode }, returnTo);
  }
  goOn(visit, returnTo);
}

/** What a person reads of a login that was refused. */
export function loginFailure({ code, detail }: Problem): string {
  if (code === 'two_factor_required') return `${detail} Enter your password again, with a code.`;
  return code === 'validation_failed' ? 'E-mail or password is wrong.' : detail;
}

/** Shows a wrong password on the login form itself. */
async function beginOrExplain(visit: Visit): Promise<void> {
  try {
    await beginLogin(visit);
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'validation_failed') throw error;
    await showLinked(visit, error.status, failureText(error));
  }
}

async function showLinked(visit: Visit, status: number, failure: string): Promise<void> {
  const { platform, ctx } = visit;
  if (!ctx.identity) return goOn(visit, `${LOGIN_PATHS.login}?return_to=${LOGIN_PATHS.linked}`);
  const rows = await listLinkedLogins(ctx);
  const linked = rows.map((row) => ({ ...row, title: titleOf(ctx, row.provider) }));
  const { email, password_hash } = await currentUser(ctx);
  const passwordOf = password_hash !== null && platform.config.loginPassword === 'on' ? email : null;
  const body = linkedLogins(platform.config, { linked, passwordOf, failure });
  showPage(visit, { status, title: 'Your logins', text: `You are logged in as ${email}.`, more: body });
}

async function unlink(visit: Visit): Promise<void> {
  const { platform, schema, request, ctx, form } = visit;
  requireSameOrigin(request, platform.config.baseUrl);
  if (textOf(form.action) !== 'unlink')
    throw problem('validation_failed', 'The form has an unknown action. Open the page again.');
  try {
    await runDocument(schema, ctx, { query: UNLINK, variables: { id: textOf(form.id) } });
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500 || !ctx.identity) throw error;
    return showLinked(visit, error.status, failureText(error));
  }
  goOn(visit, LOGIN_PATHS.linked);
}
