// GitHub as its OpenAPI document describes it: github_openapi.json is the part that the platform asks, as published in
// @octokit/openapi. Each request and each answer is judged by it.
import type { GitPeer, PeerAnswer, PeerPull, PeerRepository, PeerRequest, Route } from './git_peer';
import { pageOf } from './git_peer_values';
import published from './github_openapi.json';
import { publishedOperations, type OpenapiDocument, type PublishedOperation } from '../contract/openapi_peer';

type Handler = (asked: PeerRequest, params: string[]) => unknown;

const operations = publishedOperations(published as unknown as OpenapiDocument);
const NOT_FOUND: PeerAnswer = { status: 404, json: { message: 'Not Found' } };
/** What a handler answers where there is no such thing. */
const missing = Symbol('missing');

export function githubRoutes(peer: GitPeer): Route[] {
  const handlers: Record<string, Handler> = {
    ...readHandlers(peer),
    ...statusHandlers(peer),
    ...commentHandlers(peer),
    ...hookHandlers(peer),
  };
  return [...operations.map((one) => routeOf(peer, one, handlers[one.id])), byIdRoute(peer)];
}

function routeOf(peer: GitPeer, operation: PublishedOperation, handler: Handler | undefined): Route {
  const { method, path, mistakesOf } = operation;
  return {
    method,
    path,
    validate: (asked, params) => [...headerMistakes(asked), ...mistakesOf(asked, params)],
    answer(asked, params) {
      const given = handler ? handler(asked, params) : missing;
      return given === missing ? NOT_FOUND : answered(peer, operation, asked, given);
    },
  };
}

function answered(peer: GitPeer, operation: PublishedOperation, asked: PeerRequest, given: unknown): PeerAnswer {
  const { status, json, mistakes } = operation.complete(given);
  peer.mistakes.push(...mistakes.map((text) => `${asked.method} ${asked.path}: ${text}`));
  const headers = operation.id === 'users/get-authenticated' ? { 'x-oauth-scopes': peer.scopes.join(', ') } : undefined;
  return { status, json, headers };
}

/** Beside the document: https://docs.github.com/en/rest/using-the-rest-api/getting-started-with-the-rest-api#headers */
function headerMistakes({ headers, body }: PeerRequest): string[] {
  return [
    ...(headers.accept === 'application/vnd.github+json' ? [] : ['Accept is not the recommended type']),
    ...(headers['x-github-api-version'] === '2022-11-28' ? [] : ['no version of the API']),
    ...(headers['user-agent'] ? [] : ['no User-Agent']),
    ...(body === undefined || headers['content-type'] === 'application/json' ? [] : ['the body is not called JSON']),
  ];
}

/** Not published, but where GitHub redirects a renamed repository to. */
function byIdRoute(peer: GitPeer): Route {
  const whole = operations.find(({ id }) => id === 'repos/get') as PublishedOperation;
  return {
    method: 'GET',
    path: /^\/repositories\/(\d+)$/,
    validate: headerMistakes,
    answer(asked, [id]) {
      const found = peer.repositories.find((one) => String(one.id) === id);
      return found ? answered(peer, whole, asked, repository(peer, found)) : NOT_FOUND;
    },
  };
}

function readHandlers(peer: GitPeer): Record<string, Handler> {
  const list = (rows: unknown[], { query }: PeerRequest): unknown => pageOf(rows, query, 'per_page');
  const listPulls: Handler = (asked, [owner, name]) => {
    const isOpen = (asked.query.get('state') ?? 'open') === 'open';
    const fitting = [...peer.pulls.values()].filter(({ state }) => (state === 'open') === isOpen);
    return list(
      fitting.map((one) => pull(peer, `${owner}/${name}`, one)),
      asked,
    );
  };
  return {
    'users/get-authenticated': () => ({ ...person(peer, 'acme-bot'), id: 583231 }),
    'repos/list-for-authenticated-user': (asked) =>
      list(
        peer.repositories.map((one) => repository(peer, one)),
        asked,
      ),
    'repos/list-branches': (asked, [owner, name]) =>
      list(
        peer
          .branchesOf(`${owner}/${name}`)
          .map((one) => ({ name: one.name, commit: { sha: one.sha }, protected: one.name === 'main' })),
        asked,
      ),
    'pulls/list': listPulls,
    'pulls/get': (_, [owner, name, number]) => {
      const found = peer.pulls.get(Number(number));
      return found ? pull(peer, `${owner}/${name}`, found) : missing;
    },
  };
}

function statusHandlers(peer: GitPeer): Record<string, Handler> {
  return {
    'checks/list-for-ref': (_, [, , sha = '']) => {
      const check_runs = (peer.checks.get(sha) ?? []).map(({ name, state }) => ({
        name,
        status: state === 'pending' ? 'in_progress' : 'completed',
        conclusion: state === 'pending' ? null : state,
      }));
      return { total_count: check_runs.length, check_runs };
    },
    'repos/get-combined-status-for-ref': (_, [, , sha = '']) => {
      const found = peer.statuses.filter((one) => one.sha === sha);
      const statuses = found.map(({ state, context, description, url }) => ({
        ...{ state, context, description, target_url: url },
      }));
      return { sha, state: 'pending', total_count: statuses.length, statuses };
    },
    'repos/create-commit-status': ({ body }, [, , sha = '']) => {
      const { state, description, context, target_url = null } = body;
      peer.statuses.unshift({ sha, state, description, context, url: target_url });
      return { state, description, context, target_url };
    },
  };
}

function commentHandlers(peer: GitPeer): Record<string, Handler> {
  return {
    'issues/create-comment': ({ body: { body } }, [, , number]) => {
      const made = { id: 1000 + peer.comments.length, number: Number(number), text: body };
      peer.comments.push(made);
      return { id: made.id, body };
    },
    'issues/update-comment': ({ body: { body } }, [, , id]) => {
      const found = peer.comments.find((one) => String(one.id) === id);
      if (!found) return missing;
      found.text = body;
      return { id: found.id, body };
    },
  };
}

function hookHandlers(peer: GitPeer): Record<string, Handler> {
  const hook = ({ id, url }: { id: number; url: string }): object => ({ id, config: { url, content_type: 'json' } });
  return {
    'repos/list-webhooks': ({ query }) => pageOf(peer.hooks.map(hook), query, 'per_page'),
    'repos/create-webhook': ({ body: { config } }) => {
      const made = { id: 100 + peer.hooks.length, url: config.url, secret: config.secret };
      peer.hooks.push(made);
      return hook(made);
    },
    'repos/update-webhook': ({ body: { config } }, [, , id]) => {
      const found = peer.hooks.find((one) => String(one.id) === id);
      if (!found) return missing;
      Object.assign(found, { url: config.url, secret: config.secret });
      return hook(found);
    },
    'repos/delete-webhook': (_, [, , id]) => {
      const before = peer.hooks.length;
      peer.hooks = peer.hooks.filter((one) => String(one.id) !== id);
      return peer.hooks.length === before ? missing : undefined;
    },
  };
}

function person({ url }: GitPeer, login: string): object {
  return { login, type: 'User', html_url: `${url}/${login}` };
}

function repository(peer: GitPeer, { id, full_name, private: hidden, default_branch }: PeerRepository): object {
  return {
    ...{ id, full_name, name: full_name.split('/')[1], private: hidden, default_branch },
    html_url: `${peer.url}/${full_name}`,
    pushed_at: '2026-01-31T09:30:00Z',
    // Never followed: the address is made of the name.
    clone_url: 'https://elsewhere.example.com/stolen.git',
  };
}

function pull(peer: GitPeer, full_name: string, one: PeerPull): object {
  const { number, title, state, source, target, author, sha, fork } = one;
  return {
    ...{ number, title, state: state === 'open' ? 'open' : 'closed' },
    merged_at: state === 'merged' ? '2026-01-31T09:30:00Z' : null,
    head: { ref: source, sha, repo: { id: fork ? 999_999 : 1 } },
    base: { ref: target, repo: { id: 1 } },
    user: person(peer, author),
    html_url: `${peer.url}/${full_name}/pull/${number}`,
    updated_at: '2026-01-31T09:30:00Z',
  };
}
