// A request for one of the login pages: its caller, and its response.
import type { Request, Response } from 'express';
import { LOGIN_PATHS } from '../../core/mail/account_paths';
import type { Context } from '../../core/context';
import type { Problem } from '../../core/errors';
import { problem } from '../../core/errors';
import { LoginProviderError, type LoginProviderSetting } from '../../core/accounts/login_provider';
import { OAUTH_PATHS } from '../../core/accounts/oauth';
import { readSessionCookie } from '../../core/accounts/session_cookie';
import { LoginRefusal } from '../../models/identity/login/linked_login';
import { requestContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import type { Core } from '../../resolvers';
import { asProblem } from '../../rest/problem';
import { formPage, OPENER_KEPT, sendFormPage } from '../plain_page';
import { browserSecret } from './browser_cookie';

export interface Visit {
  platform: Platform;
  schema: Core['graphqlSchema'];
  request: Request;
  response: Response;
  ctx: Context;
  /** Secret of the browser, see browser_cookie.ts. */
  browser: string;
  form: Record<string, unknown>;
}

export async function openVisit(
  platform: Platform,
  schema: Core['graphqlSchema'],
  request: Request,
  response: Response,
): Promise<Visit> {
  const ctx = requestContext(platform, request, String(response.getHeader('X-Request-Id')));
  const secret = readSessionCookie(platform.config, request.headers.cookie);
  ctx.identity = secret ? await platform.identities.ofSession(secret) : null;
  const form = (request.body ?? {}) as Record<string, unknown>;
  return { platform, schema, request, response, ctx, browser: browserSecret(platform.config, request), form };
}

/** @throws not_found */
export function requireProvider({ config }: Context, name: unknown): LoginProviderSetting {
  const setting = config.loginProviders.find((one) => one.name === name);
  if (!setting) throw problem('not_found', 'This installation knows no such provider.');
  return setting;
}

interface LoginPage {
  status: number;
  title: string;
  text: string;
  /** HTML below the text. */
  more: string;
  /** Where the login leads to. */
  returnTo?: string;
}

/** Shows a page, with the headers of the answer so far, such as the cookie of a session. */
export function showPage({ ctx, response }: Visit, { status, title, text, more, returnTo = '' }: LoginPage): void {
  const { headers, html } = formPage(title, text, more);
  // The program that waits for this login may have opened it in a popup.
  const opener = returnTo.startsWith(OAUTH_PATHS.interaction) ? OPENER_KEPT : {};
  response.writeHead(status, { ...headers, ...opener, ...ctx.reply.headers }).end(html);
}

export function goOn({ ctx, response }: Visit, path: string): void {
  response.writeHead(303, { ...ctx.reply.headers, Location: path, 'Cache-Control': 'no-store' }).end();
}

/** Shows a failure to the person. The log entry holds neither code nor token. */
export function showFailure({ log }: Platform, response: Response, error: unknown): void {
  const request_id = response.getHeader('X-Request-Id');
  const again = `<p><a href="${LOGIN_PATHS.login}">Log in another way</a></p>`;
  if (error instanceof LoginProviderError) {
    log.warn({ request_id, reason: error.reason, cause: error.cause_text }, 'login at a provider failed');
    const status = error.reason === 'unreachable' ? 503 : 400;
    return sendFormPage(response, status, 'You are not logged in', error.message, again);
  }
  if (error instanceof LoginRefusal) return sendFormPage(response, 403, 'You are not logged in', error.message, again);
  const failure = asProblem(error);
  if (failure !== error) log.error({ err: error, request_id }, 'request failed');
  if (!response.headersSent) sendFormPage(response, failure.status, 'This did not work', failureText(failure));
}

/** With the fields that are wrong. */
export function failureText({ detail, members }: Problem): string {
  const errors = (members.errors ?? []) as { field: string; detail: string }[];
  if (!errors.length) return detail;
  return errors.map(({ field, detail: what }) => `The ${field.replace(/_/g, ' ')} ${what}.`).join(' ');
}
