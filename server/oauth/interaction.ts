// The login and consent pages while a program waits: login uses the session and the limits of the dashboard.
import type { Request, Response } from 'express';
import type { Context, Identity } from '../../core/context';
import { Problem } from '../../core/errors';
import { formats } from '../../core/formats/formats';
import { OAUTH_PATHS } from '../../core/accounts/oauth';
import { isScope, type Scope } from '../../core/accounts/scopes';
import { readSessionCookie } from '../../core/accounts/session_cookie';
import { requireSameOrigin } from '../graphql/request';
import { runDocument } from '../graphql/run_document';
import { recordActivity } from '../../models/projects/activity';
import { isSelfRegistered } from '../../models/identity/oauth/client';
import { createConnection } from '../../models/identity/oauth/connection';
import { reachableProjects } from '../../models/projects/reachable_projects';
import { requestContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import type { Core } from '../../resolvers';
import { loginForms } from '../login/pages';
import { loginFailure } from '../login/routes';
import { OPENER_KEPT, sendFormPage, textOf } from '../plain_page';
import { consentPage, loginPage } from './pages';
import type { AuthorisationServer } from './provider';
import type { Provider } from './types';

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>;
type Form = Record<string, unknown>;

interface Asking {
  platform: Platform;
  schema: Core['graphqlSchema'];
  server: AuthorisationServer;
  request: Request;
  response: Response;
  ctx: Context;
  interaction: Interaction;
  client: string;
  /** The details of the client are unverified. */
  isSelfRegistered: boolean;
}

const PROJECTS_MAX = 100;
const LOGIN = `mutation ($input: LoginInput!) { login(input: $input) { user { id } } }`;
const LOGOUT = 'mutation { logout }';

/** GET shows the page, POST processes the form. */
export async function askPerson(
  platform: Platform,
  schema: Core['graphqlSchema'],
  server: AuthorisationServer,
  request: Request,
  response: Response,
): Promise<void> {
  const ctx = requestContext(platform, request, String(response.getHeader('X-Request-Id')));
  const interaction = await findInteraction(server.provider, request, response);
  if (!interaction)
    return sendFormPage(
      response,
      400,
      'This page has expired',
      'Go back to the program that sent you here, and start again.',
    );
  const { client_id } = interaction.params as { client_id: string };
  const client = (await server.provider.Client.find(client_id))?.clientName ?? client_id;
  const asking: Asking = {
    ...{ platform, schema, server, request, response, ctx, interaction, client },
    isSelfRegistered: await isSelfRegistered(ctx, client_id),
  };
  const secret = readSessionCookie(platform.config, request.headers.cookie);
  ctx.identity = secret ? await platform.identities.ofSession(secret) : null;
  if (ctx.identity?.account_status === 'suspended')
    return sendFormPage(response, 403, 'Account suspended', 'Your account is suspended.');
  if (request.method === 'POST') return take(asking, (request.body ?? {}) as Form);
  if (!isLoggedIn(asking)) return show(asking, 200, loginPageOf(asking, { ...NOTHING, email: hintOf(asking) }));
  await showConsent(asking, 200, '');
}

const NOTHING = { email: '', failure: '', asksCode: false };

async function findInteraction(
  provider: Provider,
  request: Request,
  response: Response,
): Promise<Interaction | undefined> {
  try {
    return await provider.interactionDetails(request, response);
  } catch (error) {
    if ((error as { error?: string }).error === 'invalid_request') return undefined;
    throw error;
  }
}

async function take(asking: Asking, form: Form): Promise<void> {
  const { platform, request, interaction, server, response } = asking;
  const action = textOf(form.action);
  // A page of another site must not log a person in, or consent for them.
  requireSameOrigin(request, platform.config.baseUrl);
  if (action === 'login') return logIn(asking, form);
  if (action === 'deny') {
    const result = { error: 'access_denied', error_description: 'the user denied the request' };
    return server.provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
  }
  if (!isLoggedIn(asking)) return seeOther(response, interaction.uid);
  if (action === 'switch') {
    await runDocument(asking.schema, asking.ctx, { query: LOGOUT, variables: {} });
    return seeOther(response, interaction.uid, asking.ctx.reply.headers);
  }
  try {
    await allow(asking, form);
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error;
    await showConsent(asking, error.status, error.detail);
  }
}

async function logIn(asking: Asking, form: Form): Promise<void> {
  const { ctx, schema, response, interaction } = asking;
  const [email, password, code] = [textOf(form.email), textOf(form.password), textOf(form.code)];
  try {
    const input = { email, password, ...(code && { code }) };
    await runDocument(schema, ctx, { query: LOGIN, variables: { input } });
    seeOther(response, interaction.uid, ctx.reply.headers);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const asksCode = error.code === 'two_factor_required' || code !== '';
    const page = loginPageOf(asking, { email, failure: loginFailure(error), asksCode });
    show(asking, error.status, page, error.headers);
  }
}

function loginPageOf(asking: Asking, last: typeof NOTHING): ReturnType<typeof loginPage> {
  const returnTo = OAUTH_PATHS.interaction + asking.interaction.uid;
  return loginPage(asking, loginForms(asking.platform.config, { ...last, action: '', returnTo }));
}

/** Creates a key from the person's consent; the program gets its requested scopes within it. */
async function allow(asking: Asking, form: Form): Promise<void> {
  const { ctx, server, request, response, interaction, client } = asking;
  const requested = askedScopes(interaction);
  const chosen = [form.scope].flat().map(textOf);
  const scopes = requested.filter((scope) => chosen.includes(scope));
  const projects = textOf(form.all_projects) ? null : [form.project].flat().map(textOf).filter(Boolean);
  if (!scopes.length) return showConsent(asking, 422, 'Choose at least one permission.');
  if (projects && !projects.length) return showConsent(asking, 422, 'Choose at least one project.');
  const name = formats.label(textOf(form.name) || nameOf(asking))?.value;
  if (name === undefined) return showConsent(asking, 422, 'The name needs 1 to 100 characters.');
  const { client_id, resource } = interaction.params as { client_id: string; resource?: string | string[] };
  const { id: accountId } = (ctx.identity as Identity).user as { id: string };
  const grantId = await ctx.transact(async (inner) => {
    const may_destroy = textOf(form.may_destroy) !== '';
    const id = await createConnection(inner, { client_id, name, scopes, project_ids: projects, may_destroy });
    recordActivity(inner, 'api_key.created');
    return id;
  });
  const grant = new server.provider.Grant({ accountId, clientId: client_id });
  grant.jti = grantId;
  grant.addOIDCScope('offline_access');
  for (const one of [resource ?? asking.platform.config.baseUrl].flat()) {
    grant.addResourceScope(one, scopes.join(' '));
    const refused = requested.filter((scope) => !scopes.includes(scope));
    if (refused.length) grant.rejectResourceScope(one, refused.join(' '));
  }
  await grant.save();
  const result = { login: { accountId }, consent: { grantId } };
  asking.platform.log.debug({ client: client_id, key: grantId, name: client }, 'a person allowed a program');
  await server.provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

async function showConsent(asking: Asking, status: number, failure: string): Promise<void> {
  const { ctx, interaction, client } = asking;
  const { user } = ctx.identity as Identity;
  const { data } = await reachableProjects(ctx, { limit: PROJECTS_MAX });
  const redirect = interaction.deviceCode ? null : textOf(interaction.params.redirect_uri);
  const page = consentPage({
    ...{ client, redirect, failure, email: user?.email ?? '', name: nameOf(asking) },
    isSelfRegistered: asking.isSelfRegistered,
    ...{ scopes: askedScopes(interaction), projects: data },
  });
  show(asking, status, page);
}

function askedScopes({ params }: Interaction): Scope[] {
  return textOf(params.scope).split(' ').filter(isScope);
}

/** "Command line on laptop". */
function nameOf({ interaction, client }: Asking): string {
  const device = textOf(interaction.params.device_name);
  return (device ? `${client} on ${device}` : client).slice(0, 100);
}

function hintOf({ interaction }: Asking): string {
  return textOf(interaction.params.login_hint);
}

/** The program may request a login newer than its request: then the session must differ from the one at that time. */
function isLoggedIn({ ctx: { identity }, interaction }: Asking): boolean {
  if (!identity) return false;
  const mustBeNew = textOf(interaction.params.prompt).split(' ').includes('login');
  const { session_id } = interaction.prompt.details as { session_id?: string | null };
  return !mustBeNew || identity.id !== session_id;
}

function seeOther(response: Response, uid: string, headers: Context['reply']['headers'] = {}): void {
  response.writeHead(303, { ...headers, Location: OAUTH_PATHS.interaction + uid, 'Cache-Control': 'no-store' }).end();
}

/** Programs of a device, and those with an address on this computer, open no popup that they have to hear of. */
function isOnWeb({ deviceCode, params }: Interaction): boolean {
  return !deviceCode && textOf(params.redirect_uri).startsWith('https:');
}

function show(
  { response, interaction }: Asking,
  status: number,
  { headers, html }: ReturnType<typeof loginPage>,
  more: Record<string, string> = {},
): void {
  const opener = isOnWeb(interaction) ? OPENER_KEPT : {};
  response.writeHead(status, { ...headers, ...opener, ...more }).end(html);
}
