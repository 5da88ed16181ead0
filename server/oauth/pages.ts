// Pages of the authorisation server: plain HTML, usable without scripts.
import { LOOPBACK } from '../../core/accounts/oauth';
import { scopes as knownScopes, type Scope } from '../../core/accounts/scopes';
import { escapeHtml } from '../../core/protocols/html';
import { formPage } from '../plain_page';
import { markFailedAttempt } from './failed_attempt';
import type { OauthContext } from './types';

interface Answer {
  headers: Record<string, string>;
  html: string;
}

const DEVICE_TITLE = 'Log in a device';
const BEWARE =
  'Continue only if you began this yourself just now, on a device in front of you. The platform never contacts ' +
  'you to ask for a code.';
/** Addresses that only contain what the code of a device consists of. */
const USER_CODE = /^[A-Za-z-]{1,20}$/;

/** The pages of the device flow. */
export function devicePages(): {
  userCodeInputSource(ctx: OauthContext, form: string, out?: unknown, error?: Error): Promise<void>;
  userCodeConfirmSource(
    ctx: OauthContext,
    form: string,
    client: unknown,
    device: Record<string, unknown>,
    code: string,
  ): Promise<void>;
  successSource(ctx: OauthContext): Promise<void>;
} {
  return {
    async userCodeInputSource(ctx, form, _, error) {
      if (error?.name === 'NotFoundError') markFailedAttempt(ctx.req);
      show(ctx, codePage(hiddenOf(form, 'xsrf'), String(enteredCode(ctx) ?? ''), error));
    },
    async userCodeConfirmSource(ctx, form, client, device, code) {
      const { clientName, clientId } = client as { clientName?: string; clientId: string };
      const name = ctx.oidc.entities.DeviceCode?.params?.device_name;
      const text = `Does the device show this code? ${BEWARE}`;
      const rows = [
        ['Program', clientName ?? clientId],
        ['Device', name ? String(name) : 'not named'],
        ['Address', String(device.ip ?? '')],
      ];
      const facts = rows.map(([term, value]) => `<dt>${term}</dt><dd>${escapeHtml(String(value))}</dd>`).join('');
      const hidden = `${hiddenInput('xsrf', hiddenOf(form, 'xsrf'))}${hiddenInput('user_code', code)}`;
      const buttons =
        '<button name="confirm" value="yes">It shows this code</button>' +
        '<button name="abort" value="yes">I did not begin this</button>';
      const body = `<p><code>${escapeHtml(code)}</code></p><dl>${facts}</dl>`;
      show(ctx, formPage(DEVICE_TITLE, text, `${body}<form method="post">${hidden}${buttons}</form>`));
    },
    async successSource(ctx) {
      show(ctx, formPage('Device logged in', 'The device continues by itself. You can close this page.', ''));
    },
  };
}

/** An error that cannot be redirected to the client, since the client is not authenticated. */
export function errorPage(ctx: OauthContext, out: { error: string; error_description?: string }): void {
  const reason = `Reason: ${out.error_description ?? out.error}.`;
  const text = `${reason} Go back to the program that sent you here, and begin again.`;
  const { status } = ctx;
  show(ctx, formPage('This did not work', text, ''));
  ctx.status = status;
}

/** @param forms all ways to log in @param isSelfRegistered the client's name is unverified */
export function loginPage(
  { client, isSelfRegistered }: Pick<Consent, 'client' | 'isSelfRegistered'>,
  forms: string,
): Answer {
  const who = isSelfRegistered ? `A program that calls itself “${client}”` : client;
  return formPage('Log in', `${who} asks to act for you.`, forms);
}

const CHANGING: readonly Scope[] = ['write', 'deploy', 'env:write'];
const MAY_DESTROY = 'Delete, and overwrite what cannot be made again';

interface Consent {
  client: string;
  /** The client has registered itself, so its name is unverified. */
  isSelfRegistered: boolean;
  /** Where the person is sent afterwards; null for a device. */
  redirect: string | null;
  email: string;
  name: string;
  scopes: readonly Scope[];
  projects: readonly { id: string; name: string }[];
  failure: string;
}

export function consentPage(consent: Consent): Answer {
  const { client, redirect, email, name, scopes, projects, failure } = consent;
  const said = failure ? `<p class="problem" role="alert">${escapeHtml(failure)}</p>` : '';
  const rights = scopes.map((scope) => checkbox('scope', scope, knownScopes[scope].description));
  // Off: what a program asks for is given at a glance, and most of them never delete.
  if (scopes.some((scope) => CHANGING.includes(scope))) rights.push(checkbox('may_destroy', 'yes', MAY_DESTROY, ''));
  const list = projects.map(({ id, name: title }) => checkbox('project', id, title, ''));
  const body = [
    `<p>You are logged in as ${escapeHtml(email)}.</p>${said}<form method="post">`,
    `<fieldset><legend>It may</legend>${rights.join('')}</fieldset>`,
    `<fieldset><legend>In these projects</legend>`,
    `${checkbox('all_projects', 'yes', 'All my projects, including future ones')}${list.join('')}</fieldset>`,
    `<label>Name of the API key<input name="name" maxlength="100" value="${escapeHtml(name)}"></label>`,
    '<button name="action" value="allow">Allow</button><button name="action" value="deny">Do not allow</button>',
    '<p><button name="action" value="switch">Log in as somebody else</button></p></form>',
  ].join('');
  const who = consent.isSelfRegistered && redirect ? whoClaims(client, redirect) : whoAsks(client, redirect);
  const text = `${who} You can revoke this access at any time in the list of your API keys. ${BEWARE}`;
  const title = consent.isSelfRegistered
    ? `Allow a program that calls itself “${client}” to act for you?`
    : `Allow ${client} to act for you?`;
  return formPage(title, text, body, redirect ? formTarget(redirect) : '');
}

function whoClaims(client: string, redirect: string): string {
  const { host, hostname } = new URL(redirect);
  const where = LOOPBACK.includes(hostname) ? `a program on this computer (${host})` : host;
  return (
    `This program is not verified: it registered itself under the name “${client}”. ` +
    `Whoever controls ${where} receives the access that you allow.`
  );
}

function whoAsks(client: string, redirect: string | null): string {
  if (redirect === null) return `A device asks for access as ${client}.`;
  const { protocol, host, hostname } = new URL(redirect);
  if (LOOPBACK.includes(hostname)) return `A program on this computer asks for access as ${client}.`;
  return protocol === 'https:'
    ? `${host} asks for access as ${client}.`
    : `An app on this device asks for access as ${client}.`;
}

/** Browsers check where an answer to a form leads, too (CSP level 3). */
function formTarget(redirect: string): string {
  const { protocol, origin } = new URL(redirect);
  return origin === 'null' ? protocol : origin;
}

function codePage(xsrf: string, code: string, error?: Error & { userCode?: string }): Answer {
  const said = error ? `<p class="problem" role="alert">${escapeHtml(reasonOf(error))}</p>` : '';
  const shown = USER_CODE.test(code) ? code : '';
  const input = `<label>Code<input name="user_code" autocomplete="off" autocapitalize="characters" spellcheck="false"
    required value="${escapeHtml(shown)}"></label>`;
  const form = `<form method="post">${hiddenInput('xsrf', xsrf)}${input}<button>Continue</button></form>`;
  return formPage(DEVICE_TITLE, `Enter the code that the device shows. ${BEWARE}`, said + form);
}

function reasonOf({ name }: Error): string {
  if (name === 'AbortedError') return 'The device was not logged in.';
  if (name === 'ExpiredError') return 'The code has expired. Start again on the device.';
  if (name === 'AlreadyUsedError') return 'The code was already used. Start again on the device.';
  if (name === 'NotFoundError' || name === 'NoCodeError') return 'No device is waiting with this code. Check the code.';
  return 'The request cannot be continued. Enter the code again.';
}

/** Code of the address (`verification_uri_complete`), which the person still has to send. */
function enteredCode(ctx: OauthContext): unknown {
  return (ctx.req as { enteredUserCode?: string }).enteredUserCode;
}

function hiddenOf(form: string, name: string): string {
  return new RegExp(`name="${name}" value="([^"]*)"`).exec(form)?.[1] ?? '';
}

function hiddenInput(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}

function checkbox(name: string, value: string, label: string, checked = 'checked'): string {
  const input = `<input type="checkbox" name="${name}" value="${escapeHtml(value)}" ${checked}>`;
  return `<label class="choice">${input}${escapeHtml(label)}</label>`;
}

function show(ctx: OauthContext, { headers, html }: Answer): void {
  ctx.set(headers);
  ctx.body = html;
}
