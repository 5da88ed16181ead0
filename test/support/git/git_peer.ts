// A Git provider on loopback, built on what the four publish of their APIs: it refuses a parameter, a field or a word
// that the published description does not have, and serves repositories with a real git behind the same tokens.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { GitProviderName } from '../../../core/protocols/git_provider';
import { startGitServer, type GitServer } from './git_server';
import { bitbucketRoutes } from './git_peer_bitbucket';
import { giteaRoutes } from './git_peer_gitea';
import { githubRoutes } from './git_peer_github';
import { gitlabRoutes } from './git_peer_gitlab';

/* oxlint-disable typescript/no-explicit-any -- bodies of four providers */

export interface PeerRepository {
  id: number;
  full_name: string;
  private: boolean;
  default_branch: string;
}

export interface PeerPull {
  number: number;
  title: string;
  state: 'open' | 'closed' | 'merged';
  source: string;
  target: string;
  author: string;
  sha: string;
  fork: boolean;
}

export interface PeerRequest {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: http.IncomingHttpHeaders;
  body: any;
}

export interface PeerAnswer {
  status?: number;
  json?: unknown;
  headers?: Record<string, string>;
}

/** A list, an enumeration, a type, or an object of these. */
export type Shape = 'string' | 'boolean' | 'number' | RegExp | [Shape] | { [field: string]: Shape };

export interface Route {
  method: string;
  path: RegExp;
  query?: Record<string, RegExp>;
  body?: { fields: Record<string, Shape>; required: string[] };
  /** In place of `query` and `body`, where a whole document is published. */
  validate?(request: PeerRequest, params: string[]): string[];
  answer(request: PeerRequest, params: string[]): PeerAnswer;
}

export interface GitPeer {
  provider: GitProviderName;
  url: string;
  git: GitServer;
  /** Accepted by the API and by git. */
  tokens: Set<string>;
  scopes: string[];
  repositories: PeerRepository[];
  pulls: Map<number, PeerPull>;
  /** Set by the platform. */
  statuses: { sha: string; state: string; context: string; url: string | null; description: string }[];
  /** Of others. */
  checks: Map<string, { name: string; state: 'pending' | 'success' | 'failure' }[]>;
  comments: { id: number; number: number; text: string }[];
  hooks: { id: number; url: string; secret: string }[];
  requests: PeerRequest[];
  /** What was not as published. */
  mistakes: string[];
  /** Full names that repositories had, and the present ones: requests for the former are redirected. */
  renamed: Map<string, string>;
  fault: ((request: PeerRequest) => PeerAnswer | 'hang' | null) | null;
  /** Tokens that the next calls of the token endpoint give. */
  grants: { access_token: string; refresh_token?: string; expires_in?: number }[];
  branchesOf(full_name: string): { name: string; sha: string }[];
  close(): Promise<void>;
}

const ROUTES = { github: githubRoutes, gitlab: gitlabRoutes, gitea: giteaRoutes, bitbucket: bitbucketRoutes };
const API: Record<GitProviderName, string> = {
  github: '/api/v3',
  gitlab: '/api/v4',
  gitea: '/api/v1',
  bitbucket: '/2.0',
};
const TOKEN_PATHS: Record<GitProviderName, string> = {
  github: '/login/oauth/access_token',
  gitlab: '/oauth/token',
  gitea: '/login/oauth/access_token',
  bitbucket: '/site/oauth2/access_token',
};

export async function startGitPeer(provider: GitProviderName): Promise<GitPeer> {
  const git = await startGitServer();
  const peer: GitPeer = {
    ...{ provider, url: '', git, tokens: new Set(['good-token-1']), scopes: ['repo', 'api'], repositories: [] },
    ...{ pulls: new Map(), statuses: [], checks: new Map(), comments: [], hooks: [], requests: [], mistakes: [] },
    ...{ fault: null, grants: [], renamed: new Map() },
    branchesOf: (name) => git.branches(name),
    close: () => Promise.resolve(),
  };
  const routes = ROUTES[provider](peer);
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => serve(peer, routes, request, response, Buffer.concat(chunks)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  peer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  peer.close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await git.close();
  };
  return peer;
}

function serve(
  peer: GitPeer,
  routes: Route[],
  request: http.IncomingMessage,
  response: http.ServerResponse,
  content: Buffer,
): void {
  const url = new URL(request.url ?? '/', peer.url);
  const location = presentAddress(peer, url);
  if (location !== null) {
    const isRead = ['GET', 'HEAD'].includes(request.method ?? '');
    return void response.writeHead(isRead ? 301 : 307, { location }).end();
  }
  if (/\.git\//.test(url.pathname)) return passToGit(peer, request, response, content);
  const isForm = url.pathname === TOKEN_PATHS[peer.provider];
  const text = content.toString();
  const asked: PeerRequest = {
    method: request.method ?? 'GET',
    path: url.pathname.replace(API[peer.provider], ''),
    query: url.searchParams,
    headers: request.headers,
    body: isForm ? Object.fromEntries(new URLSearchParams(text)) : text ? JSON.parse(text) : undefined,
  };
  peer.requests.push(asked);
  const answer = peer.fault?.(asked) ?? (isForm ? grantTokens(peer, asked) : route(peer, routes, asked));
  if (answer === 'hang') return;
  const { status = 200, json, headers } = answer;
  const type = { 'content-type': 'application/json', ...headers };
  response.writeHead(status, type).end(json === undefined ? '' : JSON.stringify(json));
}

function presentAddress({ renamed, url: own }: GitPeer, { pathname, search }: URL): string | null {
  for (const [before, now] of renamed)
    if (pathname.includes(`/${before}/`) || pathname.includes(`/${before}.git/`))
      return own + pathname.replace(`/${before}`, `/${now}`) + search;
  return null;
}

function route(peer: GitPeer, routes: Route[], asked: PeerRequest): PeerAnswer {
  if (!isAuthorized(peer, asked)) return { status: 401, json: refusalOf(peer, 'Bad credentials') };
  for (const one of routes) {
    const match = one.method === asked.method ? one.path.exec(asked.path) : null;
    if (!match) continue;
    const params = match.slice(1).map(decodeURIComponent);
    const wrong = one.validate ? one.validate(asked, params) : [...headerMistakes(asked), ...mistakesOf(one, asked)];
    if (!wrong.length) return one.answer(asked, params);
    peer.mistakes.push(...wrong.map((text) => `${asked.method} ${asked.path}: ${text}`));
    return { status: 422, json: { message: wrong.join(', ') } };
  }
  peer.mistakes.push(`${asked.method} ${asked.path} is not published`);
  return { status: 404, json: refusalOf(peer, 'Not Found') };
}

function isAuthorized({ provider, tokens }: GitPeer, { headers: { authorization = '' } }: PeerRequest): boolean {
  const [scheme = '', value = ''] = authorization.split(' ');
  if (provider === 'bitbucket' && scheme === 'Basic') return tokens.has(Buffer.from(value, 'base64').toString());
  const fits = provider === 'gitea' ? ['token', 'Bearer'].includes(scheme) : scheme === 'Bearer';
  return fits && tokens.has(value);
}

/** As each of them words a refusal. */
function refusalOf({ provider }: GitPeer, message: string): unknown {
  return provider === 'bitbucket' ? { type: 'error', error: { message } } : { message };
}

function headerMistakes({ headers, body }: PeerRequest): string[] {
  const accept = headers.accept === 'application/json' ? [] : ['Accept is not JSON'];
  const isJson = body === undefined || headers['content-type'] === 'application/json';
  return isJson ? accept : [...accept, 'the body is not called JSON'];
}

function mistakesOf({ query = {}, body }: Route, asked: PeerRequest): string[] {
  const inQuery = [...asked.query].flatMap(([name, value]) => {
    const allowed = query[name];
    if (!allowed) return [`unknown parameter ${name}`];
    return allowed.test(value) ? [] : [`${name}=${value} is not allowed`];
  });
  if (!body) return asked.body === undefined ? inQuery : [...inQuery, 'a body that nobody reads'];
  const missing = body.required.filter((name) => asked.body?.[name] === undefined);
  return [...inQuery, ...missing.map((name) => `${name} is missing`), ...misfits(asked.body, body.fields, '')];
}

function misfits(value: any, shape: Shape, at: string): string[] {
  if (shape instanceof RegExp) return typeof value === 'string' && shape.test(value) ? [] : [`${at} has no such value`];
  if (typeof shape === 'string') return typeof value === shape ? [] : [`${at} is no ${shape}`];
  if (Array.isArray(shape))
    return Array.isArray(value)
      ? value.flatMap((one, index) => misfits(one, shape[0], `${at}.${index}`))
      : [`${at}: list`];
  if (typeof value !== 'object' || value === null) return [`${at} is no object`];
  return Object.entries(value as object).flatMap(([name, inner]) =>
    shape[name] ? misfits(inner, shape[name], `${at}.${name}`) : [`unknown field ${at}.${name}`],
  );
}

function grantTokens(peer: GitPeer, { body }: PeerRequest): PeerAnswer {
  const isKnown = ['authorization_code', 'refresh_token'].includes(body?.grant_type);
  const grant = isKnown && peer.grants.shift();
  if (!grant) return { status: 400, json: { error: 'invalid_grant', error_description: 'The grant is invalid.' } };
  peer.tokens.add(grant.access_token);
  return { json: { token_type: 'bearer', ...grant } };
}

const USERS: Record<GitProviderName, string> = {
  github: 'x-access-token',
  gitlab: 'oauth2',
  gitea: 'oauth2',
  bitbucket: 'x-token-auth',
};

function passToGit(peer: GitPeer, request: http.IncomingMessage, response: http.ServerResponse, content: Buffer): void {
  const given = Buffer.from((request.headers.authorization ?? '').replace('Basic ', ''), 'base64').toString();
  const [user = '', password = ''] = given.split(':');
  const isPublic = peer.repositories.some((one) => !one.private && request.url?.startsWith(`/${one.full_name}.git/`));
  if (!isPublic && !(user === USERS[peer.provider] && peer.tokens.has(password)))
    return void response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
  const target = new URL(request.url ?? '/', peer.git.url('x'));
  const passed = http.request(target, { method: request.method, headers: request.headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  passed.on('error', () => response.destroy());
  passed.end(content);
}
