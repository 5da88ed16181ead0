// Gitea and Forgejo. @see https://docs.gitea.com/api/
import {
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
import { githubPullRequest, githubRepository } from './github';
import { branchWith, list, nextPage, pageNumber, segments, toText, toTime } from './rows';

/* oxlint-disable typescript/no-explicit-any -- shapes of the provider */

/** Default page size limit of Gitea (`MAX_RESPONSE_ITEMS`). */
const PER_PAGE = 50;
const EVENTS = ['push', 'pull_request', 'pull_request_sync', 'status'];

export function giteaClient(api: Api): GitProviderClient {
  return { ...readsOf(api), ...writesOf(api) };
}

function readsOf(api: Api): GitProviderReads {
  return {
    async account() {
      const { json } = await api.call({ path: '/user' });
      const account = { id: toText(json?.id), login: toText(json?.login), type: 'user' as const };
      return { ...account, url: `${api.service.web}/${segments(account.login)}`, missing_scopes: [] };
    },
    async repositories(at) {
      const { json } = await api.call({ path: '/user/repos', query: paged(at) });
      return portion(list(json), at, (row) => repositoryOf(api, row));
    },
    async repository(id) {
      const { json } = await api.call({ path: `/repositories/${encodeURIComponent(id)}` });
      return repositoryOf(api, json);
    },
    async branches(of, at) {
      const { json } = await api.call({ path: `${repo(of)}/branches`, query: paged(at) });
      return portion(list(json), at, branchOf);
    },
    async pullRequests(of, state, at) {
      const query = { ...paged(at), state: state === 'open' ? 'open' : 'closed', sort: 'recentupdate' };
      const { json } = await api.call({ path: `${repo(of)}/pulls`, query });
      const found = portion(list(json), at, pullRequestOf);
      return { ...found, rows: found.rows.filter((row) => row.state === state) };
    },
    async pullRequest(of, number) {
      return pullRequestOf((await api.call({ path: `${repo(of)}/pulls/${number}` })).json);
    },
    async checks(of, sha) {
      const { json } = await api.call({ path: `${repo(of)}/commits/${sha}/status`, query: { limit: PER_PAGE } });
      return checksOf(
        list(json?.statuses)
          .filter(({ context }) => !toText(context).startsWith(STATUS_PREFIX))
          .map(({ context, status }) => ({ name: toText(context), state: stateOf(toText(status)) })),
      );
    },
  };
}

function writesOf(api: Api): GitProviderWrites {
  return {
    async setStatus(of, sha, { state, description, url, context }) {
      const body = { state, description: description.slice(0, 140), context, ...(url && { target_url: url }) };
      await api.call({ method: 'POST', path: `${repo(of)}/statuses/${sha}`, body });
    },
    async writeComment(of, number, id, body) {
      const issues = `${repo(of)}/issues`;
      const path = id === null ? `${issues}/${number}/comments` : `${issues}/comments/${encodeURIComponent(id)}`;
      const { json } = await api.call({ method: id === null ? 'POST' : 'PATCH', path, body: { body } });
      return toText(json?.id);
    },
    ensureWebhook: (of, url, secret) => ensureWebhook(api, `${repo(of)}/hooks`, url, secret),
    async removeWebhook(of, id) {
      await api.call({ method: 'DELETE', path: `${repo(of)}/hooks/${encodeURIComponent(id)}` });
    },
  };
}

const paged = (at: string | null) => ({ limit: PER_PAGE, page: pageNumber(at) });
const repo = ({ full_name }: { full_name: string }): string => `/repos/${segments(full_name)}`;

function portion<Row>(rows: any[], at: string | null, make: (row: any) => Row): GitPortion<Row> {
  return { rows: rows.map(make), next: nextPage(rows, pageNumber(at), PER_PAGE) };
}

async function ensureWebhook(api: Api, path: string, url: string, secret: string): Promise<string> {
  const { json } = await api.call({ path, query: { limit: PER_PAGE } });
  const present = list(json).find((hook) => hook?.config?.url === url);
  const config = { url, secret, content_type: 'json' };
  const made = present
    ? await api.call({ method: 'PATCH', path: `${path}/${present.id}`, body: { config, events: EVENTS, active: true } })
    : await api.call({ method: 'POST', path, body: { type: 'gitea', config, events: EVENTS, active: true } });
  return toText(made.json?.id);
}

function stateOf(status: string): 'pending' | 'success' | 'failure' {
  if (status === 'pending') return 'pending';
  return status === 'success' || status === 'warning' || status === 'skipped' ? 'success' : 'failure';
}

// The shapes are those of GitHub, except for what is named here.
function repositoryOf(api: Api, row: any): GitRepository {
  const found = githubRepository(api, row);
  return {
    ...found,
    default_branch: row?.empty === true ? null : found.default_branch,
    pushed_at: toTime(row?.updated_at),
  };
}

function branchOf(row: any): GitBranch {
  return branchWith(row, row?.commit?.id);
}

function pullRequestOf(row: any): GitPullRequest {
  return {
    ...githubPullRequest(row),
    state: row?.merged === true ? 'merged' : row?.state === 'open' ? 'open' : 'closed',
    from_fork: row?.head?.repo_id !== row?.base?.repo_id,
  };
}
