// GitHub and GitHub Enterprise Server. @see https://docs.github.com/en/rest
import {
  STATUS_PREFIX,
  type GitBranch,
  type GitChecks,
  type GitPortion,
  type GitProviderClient,
  type GitProviderReads,
  type GitProviderWrites,
  type GitPullRequest,
  type GitRepository,
} from '../../core/protocols/git_provider';
import type { Api } from './api';
import { checksOf } from './checks';
import { branchWith, list, nextPage, pageNumber, PER_PAGE, segments, toText, toTime } from './rows';

/* oxlint-disable typescript/no-explicit-any -- shapes of the provider */

const EVENTS = ['push', 'pull_request', 'status', 'check_suite', 'check_run'];

export function githubClient(api: Api): GitProviderClient {
  return { ...readsOf(api), ...writesOf(api) };
}

function readsOf(api: Api): GitProviderReads {
  return {
    async account() {
      const { json, headers } = await api.call({ path: '/user' });
      return { ...accountOf(json), missing_scopes: missingScopes(headers['x-oauth-scopes']) };
    },
    async repositories(at) {
      const query = { ...paged(at), sort: 'full_name' };
      const { json } = await api.call({ path: '/user/repos', query });
      return portion(list(json), at, (row) => githubRepository(api, row));
    },
    async repository(id) {
      // Undocumented, but GitHub itself redirects renamed repositories to it.
      const { json } = await api.call({ path: `/repositories/${encodeURIComponent(id)}` });
      return githubRepository(api, json);
    },
    async branches({ full_name }, at) {
      const { json } = await api.call({ path: `/repos/${segments(full_name)}/branches`, query: paged(at) });
      return portion(list(json), at, branchOf);
    },
    async pullRequests({ full_name }, state, at) {
      const query = { ...paged(at), state: state === 'open' ? 'open' : 'closed', sort: 'updated', direction: 'desc' };
      const { json } = await api.call({ path: `/repos/${segments(full_name)}/pulls`, query });
      const found = portion(list(json), at, githubPullRequest);
      return { ...found, rows: found.rows.filter((row) => row.state === state) };
    },
    async pullRequest({ full_name }, number) {
      return githubPullRequest((await api.call({ path: `/repos/${segments(full_name)}/pulls/${number}` })).json);
    },
    checks: ({ full_name }, sha) => readChecks(api, full_name, sha),
  };
}

function writesOf(api: Api): GitProviderWrites {
  return {
    async setStatus({ full_name }, sha, { state, description, url, context }) {
      await api.call({
        method: 'POST',
        path: `/repos/${segments(full_name)}/statuses/${sha}`,
        body: { state, description: description.slice(0, 140), context, ...(url && { target_url: url }) },
      });
    },
    async writeComment({ full_name }, number, id, body) {
      const comments = `/repos/${segments(full_name)}/issues`;
      const path = id === null ? `${comments}/${number}/comments` : `${comments}/comments/${encodeURIComponent(id)}`;
      const { json } = await api.call({ method: id === null ? 'POST' : 'PATCH', path, body: { body } });
      return toText(json?.id);
    },
    ensureWebhook: ({ full_name }, url, secret) => ensureWebhook(api, full_name, url, secret),
    async removeWebhook({ full_name }, id) {
      await api.call({ method: 'DELETE', path: `/repos/${segments(full_name)}/hooks/${encodeURIComponent(id)}` });
    },
  };
}

const paged = (at: string | null) => ({ per_page: PER_PAGE, page: pageNumber(at) });

function portion<Row>(rows: any[], at: string | null, make: (row: any) => Row): GitPortion<Row> {
  return { rows: rows.map(make), next: nextPage(rows, pageNumber(at)) };
}

async function ensureWebhook(api: Api, full_name: string, url: string, secret: string): Promise<string> {
  const path = `/repos/${segments(full_name)}/hooks`;
  const { json } = await api.call({ path, query: { per_page: PER_PAGE } });
  const present = list(json).find((hook) => hook?.config?.url === url);
  const config = { url, secret, content_type: 'json', insecure_ssl: '0' };
  const made = present
    ? await api.call({ method: 'PATCH', path: `${path}/${present.id}`, body: { config, events: EVENTS, active: true } })
    : await api.call({ method: 'POST', path, body: { name: 'web', config, events: EVENTS, active: true } });
  return toText(made.json?.id);
}

/** Check runs (apps, Actions) and commit statuses (the older API) combined. */
async function readChecks(api: Api, full_name: string, sha: string): Promise<GitChecks> {
  const commit = `/repos/${segments(full_name)}/commits/${sha}`;
  const [runs, statuses] = await Promise.all([
    api.call({ path: `${commit}/check-runs`, query: { per_page: PER_PAGE, filter: 'latest' } }),
    api.call({ path: `${commit}/status`, query: { per_page: PER_PAGE } }),
  ]);
  return checksOf([
    ...list(runs.json?.check_runs).map((run) => ({ name: toText(run.name), state: stateOfRun(run) })),
    ...list(statuses.json?.statuses)
      .filter(({ context }) => !toText(context).startsWith(STATUS_PREFIX))
      .map(({ context, state }) => ({ name: toText(context), state: stateOfStatus(toText(state)) })),
  ]);
}

const PASSED = new Set(['success', 'neutral', 'skipped']);

function stateOfRun({ status, conclusion }: any): 'pending' | 'success' | 'failure' {
  if (status !== 'completed') return 'pending';
  return PASSED.has(conclusion) ? 'success' : 'failure';
}

function stateOfStatus(state: string): 'pending' | 'success' | 'failure' {
  return state === 'success' || state === 'pending' ? state : 'failure';
}

/** Only classic and OAuth tokens report their scopes; fine-grained tokens have no such header. */
function missingScopes(header: unknown): string[] {
  if (typeof header !== 'string') return [];
  const scopes = header.split(',').map((scope) => scope.trim());
  return scopes.includes('repo') ? [] : ['repo'];
}

function accountOf(row: any): { id: string; login: string; type: 'user' | 'organization'; url: string } {
  return {
    id: toText(row?.id),
    login: toText(row?.login),
    type: row?.type === 'Organization' ? 'organization' : 'user',
    url: toText(row?.html_url),
  };
}

export function githubRepository({ service }: Api, row: any): GitRepository {
  const full_name = toText(row?.full_name);
  return {
    id: toText(row?.id),
    full_name,
    name: toText(row?.name),
    private: row?.private === true,
    default_branch: toText(row?.default_branch) || null,
    url: toText(row?.html_url),
    pushed_at: toTime(row?.pushed_at),
    clone_url: `${service.web}/${segments(full_name)}.git`,
  };
}

function branchOf(row: any): GitBranch {
  return branchWith(row, row?.commit?.sha);
}

export function githubPullRequest(row: any): GitPullRequest {
  const merged = Boolean(row?.merged_at);
  return {
    number: Number(row?.number),
    title: toText(row?.title),
    state: row?.state === 'open' ? 'open' : merged ? 'merged' : 'closed',
    source_branch: toText(row?.head?.ref),
    target_branch: toText(row?.base?.ref),
    author: toText(row?.user?.login, 'ghost'),
    commit_sha: toText(row?.head?.sha),
    url: toText(row?.html_url),
    updated_at: toTime(row?.updated_at) ?? new Date(0).toISOString(),
    // The repository of a fork that was deleted is null.
    from_fork: row?.head?.repo?.id === undefined || row.head.repo.id !== row?.base?.repo?.id,
  };
}
