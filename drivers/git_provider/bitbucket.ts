// Bitbucket Cloud. @see https://developer.atlassian.com/cloud/bitbucket/rest/intro/
// Repositories are addressed by the ids of workspace and repository, which are unaffected by renames.
import {
  GitProviderError,
  STATUS_PREFIX,
  type GitBranch,
  type GitPortion,
  type GitProviderClient,
  type GitProviderReads,
  type GitProviderWrites,
  type GitPullRequest,
  type GitRepository,
} from '../../core/protocols/git_provider';
import type { Api } from './api';
import { checksOf } from './checks';
import { list, pageNumber, segments, toText, toTime } from './rows';

/* oxlint-disable typescript/no-explicit-any -- shapes of the provider */

const PER_PAGE = 50;
const EVENTS = [
  ...['repo:push', 'pullrequest:created', 'pullrequest:updated', 'pullrequest:fulfilled', 'pullrequest:rejected'],
  ...['repo:commit_status_created', 'repo:commit_status_updated'],
];
const STATES = { open: 'OPEN', closed: 'DECLINED', merged: 'MERGED' } as const;

export function bitbucketClient(api: Api): GitProviderClient {
  return { ...readsOf(api), ...writesOf(api) };
}

function readsOf(api: Api): GitProviderReads {
  return {
    async account() {
      const { json } = await api.call({ path: '/user' });
      const account = { id: bare(json?.uuid), login: toText(json?.username) || toText(json?.nickname) };
      const type = json?.type === 'team' ? ('organization' as const) : ('user' as const);
      return { ...account, type, url: toText(json?.links?.html?.href), missing_scopes: [] };
    },
    repositories: (at, search) => readRepositories(api, at, search),
    async repository(id) {
      return repositoryOf(api, (await api.call({ path: pathOf({ id }) })).json);
    },
    async branches(of, at, search) {
      const query = { ...paged(at), q: search === null ? null : `name ~ ${quoted(search)}` };
      return portion((await api.call({ path: `${pathOf(of)}/refs/branches`, query })).json, at, branchOf);
    },
    async pullRequests(of, state, at) {
      const query = { ...paged(at), state: STATES[state], sort: '-updated_on' };
      return portion((await api.call({ path: `${pathOf(of)}/pullrequests`, query })).json, at, pullRequestOf);
    },
    async pullRequest(of, number) {
      return pullRequestOf((await api.call({ path: `${pathOf(of)}/pullrequests/${number}` })).json);
    },
    async checks(of, sha) {
      const query = { pagelen: PER_PAGE };
      const { json } = await api.call({ path: `${pathOf(of)}/commit/${sha}/statuses`, query });
      return checksOf(
        list(json?.values)
          .filter(({ key }) => !toText(key).startsWith(STATUS_PREFIX))
          .map(({ key, name, state }) => ({ name: toText(name) || toText(key), state: stateOf(toText(state)) })),
      );
    },
  };
}

function writesOf(api: Api): GitProviderWrites {
  return {
    async setStatus(of, sha, { state, description, url, context }) {
      const stateNames = { pending: 'INPROGRESS', success: 'SUCCESSFUL', failure: 'FAILED' };
      // Bitbucket requires a URL: default to that of the commit.
      const target = url ?? `${api.service.web}/${segments(of.full_name)}/commits/${sha}`;
      const body = { key: context.slice(0, 40), name: context, state: stateNames[state], description, url: target };
      await api.call({ method: 'POST', path: `${pathOf(of)}/commit/${sha}/statuses/build`, body });
    },
    async writeComment(of, number, id, raw) {
      const comments = `${pathOf(of)}/pullrequests/${number}/comments`;
      const { json } =
        id === null
          ? await api.call({ method: 'POST', path: comments, body: { content: { raw } } })
          : await api.call({
              method: 'PUT',
              path: `${comments}/${encodeURIComponent(id)}`,
              body: { content: { raw } },
            });
      return toText(json?.id);
    },
    ensureWebhook: (of, url, secret) => ensureWebhook(api, `${pathOf(of)}/hooks`, url, secret),
    async removeWebhook(of, id) {
      await api.call({ method: 'DELETE', path: `${pathOf(of)}/hooks/${encodeURIComponent(`{${id}}`)}` });
    },
  };
}

const paged = (at: string | null) => ({ pagelen: PER_PAGE, page: pageNumber(at) });

function portion<Row>(json: any, at: string | null, make: (row: any) => Row): GitPortion<Row> {
  return { rows: list(json?.values).map(make), next: json?.next ? String(pageNumber(at) + 1) : null };
}

async function ensureWebhook(api: Api, path: string, url: string, secret: string): Promise<string> {
  const { json } = await api.call({ path, query: { pagelen: PER_PAGE } });
  const present = list(json?.values).find((hook) => hook?.url === url);
  const body = { description: 'platform', url, secret, active: true, events: EVENTS };
  const made = present
    ? await api.call({ method: 'PUT', path: `${path}/${encodeURIComponent(toText(present.uuid))}`, body })
    : await api.call({ method: 'POST', path, body });
  return bare(made.json?.uuid);
}

// There is no list of all repositories any more (CHANGE-2770): each workspace has its own. A cursor is the index of the
// workspace and its page.
async function readRepositories(
  api: Api,
  at: string | null,
  search: string | null,
): Promise<GitPortion<GitRepository>> {
  const [index = 0, page = 1] = (at ?? '0.1').split('.').map(Number);
  const workspaces = list((await api.call({ path: '/user/workspaces', query: { pagelen: 100 } })).json?.values);
  const workspace = workspaces[index]?.workspace ?? workspaces[index];
  if (!workspace) return { rows: [], next: null };
  const path = `/repositories/${encodeURIComponent(toText(workspace.uuid))}`;
  const query = { pagelen: PER_PAGE, page, role: 'member', q: search === null ? null : `name ~ ${quoted(search)}` };
  const { json } = await api.call({ path, query });
  const next = json?.next ? `${index}.${page + 1}` : index + 1 < workspaces.length ? `${index + 1}.1` : null;
  return { rows: list(json?.values).map((row) => repositoryOf(api, row)), next };
}

/** @throws GitProviderError not_found for an invalid id */
function pathOf({ id }: { id: string }): string {
  const [workspace, repository] = id.split('.');
  if (!workspace || !repository) throw new GitProviderError('not_found', 'Bitbucket has no such repository.');
  return `/repositories/${encodeURIComponent(`{${workspace}}`)}/${encodeURIComponent(`{${repository}}`)}`;
}

function bare(uuid: any): string {
  return toText(uuid).replace(/[{}]/g, '');
}

function quoted(search: string): string {
  return `"${search.replace(/["\\]/g, String.raw`\$&`)}"`;
}

function stateOf(state: string): 'pending' | 'success' | 'failure' {
  return state === 'INPROGRESS' ? 'pending' : state === 'SUCCESSFUL' ? 'success' : 'failure';
}

function repositoryOf({ service }: Api, row: any): GitRepository {
  const full_name = toText(row?.full_name);
  return {
    id: `${bare(row?.workspace?.uuid)}.${bare(row?.uuid)}`,
    full_name,
    name: toText(row?.slug) || toText(row?.name),
    private: row?.is_private === true,
    default_branch: toText(row?.mainbranch?.name) || null,
    url: toText(row?.links?.html?.href),
    pushed_at: toTime(row?.updated_on),
    clone_url: `${service.web}/${segments(full_name)}.git`,
  };
}

function branchOf(row: any): GitBranch {
  return { name: toText(row?.name), commit_sha: toText(row?.target?.hash), protected: null };
}

function pullRequestOf(row: any): GitPullRequest {
  return {
    number: Number(row?.id),
    title: toText(row?.title),
    state: row?.state === 'OPEN' ? 'open' : row?.state === 'MERGED' ? 'merged' : 'closed',
    source_branch: toText(row?.source?.branch?.name),
    target_branch: toText(row?.destination?.branch?.name),
    author: toText(row?.author?.nickname) || toText(row?.author?.display_name, 'ghost'),
    commit_sha: toText(row?.source?.commit?.hash),
    url: toText(row?.links?.html?.href),
    updated_at: toTime(row?.updated_on) ?? new Date(0).toISOString(),
    from_fork: row?.source?.repository?.uuid !== row?.destination?.repository?.uuid,
  };
}
