// What GitHub publishes in its OpenAPI description (api.github.com, version 2022-11-28), as far as the platform asks.
import type { GitPeer, PeerPull, PeerRepository, Route } from './git_peer';
import { NUMBER, pageOf, PER_PAGE, TEXT } from './git_peer_values';

const paged = { per_page: PER_PAGE, page: NUMBER };
const OWNED = String.raw`^/repos/([^/]+/[^/]+)`;
const HOOK = { url: TEXT, content_type: /^(json|form)$/, secret: TEXT, insecure_ssl: /^[01]$/ };

export function githubRoutes(peer: GitPeer): Route[] {
  return [...readRoutes(peer), ...writeRoutes(peer)];
}

function readRoutes(peer: GitPeer): Route[] {
  const get = (path: string, query: Route['query'], answer: Route['answer']): Route => ({
    ...{ method: 'GET', path: new RegExp(`${path}$`), query, answer },
  });
  const list = (rows: unknown[], query: URLSearchParams) => ({ json: pageOf(rows, query, 'per_page') });
  return [
    get('^/user', {}, () => ({
      json: { id: 583231, login: 'acme-bot', type: 'User', html_url: `${peer.url}/acme-bot` },
      headers: { 'x-oauth-scopes': peer.scopes.join(', ') },
    })),
    get('^/user/repos', { ...paged, sort: /^(created|updated|pushed|full_name)$/ }, ({ query }) =>
      list(
        peer.repositories.map((one) => repository(peer, one)),
        query,
      ),
    ),
    get('^/repositories/(\\d+)', {}, (_, [id]) => {
      const found = peer.repositories.find((one) => String(one.id) === id);
      return found ? { json: repository(peer, found) } : { status: 404, json: { message: 'Not Found' } };
    }),
    get(`${OWNED}/branches`, { ...paged, protected: /^(true|false)$/ }, ({ query }, [name = '']) =>
      list(
        peer
          .branchesOf(name)
          .map((one) => ({ name: one.name, commit: { sha: one.sha }, protected: one.name === 'main' })),
        query,
      ),
    ),
    get(
      `${OWNED}/pulls`,
      {
        ...paged,
        state: /^(open|closed|all)$/,
        sort: /^(created|updated|popularity|long-running)$/,
        direction: /^(asc|desc)$/,
      },
      ({ query }, [name = '']) =>
        list(
          [...peer.pulls.values()]
            .filter(({ state }) => (state === 'open') === (query.get('state') === 'open'))
            .map((one) => pull(peer, name, one)),
          query,
        ),
    ),
    get(`${OWNED}/pulls/(\\d+)`, {}, (_, [name = '', number]) => {
      const found = peer.pulls.get(Number(number));
      return found ? { json: pull(peer, name, found) } : { status: 404, json: { message: 'Not Found' } };
    }),
    get(`${OWNED}/commits/([0-9a-f]{40})/check-runs`, { ...paged, filter: /^(latest|all)$/ }, (_, [, sha = '']) => ({
      json: {
        total_count: 1,
        check_runs: (peer.checks.get(sha) ?? []).map(({ name, state }) => ({
          name,
          status: state === 'pending' ? 'in_progress' : 'completed',
          conclusion: state === 'pending' ? null : state,
        })),
      },
    })),
    get(`${OWNED}/commits/([0-9a-f]{40})/status`, paged, (_, [, sha]) => ({
      json: { state: 'pending', statuses: peer.statuses.filter((one) => one.sha === sha) },
    })),
  ];
}

function writeRoutes(peer: GitPeer): Route[] {
  const states = /^(error|failure|pending|success)$/;
  const status = { state: states, target_url: TEXT, description: /^.{0,140}$/u, context: TEXT };
  const hook = { name: /^web$/, config: HOOK, events: ['string' as const] as ['string'], active: 'boolean' as const };
  return [
    {
      method: 'POST',
      path: new RegExp(`${OWNED}/statuses/([0-9a-f]{40})$`),
      body: { fields: status, required: ['state'] },
      answer({ body }, [, sha = '']) {
        const { state, description, context, target_url } = body;
        peer.statuses.unshift({ sha, state, description, context, url: target_url ?? null });
        return { status: 201, json: { id: 1, ...body } };
      },
    },
    ...commentRoutes(peer),
    {
      method: 'GET',
      path: new RegExp(`${OWNED}/hooks$`),
      query: paged,
      answer: () => ({ json: peer.hooks.map(({ id, url }) => ({ id, config: { url } })) }),
    },
    {
      method: 'POST',
      path: new RegExp(`${OWNED}/hooks$`),
      body: { fields: hook, required: [] },
      answer({ body: { config } }) {
        const made = { id: 100 + peer.hooks.length, url: config.url, secret: config.secret };
        peer.hooks.push(made);
        return { status: 201, json: { id: made.id } };
      },
    },
    {
      method: 'PATCH',
      path: new RegExp(`${OWNED}/hooks/(\\d+)$`),
      body: { fields: { config: HOOK, events: ['string'], active: 'boolean' }, required: [] },
      answer: (_, [, id]) => ({ json: { id: Number(id) } }),
    },
    {
      method: 'DELETE',
      path: new RegExp(`${OWNED}/hooks/(\\d+)$`),
      answer(_, [, id]) {
        peer.hooks = peer.hooks.filter((one) => String(one.id) !== id);
        return { status: 204 };
      },
    },
  ];
}

function commentRoutes(peer: GitPeer): Route[] {
  const body = { fields: { body: 'string' as const }, required: ['body'] };
  return [
    {
      method: 'POST',
      path: new RegExp(`${OWNED}/issues/(\\d+)/comments$`),
      body,
      answer({ body: { body: text } }, [, number]) {
        const made = { id: 1000 + peer.comments.length, number: Number(number), text };
        peer.comments.push(made);
        return { status: 201, json: { id: made.id } };
      },
    },
    {
      method: 'PATCH',
      path: new RegExp(`${OWNED}/issues/comments/(\\d+)$`),
      body,
      answer({ body: { body: text } }, [, id]) {
        const found = peer.comments.find((one) => String(one.id) === id);
        if (!found) return { status: 404, json: { message: 'Not Found' } };
        found.text = text;
        return { json: { id: found.id } };
      },
    },
  ];
}

function repository(peer: GitPeer, { id, full_name, private: hidden, default_branch }: PeerRepository): object {
  return {
    id,
    full_name,
    name: full_name.split('/')[1],
    private: hidden,
    default_branch,
    html_url: `${peer.url}/${full_name}`,
    pushed_at: '2026-01-31T09:30:00Z',
    // Never followed: the address is made of the name.
    clone_url: 'https://elsewhere.example.com/stolen.git',
  };
}

function pull(peer: GitPeer, full_name: string, one: PeerPull): object {
  const { number, title, state, source, target, author, sha, fork } = one;
  return {
    number,
    title,
    state: state === 'open' ? 'open' : 'closed',
    merged_at: state === 'merged' ? '2026-01-31T09:30:00Z' : null,
    head: { ref: source, sha, repo: { id: fork ? 999_999 : 1 } },
    base: { ref: target, repo: { id: 1 } },
    user: { login: author },
    html_url: `${peer.url}/${full_name}/pull/${number}`,
    updated_at: '2026-01-31T09:30:00Z',
  };
}
