// Forms behind the links of mails: a new password, a confirmed address, an invitation. Each runs the operation of the
// dashboard, with all its checks; a GET changes nothing, since programs follow links before people do.
import express, { type ErrorRequestHandler, type Request, type Response, type Router } from 'express';
import { escapeHtml } from '../../core/protocols/html';
import { ACCOUNT_PATHS } from '../../core/mail/account_paths';
import type { Reply } from '../../core/context';
import type { Problem } from '../../core/errors';
import { identify, requireSameOrigin } from '../graphql/request';
import { runDocument } from '../graphql/run_document';
import { requestContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import type { Core } from '../../resolvers';
import { asProblem } from '../../rest/problem';
import { providerButtons } from '../login/pages';
import { sendFormPage, textOf } from '../plain_page';

/** Made when it is first called. */
type Schema = () => Core['graphqlSchema'];

interface Page {
  title: string;
  text: string;
  /** Label, name and type of each field. */
  fields: readonly (readonly [string, string, string, string])[];
  button: string;
  /** The operation, and its variables. */
  query: string;
  variables(form: Record<string, unknown>): Record<string, unknown>;
  done: string;
}

const FORM_BYTES_MAX = 16 * 1024;
const PASSWORD = ['New password (12 to 200 characters)', 'password', 'password', 'new-password'] as const;

const PAGES: Record<keyof typeof ACCOUNT_PATHS, Page> = {
  resetPassword: {
    title: 'Forgotten password',
    text: 'Enter the e-mail address of your user to receive a link for setting a new password.',
    fields: [['E-mail address', 'email', 'email', 'username']],
    button: 'Send the link',
    query: 'mutation ($email: String!) { requestPasswordReset(input: {email: $email}) }',
    variables: ({ email }) => ({ email: textOf(email) }),
    done: 'If a user has this address, a message is on its way.',
  },
  newPassword: {
    title: 'New password',
    text: 'Setting a new password ends all your sessions.',
    fields: [PASSWORD],
    button: 'Set the password',
    query: `mutation ($token: String!, $password: String!) {
      resetPassword(input: {token: $token, new_password: $password}) }`,
    variables: ({ token, password }) => ({ token: textOf(token), password: textOf(password) }),
    done: 'Your new password is set. Log in with it.',
  },
  confirmEmail: {
    title: 'Confirm your e-mail address',
    text: 'This confirms that the address is yours.',
    fields: [],
    button: 'Confirm',
    query: 'mutation ($token: String!) { confirmEmail(token: $token) }',
    variables: ({ token }) => ({ token: textOf(token) }),
    done: 'Your e-mail address is confirmed.',
  },
  invitation: {
    title: 'Invitation',
    text: 'Choose a name and a password. If you are already logged in, leave both fields empty.',
    fields: [['Name', 'name', 'text', 'name'], PASSWORD],
    button: 'Accept',
    query: `mutation ($input: AcceptInvitationInput!) { acceptInvitation(input: $input) { user { id } } }`,
    variables: ({ token, name, password }) => ({
      input: { token: textOf(token), name: textOf(name) || undefined, password: textOf(password) || undefined },
    }),
    done: 'You are a member of the project now, and logged in.',
  },
};

/** @param schema with the checks of the GraphQL face */
export function accountPages(platform: Platform, schema: Schema): Router {
  const router = express.Router();
  for (const [name, path] of Object.entries(ACCOUNT_PATHS)) {
    const page = PAGES[name as keyof typeof ACCOUNT_PATHS];
    router.get(path, (request, response) => sendForm(platform, response, 200, page, textOf(request.query.token)));
    router.post(path, express.urlencoded({ extended: false, limit: FORM_BYTES_MAX }), (request, response) =>
      submit(platform, schema, page, request, response),
    );
  }
  router.use(refuseForm);
  return router;
}

/** A body that is too large, or no form. */
const refuseForm: ErrorRequestHandler = (_error, _request, response, _next) =>
  sendFormPage(response, 400, 'The form cannot be read', 'Go back, and send it again.');

async function submit(
  platform: Platform,
  schema: Schema,
  page: Page,
  request: Request,
  response: Response,
): Promise<void> {
  const form = (request.body ?? {}) as Record<string, unknown>;
  try {
    const headers = await run(platform, schema, page, form, request, response);
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    sendFormPage(response, 200, page.title, page.done);
  } catch (error) {
    const failure = asProblem(error);
    const request_id = response.getHeader('X-Request-Id');
    if (failure !== error) platform.log.error({ err: error, request_id }, 'request failed');
    sendForm(platform, response, failure.status, page, textOf(form.token), failure);
  }
}

/** @returns headers of the answer, such as the cookie of a session. @throws Problem */
async function run(
  platform: Platform,
  schema: Schema,
  { query, variables }: Page,
  form: Record<string, unknown>,
  request: Request,
  response: Response,
): Promise<Reply['headers']> {
  const ctx = requestContext(platform, request, String(response.getHeader('X-Request-Id')));
  // A page of another site must not log a person in to a different account.
  requireSameOrigin(request, platform.config.baseUrl);
  ctx.identity = await identify(platform, request, ctx.address);
  await runDocument(schema(), ctx, { query, variables: variables(form) });
  return ctx.reply.headers;
}

function sendForm(
  { config }: Platform,
  response: Response,
  status: number,
  page: Page,
  token: string,
  failure?: Problem,
): void {
  const inputs = page.fields.map(
    ([label, name, type, autocomplete]) =>
      `<label>${label}<input name="${name}" type="${type}" autocomplete="${autocomplete}"></label>`,
  );
  const hidden = token ? `<input type="hidden" name="token" value="${escapeHtml(token)}">` : '';
  const said = failure ? `<p class="problem">${escapeHtml(reasonOf(failure))}</p>` : '';
  // Without the query, which has the token: the address of the answer stays in the history of the browser.
  const action = escapeHtml(response.req.path);
  const form = `${hidden}${inputs.join('')}<button>${page.button}</button>`;
  const body = `${said}<form method="post" action="${action}">${form}</form>`;
  // Who is invited may log in at another provider first, and comes back to accept.
  const isInvitation = page === PAGES.invitation && token !== '';
  const back = `${ACCOUNT_PATHS.invitation}?token=${encodeURIComponent(token)}`;
  sendFormPage(response, status, page.title, page.text, body + (isInvitation ? providerButtons(config, back) : ''));
}

function reasonOf({ detail, members }: Problem): string {
  const errors = (members.errors ?? []) as { field: string; detail: string }[];
  if (!errors.length) return detail;
  return errors.map(({ field, detail: what }) => `${field.split('.').pop()?.replace(/_/g, ' ')} ${what}.`).join(' ');
}
