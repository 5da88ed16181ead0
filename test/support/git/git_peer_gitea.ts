// What Gitea publishes in its Swagger description (templates/swagger/v1_json.tmpl), as far as the platform asks.
import type { GitPeer, PeerPull, PeerRepository, Route } from './git_peer';
import { NUMBER, pageOf, TEXT } from './git_peer_values';

const paged = { limit: /^([1-9]|[1-4]\d|50)$/, page: NUMBER };
const OWNED = String.raw`^/repos/([^/]+/[^/]+)`;

export function giteaRoutes(peer: GitPeer): Route[] {
  return [...readRoutes(peer), ...writeRoutes(peer), ...hookRoutes(peer)];
}

function readRoutes(peer: GitPeer): Route[] {
  const get = (path: string, query: Route['query'], answer: Route['answer']): Route => ({
    ...{ method: 'GET', path: new RegExp(`${path}$`), query, answer },
  });
  const list = (rows: unknown[], query: URLSearchParams) => ({ json: pageOf(rows, query, 'limit') });
  const missing = { status: 404, json: { message: 'The target could not be found.' } };
  return [
    get('^/user', {}, () => ({ json: { id: 3, login: 'acme-bot' } })),
    get('^/user/repos', paged, ({ query }) =>
      list(
        peer.repositories.map((one) => repository(peer, one)),
        query,
      ),
    ),
    get('^/repositories/(\\d+)', {}, (_, [id]) => {
      const found = peer.repositories.find((one) => String(one.id) === id);
      return found ? { json: repository(peer, found) } : missing;
    }),
    get(`${OWNED}/branches`, paged, ({ query }, [name = '']) => {
      const rows = peer.branchesOf(name);
      return list(
        rows.map((one) => ({ name: one.name, commit: { id: one.sha }, protected: one.name === 'main' })),
        query,
      );
    }),
    get(
      `${OWNED}/pulls`,
      {
        ...paged,
        state: /^(open|closed|all)$/,
        sort: /^(oldest|recentupdate|leastupdate|mostcomment|leastcomment|priority)$/,
      },
      ({ query }, [name = '']) => {
        const isOpen = query.get('state') === 'open';
        const rows = [...peer.pulls.values()].filter(({ state }) => (state === 'open') === isOpen);
        return list(
          rows.map((one) => pull(peer, name, one)),
          query,
        );
      },
    ),
    get(`${OWNED}/pulls/(\\d+)`, {}, (_, [name = '', number]) => {
      const found = peer.pulls.get(Number(number));
      return found ? { json: pull(peer, name, found) } : missing;
    }),
    get(`${OWNED}/commits/([0-9a-f]{40})/status`, paged, (_, [, sha = '']) => ({
      json: {
        statuses: [
          ...(peer.checks.get(sha) ?? []).map(({ name, state }) => ({ context: name, status: state })),
          ...peer.statuses.filter((one) => one.sha === sha).map(({ context, state }) => ({ context, status: state })),
        ],
      },
    })),
  ];
}

function writeRoutes(peer: GitPeer): Route[] {
  const state = /^(pending|success|error|failure|warning|skipped)$/;
  const body = { fields: { body: 'string' as const }, required: ['body'] };
  return [
    {
      method: 'POST',
      path: new RegExp(`${OWNED}/statuses/([0-9a-f]{40})$`),
      body: { fields: { state, target_url: TEXT, description: TEXT, context: TEXT }, required: [] },
      answer({ body: { state: word, description, context, target_url } }, [, sha = '']) {
        peer.statuses.unshift({ sha, state: word, description, context, url: target_url ?? null });
        return { status: 201, json: { id: 1 } };
      },
    },
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
        for (const one of peer.comments) if (String(one.id) === id) one.text = text;
        return { json: { id: Number(id) } };
      },
    },
  ];
}

function hookRoutes(peer: GitPeer): Route[] {
  const config = { url: TEXT, secret: TEXT, content_type: /^(json|form)$/ };
  return [
    {
      method: 'GET',
      path: new RegExp(`${OWNED}/hooks$`),
      query: paged,
      answer: () => ({ json: peer.hooks.map(({ id, url }) => ({ id, config: { url } })) }),
    },
    {
      method: 'POST',
      path: new RegExp(`${OWNED}/hooks$`),
      body: {
        fields: { type: /^(gitea|forgejo|gogs|slack|discord)$/, config, events: ['string'], active: 'boolean' },
        required: ['type', 'config'],
      },
      answer({ body: { config: made } }) {
        const hook = { id: 100 + peer.hooks.length, url: made.url, secret: made.secret };
        peer.hooks.push(hook);
        return { status: 201, json: { id: hook.id } };
      },
    },
    {
      method: 'PATCH',
      path: new RegExp(`${OWNED}/hooks/(\\d+)$`),
      body: { fields: { config, events: ['string'], active: 'boolean' }, required: [] },
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

function repository(peer: GitPeer, { id, full_name, private: hidden, default_branch }: PeerRepository): object {
  return {
    ...{ id, full_name, name: full_name.split('/')[1], private: hidden, default_branch, empty: false },
    html_url: `${peer.url}/${full_name}`,
    updated_at: '2026-01-31T10:30:00+01:00',
    clone_url: 'https://elsewhere.example.com/stolen.git',
  };
}

function pull(peer: GitPeer, full_name: string, one: PeerPull): object {
  const { number, title, state, source, target, author, sha, fork } = one;
  return {
    ...{ number, title, state: state === 'open' ? 'open' : 'closed', merged: state === 'merged' },
    head: { ref: source, sha, repo_id: fork ? 999_999 : 1 },
    base: { ref: target, repo_id: 1 },
    user: { login: author },
    html_url: `${peer.url}/${full_name}/pulls/${number}`,
    updated_at: '2026-01-31T09:30:00Z',
  };
}
