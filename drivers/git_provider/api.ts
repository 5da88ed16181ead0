// A request to the API of a provider: limited in time and size, redirected only within the provider, with uniform
// errors, and subject to the provider's rate limits.
import { createHash } from 'node:crypto';
import { GIT_PROVIDER_TITLES, GitProviderError, type GitAccess } from '../../core/protocols/git_provider';
import { limits as bounds } from '../../core/limits';
import type { GitService } from '../git_provider';
import type { Outbound } from '../../core/outbound';
import { guarded } from '../../core/outbound/client';
import type { Answered } from '../../core/outbound/exchange';
import { followRedirects, type Hop, type RedirectPolicy } from '../../core/outbound/follow_redirects';
import { OutboundError } from '../../core/outbound/trace';
import { errorOf, rateLimited } from './errors';

interface ApiRequest {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Relative to the base URL of the API. */
  path: string;
  query?: Record<string, string | number | null>;
  body?: object;
}

interface ApiResponse {
  headers: Answered['headers'];
  /* oxlint-disable-next-line typescript/no-explicit-any -- shapes of four providers */
  json: any;
}

export interface Api {
  access: GitAccess;
  service: GitService;
  /** @throws GitProviderError */
  call(request: ApiRequest): Promise<ApiResponse>;
}

/** End of the rate limit of a token (ms since the epoch), by `keyOf`. */
export type RateLimits = Map<string, number>;

interface Opened {
  outbound: Outbound;
  access: GitAccess;
  service: GitService;
  limits: RateLimits;
  signal?: AbortSignal;
}

const BODY_BYTES_MAX = 16 * 2 ** 20;
const REDIRECTS_MAX = 3;
const LIMITS_MAX = 10_000;

type Headers = { name: string; value: string }[];

export function openApi(opened: Opened): Api {
  const { access, service } = opened;
  return { access, service, call: (request) => call(opened, request) };
}

async function call(opened: Opened, request: ApiRequest): Promise<ApiResponse> {
  requireUnlimited(opened);
  const { method = 'GET', body } = request;
  const headers = [...headersOf(opened.access), ...(body ? [{ name: 'Content-Type', value: 'application/json' }] : [])];
  // A renamed repository is redirected within the API; anything else could carry the token away.
  const policy: RedirectPolicy<Headers, Answered> = {
    redirectsMax: REDIRECTS_MAX,
    writes: 'refused',
    allows: (to, from) => to.origin === from.origin,
    headersElsewhere: () => [],
    refusal: () => new GitProviderError('failed', `${titleOf(opened)} redirected the request to another address.`),
  };
  const first = { url: urlOf(opened.service, request), method, headers };
  const answer = await followRedirects(first, policy, async (hop) => {
    const got = await send(opened, hop, body);
    return { answer: got, status: got.status, location: got.headers.location };
  });
  return readAnswer(opened, answer);
}

function urlOf({ api }: GitService, { path, query = {} }: ApiRequest): URL {
  const url = new URL(api + path);
  for (const [name, value] of Object.entries(query)) if (value !== null) url.searchParams.set(name, String(value));
  return url;
}

async function send(opened: Opened, hop: Hop<Headers>, body: object | undefined): Promise<Answered> {
  const { outbound, signal } = opened;
  const sent = body && Buffer.from(JSON.stringify(body));
  try {
    const asked = { ...hop, body: sent, bodyBytesMax: BODY_BYTES_MAX };
    return await guarded(outbound, asked, bounds.probeTimeoutMs, signal);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    throw new GitProviderError('unreachable', `${titleOf(opened)} could not be reached. ${error.message}`);
  }
}

const COMMON = [
  // GitHub rejects requests without it.
  { name: 'User-Agent', value: 'platform-api' },
  { name: 'Accept-Encoding', value: 'identity' },
];

function headersOf({ provider, token, auth_type }: GitAccess): Headers {
  if (provider === 'github')
    return [
      ...COMMON,
      { name: 'Accept', value: 'application/vnd.github+json' },
      { name: 'X-GitHub-Api-Version', value: '2022-11-28' },
      { name: 'Authorization', value: `Bearer ${token}` },
    ];
  const accept = { name: 'Accept', value: 'application/json' };
  const authorization =
    provider === 'bitbucket' && token.includes(':')
      ? `Basic ${Buffer.from(token).toString('base64')}`
      : provider === 'gitea' && auth_type === 'token'
        ? `token ${token}`
        : `Bearer ${token}`;
  return [...COMMON, accept, { name: 'Authorization', value: authorization }];
}

function readAnswer(opened: Opened, answer: Answered): ApiResponse {
  const { status, headers, body } = answer;
  const json = parse(body);
  if (status >= 400 || status < 200 || status >= 300) {
    const error = errorOf({ title: titleOf(opened), token: opened.access.token, status, headers, json }, Date.now());
    if (error.retry_at !== null) remember(opened, Date.parse(error.retry_at));
    throw error;
  }
  if (json === undefined && body.length > 0 && status !== 204)
    throw new GitProviderError('failed', `${titleOf(opened)} gave an answer that is not JSON.`);
  return { headers, json };
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

function requireUnlimited(opened: Opened): void {
  const until = opened.limits.get(keyOf(opened));
  if (until === undefined) return;
  if (until <= Date.now()) return void opened.limits.delete(keyOf(opened));
  throw rateLimited(titleOf(opened), until);
}

function remember(opened: Opened, until: number): void {
  if (opened.limits.size >= LIMITS_MAX) opened.limits.clear();
  opened.limits.set(keyOf(opened), until);
}

function keyOf({ service, access }: Opened): string {
  return `${service.api} ${createHash('sha256').update(access.token).digest('base64url')}`;
}

function titleOf({ access }: Opened): string {
  return GIT_PROVIDER_TITLES[access.provider];
}
