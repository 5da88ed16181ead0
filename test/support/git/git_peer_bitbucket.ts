// What Atlassian publishes of the REST API 2.0 of Bitbucket Cloud, as far as the platform asks.
import type { GitPeer, PeerPull, PeerRepository, Route } from './git_peer';
import { NUMBER, TEXT } from './git_peer_values';

const paged = { pagelen: /^([1-9]\d?|100)$/, page: NUMBER };
const REPOSITORY = String.raw`^/repositories/(%7B[\w-]+%7D)/(%7B[\w-]+%7D)`;
const EVENTS = new RegExp(
  '^(repo:(push|commit_status_created|commit_status_updated)|pullrequest:(created|updated|fulfilled|rejected))$',
);

export function bitbucketRoutes(peer: GitPeer): Route[] {
  return [...readRoutes(peer), ...writeRoutes(peer), ...hookRoutes(peer)];
}

/** The id that the platform makes of workspace and repository. */
export const bitbucketId = (id: number): string => `ws-1.repo-${id}`;

function readRoutes(peer: GitPeer): Route[] {
  const get = (path: string, query: Route['query'], answer: Route['answer']): Route => ({
    ...{ method: 'GET', path: new RegExp(`${path}$`), query, answer },
  });
  const named = (uuid = '') => peer.repositories.find(({ id }) => uuid === `{repo-${id}}`);
  const missing = { status: 404, json: { type: 'error', error: { message: 'Repository not found' } } };
  return [
    get('^/user', {}, () => ({
      json: { uuid: '{user-1}', username: 'acme-bot', type: 'user', links: { html: { href: `${peer.url}/acme-bot` } } },
    })),
    get('^/user/workspaces', { pagelen: paged.pagelen }, () => ({
      json: { values: [{ workspace: { uuid: '{ws-0}' } }, { workspace: { uuid: '{ws-1}' } }] },
    })),
    get(
      '^/repositories/(%7B[\\w-]+%7D)',
      { ...paged, role: /^(admin|contributor|member|owner)$/, q: TEXT },
      (asked, [ws]) =>
        values(ws === '{ws-1}' ? peer.repositories.map((one) => repository(peer, one)) : [], asked.query),
    ),
    get(REPOSITORY, {}, (_, [, uuid]) => {
      const found = named(uuid);
      return found ? { json: repository(peer, found) } : missing;
    }),
    get(`${REPOSITORY}/refs/branches`, { ...paged, q: TEXT }, ({ query }, [, uuid]) =>
      values(
        peer.branchesOf(named(uuid)?.full_name ?? '').map(({ name, sha }) => ({ name, target: { hash: sha } })),
        query,
      ),
    ),
    get(
      `${REPOSITORY}/pullrequests`,
      { ...paged, state: /^(OPEN|MERGED|DECLINED|SUPERSEDED)$/, sort: TEXT },
      ({ query }) => {
        const rows = [...peer.pulls.values()].filter(({ state }) => STATES[state] === query.get('state'));
        return values(
          rows.map((one) => pull(peer, one)),
          query,
        );
      },
    ),
    get(`${REPOSITORY}/pullrequests/(\\d+)`, {}, (_, [, , number]) => {
      const found = peer.pulls.get(Number(number));
      return found ? { json: pull(peer, found) } : missing;
    }),
    get(`${REPOSITORY}/commit/([0-9a-f]{40})/statuses`, { pagelen: paged.pagelen }, (_, [, , sha = '']) => ({
      json: {
        values: [
          ...(peer.checks.get(sha) ?? []).map(({ name, state }) => ({ key: name, name, state: CHECK_STATES[state] })),
          ...peer.statuses.filter((one) => one.sha === sha).map(({ context, state }) => ({ key: context, state })),
        ],
      },
    })),
  ];
}

const STATES = { open: 'OPEN', closed: 'DECLINED', merged: 'MERGED' };
const CHECK_STATES = { pending: 'INPROGRESS', success: 'SUCCESSFUL', failure: 'FAILED' };
const BACK: Record<string, string> = { INPROGRESS: 'pending', SUCCESSFUL: 'success', FAILED: 'failure' };

function writeRoutes(peer: GitPeer): Route[] {
  const content = { fields: { content: { raw: 'string' as const } }, required: ['content'] };
  const status = {
    ...{ key: /^.{1,40}$/, name: TEXT, state: /^(INPROGRESS|SUCCESSFUL|FAILED|STOPPED)$/ },
    ...{ description: TEXT, url: /^https?:/ },
  };
  return [
    {
      method: 'POST',
      path: new RegExp(`${REPOSITORY}/commit/([0-9a-f]{40})/statuses/build$`),
      body: { fields: status, required: ['key', 'state', 'url'] },
      answer({ body: { key: context, state, description, url } }, [, , sha = '']) {
        peer.statuses.unshift({ sha, state: BACK[state] ?? '', description, context, url });
        return { status: 201, json: { key: context } };
      },
    },
    {
      method: 'POST',
      path: new RegExp(`${REPOSITORY}/pullrequests/(\\d+)/comments$`),
      body: content,
      answer({ body }, [, , number]) {
        const made = { id: 1000 + peer.comments.length, number: Number(number), text: body.content.raw };
        peer.comments.push(made);
        return { status: 201, json: { id: made.id } };
      },
    },
    {
      method: 'PUT',
      path: new RegExp(`${REPOSITORY}/pullrequests/\\d+/comments/(\\d+)$`),
      body: content,
      answer({ body }, [, , id]) {
        for (const one of peer.comments) if (String(one.id) === id) one.text = body.content.raw;
        return { json: { id: Number(id) } };
      },
    },
  ];
}

function hookRoutes(peer: GitPeer): Route[] {
  const hook = { description: TEXT, url: TEXT, secret: TEXT, active: 'boolean' as const, events: [EVENTS] as [RegExp] };
  return [
    {
      method: 'GET',
      path: new RegExp(`${REPOSITORY}/hooks$`),
      query: paged,
      answer: ({ query }) =>
        values(
          peer.hooks.map(({ id, url }) => ({ uuid: `{hook-${id}}`, url })),
          query,
        ),
    },
    {
      method: 'POST',
      path: new RegExp(`${REPOSITORY}/hooks$`),
      body: { fields: hook, required: ['description', 'url', 'active', 'events'] },
      answer({ body: { url, secret } }) {
        const made = { id: 100 + peer.hooks.length, url, secret };
        peer.hooks.push(made);
        return { status: 201, json: { uuid: `{hook-${made.id}}` } };
      },
    },
    {
      method: 'PUT',
      path: new RegExp(`${REPOSITORY}/hooks/(%7Bhook-\\d+%7D)$`),
      body: { fields: hook, required: [] },
      answer: (_, [, , uuid]) => ({ json: { uuid } }),
    },
    {
      method: 'DELETE',
      path: new RegExp(`${REPOSITORY}/hooks/(%7Bhook-\\d+%7D)$`),
      answer(_, [, , uuid]) {
        peer.hooks = peer.hooks.filter(({ id }) => `{hook-${id}}` !== uuid);
        return { status: 204 };
      },
    },
  ];
}

function values(rows: unknown[], query: URLSearchParams): { json: unknown } {
  const [per, page] = [Number(query.get('pagelen') ?? 10), Number(query.get('page') ?? 1)];
  const more = rows.length > page * per;
  return {
    json: {
      pagelen: per,
      page,
      values: rows.slice((page - 1) * per, page * per),
      ...(more && { next: 'https://next' }),
    },
  };
}

function repository(peer: GitPeer, { id, full_name, private: hidden, default_branch }: PeerRepository): object {
  return {
    ...{ uuid: `{repo-${id}}`, full_name, name: full_name, slug: full_name.split('/')[1], is_private: hidden },
    workspace: { uuid: '{ws-1}' },
    mainbranch: { name: default_branch },
    links: { html: { href: `${peer.url}/${full_name}` } },
    updated_on: '2026-01-31T09:30:00.000000+00:00',
  };
}

function pull(peer: GitPeer, { number, title, state, source, target, author, sha, fork }: PeerPull): object {
  return {
    ...{ id: number, title, state: STATES[state], author: { nickname: author } },
    source: { branch: { name: source }, commit: { hash: sha }, repository: { uuid: fork ? '{repo-999}' : '{repo-1}' } },
    destination: { branch: { name: target }, repository: { uuid: '{repo-1}' } },
    links: { html: { href: `${peer.url}/pull-requests/${number}` } },
    updated_on: '2026-01-31T09:30:00.000000+00:00',
  };
}
