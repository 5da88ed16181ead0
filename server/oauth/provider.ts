// The authorisation server: oidc-provider, loaded at first use, since most runs never need it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { OAUTH_PATHS, REFRESH_DAYS } from '../../core/accounts/oauth';
import { mintToken } from '../../core/accounts/tokens';
import { makeContext, requestContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import type { Surroundings } from './adapter';
import { providerConfiguration } from './configuration';
import { markFailedAttempt } from './failed_attempt';
import { bufferBody, inTransaction, type Refusal } from './token_transaction';
import type { OauthContext, OidcModule, Provider } from './types';

export interface AuthorisationServer {
  provider: Provider;
  /** Answers a request to one of the endpoints. @param refusal of an address whose token or code is wrong once more */
  answer(request: IncomingMessage, response: ServerResponse, refusal: Refusal): Promise<void>;
}

interface Keeps {
  exp?: number;
  persist(): Promise<unknown>;
}

/** What gives tokens out or takes them back does it in one transaction: who is killed in between has done nothing. */
const SPENDING: string[] = [OAUTH_PATHS.token, OAUTH_PATHS.revoke];
/** Paths at which an authorisation begins, each with a new session: the dashboard's session identifies the user. */
const BEGINNINGS: string[] = [OAUTH_PATHS.authorize, OAUTH_PATHS.device];
const NOT_THE_SESSION = /(?:^|;\s*)oauth_session(?:\.sig)?=[^;]*/g;
/** Instances of the library, each of which gives out one token after the other: one gave 31 a second, four gave 54. */
const LANES = 4;
const DAY_SECONDS = 86_400;
/** Ways to answer that are not in the metadata. */
const OTHER_RESPONSE_MODES = ['fragment', 'form_post'];

export async function openAuthorisationServer(platform: Platform): Promise<AuthorisationServer> {
  const oidc = await load(platform);
  const request_id = 'oauth';
  const base = makeContext(platform, { request_id, address: '', user_agent: '', project_header: undefined });
  const asking = openProvider(platform, oidc, { context: () => base, isSpending: () => false });
  const lanes = Array.from({ length: LANES }, () => openLane(platform, oidc));
  const answerWith = asking.callback();
  const { host, protocol } = new URL(platform.config.baseUrl);
  return {
    provider: asking,
    async answer(request, response, refusal) {
      // Addresses in responses are those of BASE_URL, whatever the Host of the request.
      request.headers.host = host;
      request.headers['x-forwarded-proto'] = protocol.slice(0, -1);
      delete request.headers['x-forwarded-host'];
      beginAnew(request);
      const [path = ''] = (request.url ?? '').split('?');
      const isResumed = path.startsWith(`${OAUTH_PATHS.device}/`);
      if (isResumed || (request.method === 'POST' && path === OAUTH_PATHS.device))
        await requireSession(asking, request);
      if (!SPENDING.includes(path)) return answerWith(request, response);
      await bufferBody(request);
      const lane = lanes.reduce((best, one) => (one.waiting() < best.waiting() ? one : best));
      await lane.spend(request, response, refusal);
    },
  };
}

function openProvider(platform: Platform, oidc: OidcModule, around: Omit<Surroundings, 'slowDown'>): Provider {
  const slowDown = (): Error => new oidc.errors.SlowDown();
  const provider = new oidc.default(
    platform.config.baseUrl,
    providerConfiguration(platform, { ...around, slowDown }, oidc),
  );
  provider.proxy = true;
  giveOurForm(provider);
  // A page that shows an error to a browser without a session has nothing to keep.
  const { persist } = provider.Session.prototype as unknown as Keeps;
  (provider.Session.prototype as unknown as Keeps).persist = async function persistKept() {
    return typeof this.exp === 'number' ? persist.call(this) : undefined;
  };
  answerByQueryOnly(oidc.responseModesOf(provider));
  provider.on('grant.success', sayEndOfLogin);
  provider.on('grant.error', ({ req }, { error }) => {
    if (error === 'invalid_grant' || error === 'invalid_client') markFailedAttempt(req);
  });
  const failures: NodeJS.EventEmitter = provider;
  failures.on('error', (error) => platform.log.error({ err: error }, 'authorisation server failed'));
  provider.on('server_error', (_, error) => platform.log.error({ err: error }, 'authorisation server failed'));
  return provider;
}

/** RFC 6749 has no member for it. This one is what others have: clients show until when somebody is logged in. */
function sayEndOfLogin(ctx: OauthContext): void {
  const tokens = ctx.body as { refresh_token?: string; refresh_token_expires_in?: number };
  if (tokens.refresh_token !== undefined) tokens.refresh_token_expires_in = REFRESH_DAYS * DAY_SECONDS;
}

/** The refusal of a response type that is not offered either goes into the query too: its own mode is not there. */
function answerByQueryOnly(modes: Map<string, unknown>): void {
  for (const mode of OTHER_RESPONSE_MODES) modes.delete(mode);
  const query = modes.get('query');
  modes.get = (mode) => Map.prototype.get.call(modes, mode) ?? query;
}

interface Lane {
  /** Requests that it has not answered yet. */
  waiting(): number;
  spend(request: IncomingMessage, response: ServerResponse, refusal: Refusal): Promise<void>;
}

/**
 * A separate provider for token requests. Its adapter does not get the request that a call belongs to, so these are
 * serialized, each in a transaction: a few milliseconds.
 */
function openLane(platform: Platform, oidc: OidcModule): Lane {
  let current: Context | undefined;
  let waiting = 0;
  const context = (): Context => current ?? missing();
  const provider = openProvider(platform, oidc, { context, isSpending: () => true });
  const answerWith = provider.callback();
  let last: Promise<unknown> = Promise.resolve();
  return {
    waiting: () => waiting,
    spend(request, response, refusal) {
      const ctx = requestContext(platform, request, String(response.getHeader('X-Request-Id')));
      waiting += 1;
      const turn = last.then(() =>
        inTransaction(ctx, { request, response, refusal }, async (inner) => {
          current = inner;
          await answerWith(request, response);
        }),
      );
      const done = (): void => void (waiting -= 1);
      last = turn.then(done, done);
      return turn;
    },
  };
}

function beginAnew(request: IncomingMessage): void {
  const [path = '', query = ''] = (request.url ?? '').split('?');
  if (request.method !== 'GET' || !BEGINNINGS.includes(path)) return;
  const { cookie } = request.headers;
  if (cookie !== undefined) request.headers.cookie = cookie.replace(NOT_THE_SESSION, '').replace(/^;\s*/, '');
  // With the code in the address the provider would send a form by a script; here the person sends it.
  if (path !== OAUTH_PATHS.device) return;
  (request as { enteredUserCode?: string }).enteredUserCode = new URLSearchParams(query).get('user_code') ?? '';
  request.url = path;
}

/** The form is from a page of this browser that is not too old. @throws not_found */
async function requireSession(provider: Provider, { headers }: IncomingMessage): Promise<void> {
  const id = /(?:^|;\s*)oauth_session=([^;]+)/.exec(headers.cookie ?? '')?.[1];
  if (!id || !(await provider.Session.find(id))) throw problem('not_found', 'This page has expired. Open it again.');
}

/** Access tokens have the form of keys, so that one check takes both and scanners know them. */
function giveOurForm(provider: Provider): void {
  Object.defineProperty(provider.AccessToken.prototype, 'generateTokenId', {
    value(this: { format?: string }) {
      this.format = 'opaque';
      return mintToken('oauth').token;
    },
  });
}

async function load({ log }: Platform): Promise<OidcModule> {
  // Node 20 has no URL.parse, which the provider uses (added in Node 22.1).
  (URL as { parse?: unknown }).parse ??= (text: string, base?: string): URL | null =>
    URL.canParse(text, base) ? new URL(text, base) : null;
  const { warn } = console;
  // It says that it is not made for Node 20; the tests run with it.
  console.warn = (...words: unknown[]) => log.debug({ words: words.map(String) }, 'oidc-provider');
  try {
    // The provider tracks each request with an AsyncLocalStorage. Before Node 24 the first one in use makes every
    // promise of the process slower, by a tenth in tests; no enabled feature needs it.
    const { default: store } = await import('oidc-provider/lib/helpers/als.js' as string);
    Object.assign(store, { run: (_: unknown, work: () => unknown) => work(), getStore: () => undefined });
    const { default: internalsOf } = await import('oidc-provider/lib/helpers/weak_cache.js' as string);
    const responseModesOf: OidcModule['responseModesOf'] = (provider) => internalsOf(provider).responseModes;
    return { ...(await import('oidc-provider')), responseModesOf };
  } finally {
    console.warn = warn;
  }
}

function missing(): never {
  throw new Error('the authorisation server was used outside of a request');
}
