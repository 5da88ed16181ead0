// What GitLab publishes of its REST API v4, as far as the platform asks.
import type { GitPeer, PeerPull, PeerRepository, Route, Shape } from './git_peer';
import { NUMBER, pageOf, PER_PAGE, TEXT } from './git_peer_values';

const paged = { per_page: PER_PAGE, page: NUMBER };
const PROJECT = String.raw`^/projects/(\d+)`;
const MERGE_STATES = { open: 'opened', closed: 'closed', merged: 'merged' };

export function gitlabRoutes(peer: GitPeer): Route[] {
  return [...readRoutes(peer), ...writeRoutes(peer)];
}

function readRoutes(peer: GitPeer): Route[] {
  const get = (path: string, query: Route['query'], answer: Route['answer']): Route => ({
    ...{ method: 'GET', path: new RegExp(`${path}$`), query, answer },
  });
  const list = (rows: unknown[], query: URLSearchParams) => ({ json: pageOf(rows, query, 'per_page') });
  const named = (id = '') => peer.repositories.find((one) => String(one.id) === id);
  const missing = { status: 404, json: { message: '404 Project Not Found' } };
  return [
    get('^/user', {}, () => ({ json: { id: 7, username: 'acme-bot', web_url: `${peer.url}/acme-bot` } })),
    get('^/personal_access_tokens/self', {}, () => ({ json: { id: 1, scopes: peer.scopes } })),
    get(
      '^/projects',
      {
        ...paged,
        membership: /^(true|false)$/,
        order_by: /^(id|name|path|created_at|updated_at|last_activity_at|similarity)$/,
        sort: /^(asc|desc)$/,
        search: TEXT,
        search_namespaces: /^(true|false)$/,
      },
      ({ query }) => {
        const search = query.get('search')?.toLowerCase() ?? '';
        const found = peer.repositories.filter(({ full_name }) => full_name.toLowerCase().includes(search));
        return list(
          found.map((one) => project(peer, one)),
          query,
        );
      },
    ),
    get(PROJECT, {}, (_, [id]) => {
      const found = named(id);
      return found ? { json: project(peer, found) } : missing;
    }),
    get(`${PROJECT}/repository/branches`, { ...paged, search: TEXT }, ({ query }, [id]) => {
      const search = query.get('search') ?? '';
      const rows = peer.branchesOf(named(id)?.full_name ?? '').filter(({ name }) => name.includes(search));
      return list(
        rows.map(({ name, sha }) => ({ name, commit: { id: sha }, protected: name === 'main' })),
        query,
      );
    }),
    get(
      `${PROJECT}/merge_requests`,
      {
        ...paged,
        state: /^(opened|closed|locked|merged|all)$/,
        order_by: /^(created_at|label_priority|milestone_due|popularity|priority|title|updated_at|merged_at)$/,
        sort: /^(asc|desc)$/,
      },
      ({ query }, [id]) => {
        const rows = [...peer.pulls.values()].filter(({ state }) => MERGE_STATES[state] === query.get('state'));
        return list(
          rows.map((one) => mergeRequest(peer, Number(id), one)),
          query,
        );
      },
    ),
    get(`${PROJECT}/merge_requests/(\\d+)`, {}, (_, [id, number]) => {
      const found = peer.pulls.get(Number(number));
      return found ? { json: mergeRequest(peer, Number(id), found) } : missing;
    }),
    get(`${PROJECT}/repository/commits/([0-9a-f]{40})/statuses`, paged, (_, [, sha = '']) => ({
      json: [
        ...(peer.checks.get(sha) ?? []).map(({ name, state }) => ({
          name,
          status: state === 'pending' ? 'running' : state === 'failure' ? 'failed' : 'success',
          allow_failure: false,
        })),
        ...peer.statuses
          .filter((one) => one.sha === sha)
          .map(({ context, state }) => ({ name: context, status: state })),
      ],
    })),
  ];
}

function writeRoutes(peer: GitPeer): Route[] {
  const state = /^(pending|running|success|failed|canceled|skipped)$/;
  const hook: Record<string, Shape> = {
    ...{ url: TEXT, token: TEXT, push_events: 'boolean', merge_requests_events: 'boolean' },
    ...{ pipeline_events: 'boolean', enable_ssl_verification: 'boolean' },
  };
  return [
    {
      method: 'POST',
      path: new RegExp(`${PROJECT}/statuses/([0-9a-f]{40})$`),
      body: { fields: { state, name: TEXT, target_url: TEXT, description: TEXT, ref: TEXT }, required: ['state'] },
      answer({ body }, [, sha = '']) {
        const { description, name: context, target_url } = body;
        const word = body.state === 'failed' ? 'failure' : body.state;
        peer.statuses.unshift({ sha, state: word, description, context, url: target_url ?? null });
        return { status: 201, json: { id: 1 } };
      },
    },
    {
      method: 'POST',
      path: new RegExp(`${PROJECT}/merge_requests/(\\d+)/notes$`),
      body: { fields: { body: 'string' }, required: ['body'] },
      answer({ body: { body: text } }, [, number]) {
        const made = { id: 1000 + peer.comments.length, number: Number(number), text };
        peer.comments.push(made);
        return { status: 201, json: { id: made.id } };
      },
    },
    {
      method: 'PUT',
      path: new RegExp(`${PROJECT}/merge_requests/\\d+/notes/(\\d+)$`),
      body: { fields: { body: 'string' }, required: ['body'] },
      answer({ body: { body: text } }, [, id]) {
        for (const one of peer.comments) if (String(one.id) === id) one.text = text;
        return { json: { id: Number(id) } };
      },
    },
    {
      method: 'GET',
      path: new RegExp(`${PROJECT}/hooks$`),
      query: paged,
      answer: () => ({ json: peer.hooks.map(({ id, url }) => ({ id, url })) }),
    },
    {
      method: 'POST',
      path: new RegExp(`${PROJECT}/hooks$`),
      body: { fields: hook, required: ['url'] },
      answer({ body: { url, token } }) {
        const made = { id: 100 + peer.hooks.length, url, secret: token };
        peer.hooks.push(made);
        return { status: 201, json: { id: made.id } };
      },
    },
    {
      method: 'PUT',
      path: new RegExp(`${PROJECT}/hooks/(\\d+)$`),
      body: { fields: hook, required: ['url'] },
      answer: (_, [, id]) => ({ json: { id: Number(id) } }),
    },
    {
      method: 'DELETE',
      path: new RegExp(`${PROJECT}/hooks/(\\d+)$`),
      answer(_, [, id]) {
        peer.hooks = peer.hooks.filter((one) => String(one.id) !== id);
        return { status: 204 };
      },
    },
  ];
}

function project(peer: GitPeer, { id, full_name, private: hidden, default_branch }: PeerRepository): object {
  return {
    id,
    path_with_namespace: full_name,
    path: full_name.split('/').at(-1),
    visibility: hidden ? 'private' : 'public',
    default_branch,
    web_url: `${peer.url}/${full_name}`,
    last_activity_at: '2026-01-31T09:30:00.000Z',
    http_url_to_repo: 'https://elsewhere.example.com/stolen.git',
  };
}

function mergeRequest(peer: GitPeer, id: number, one: PeerPull): object {
  const { number: iid, title, state, source, target, author, sha, fork } = one;
  return {
    ...{ id: 90_000 + iid, iid, title, state: MERGE_STATES[state], source_branch: source, target_branch: target, sha },
    ...{ source_project_id: fork ? 999_999 : id, target_project_id: id, author: { username: author } },
    web_url: `${peer.url}/merge_requests/${iid}`,
    updated_at: '2026-01-31T09:30:00.000Z',
  };
}
