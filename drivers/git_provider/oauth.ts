// The authorization code grant of OAuth 2 with PKCE (RFC 6749 §4.1, RFC 7636, RFC 9700) at the four providers.
import { createHash } from 'node:crypto';
import {
  GIT_PROVIDER_TITLES,
  GitProviderError,
  type GitAccess,
  type GitOauth,
  type GitOauthClient,
  type GitProviderName,
  type GitTokens,
} from '../../core/protocols/git_provider';
import { limits } from '../../core/limits';
import type { GitService } from '../git_provider';
import type { Outbound } from '../../core/outbound';
import { guarded } from '../../core/outbound/client';
import { OutboundError } from '../../core/outbound/trace';
import { errorOf } from './errors';

type Provider = Pick<GitAccess, 'provider' | 'base_url'>;

interface Endpoints {
  authorize: string;
  token: string;
  /** Requested scope; Bitbucket configures it at the client. */
  scope: string | null;
}

const ENDPOINTS: Readonly<Record<GitProviderName, Endpoints>> = {
  github: { authorize: '/login/oauth/authorize', token: '/login/oauth/access_token', scope: 'repo' },
  gitlab: { authorize: '/oauth/authorize', token: '/oauth/token', scope: 'api' },
  bitbucket: { authorize: '/site/oauth2/authorize', token: '/site/oauth2/access_token', scope: null },
  gitea: {
    authorize: '/login/oauth/authorize',
    token: '/login/oauth/access_token',
    scope: 'read:user write:repository write:issue',
  },
};

const BODY_BYTES_MAX = 64 * 1024;

export function openOauth(outbound: Outbound, serviceOf: (place: Provider) => GitService): GitOauth {
  const sendGrant = (place: Provider, client: GitOauthClient, grant: Record<string, string>): Promise<GitTokens> =>
    requestTokens(outbound, place, serviceOf(place), client, grant);
  return {
    authorizationUrl(place, { client_id, redirect_uri }, { state, verifier }) {
      const { authorize, scope } = ENDPOINTS[place.provider];
      const url = new URL(serviceOf(place).web + authorize);
      const query = {
        response_type: 'code',
        client_id,
        redirect_uri,
        state,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...(scope && { scope }),
      };
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
      return url.href;
    },
    exchangeCode: (place, client, { code, verifier }) =>
      sendGrant(place, client, {
        grant_type: 'authorization_code',
        code,
        redirect_uri: client.redirect_uri,
        code_verifier: verifier,
      }),
    refresh: (place, client, refresh_token) => sendGrant(place, client, { grant_type: 'refresh_token', refresh_token }),
  };
}

async function requestTokens(
  outbound: Outbound,
  { provider }: Provider,
  { web }: GitService,
  { client_id, client_secret }: GitOauthClient,
  grant: Record<string, string>,
): Promise<GitTokens> {
  const title = GIT_PROVIDER_TITLES[provider];
  // Bitbucket requires HTTP authentication of the client, the others accept the form.
  const inForm: Record<string, string> = provider === 'bitbucket' ? {} : { client_id, client_secret };
  const body = Buffer.from(new URLSearchParams({ ...grant, ...inForm }).toString());
  const headers = [
    { name: 'Accept', value: 'application/json' },
    { name: 'User-Agent', value: 'platform-api' },
    { name: 'Content-Type', value: 'application/x-www-form-urlencoded' },
    ...(provider === 'bitbucket' ? [basic(client_id, client_secret)] : []),
  ];
  const url = new URL(web + ENDPOINTS[provider].token);
  const request = { url, method: 'POST', headers, body, bodyBytesMax: BODY_BYTES_MAX };
  const answer = await guarded(outbound, request, limits.probeTimeoutMs).catch((error: unknown) => {
    if (!(error instanceof OutboundError)) throw error;
    throw new GitProviderError('unreachable', `${title} could not be reached. ${error.message}`);
  });
  const json = parse(answer.body);
  if (typeof json.access_token === 'string' && json.access_token !== '') return tokensOf(json);
  // GitHub reports a rejected code with status 200.
  const isRefused = answer.status < 500 && typeof json.error === 'string';
  const status = isRefused && answer.status !== 429 ? 401 : Math.max(answer.status, 400);
  throw errorOf({ title, token: client_secret, status, headers: answer.headers, json }, Date.now());
}

function basic(username: string, password: string): { name: string; value: string } {
  return { name: 'Authorization', value: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

function parse(body: Buffer): Record<string, unknown> {
  try {
    return (JSON.parse(body.toString('utf8')) ?? {}) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function tokensOf({ access_token, refresh_token, expires_in }: Record<string, unknown>): GitTokens {
  const seconds = Number(expires_in);
  return {
    access_token: access_token as string,
    refresh_token: typeof refresh_token === 'string' && refresh_token ? refresh_token : null,
    expires_at: seconds > 0 ? new Date(Date.now() + seconds * 1000).toISOString() : null,
  };
}
