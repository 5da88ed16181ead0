// GitLab, gitlab.com and self-managed. @see https://docs.gitlab.com/api/rest/
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
import { checksOf, type Check } from './checks';
import { branchWith, list, nextPage, pageNumber, PER_PAGE, segments, toText, toTime } from './rows';

/* oxlint-disable typescript/no-explicit-any -- shapes of the provider */

const STATES = { open: 'opened', closed: 'closed', merged: 'merged' } as const;

export function gitlabClient(api: Api): GitProviderClient {
  return { ...readsOf(api), ...writesOf(api) };
}

function readsOf(api: Api): GitProviderReads {
  return {
    account: () => readAccount(api),
    async repositories(at, search) {
      const query = { ...paged(at), membership: 'true', order_by: 'id', sort: 'asc', search };
      const found = await api.call({ path: '/projects', query: { ...query, search_namespaces: search && 'true' } });
      return portion(list(found.json), at, (row) => repositoryOf(api, row));
    },
    repository: async (id) => repositoryOf(api, (await api.call({ path: project({ id }) })).json),
    async branches(of, at, search) {
      const { json } = await api.call({ path: `${project(of)}/repository/branches`, query: { ...paged(at), search } });
      return portion(list(json), at, branchOf);
    },
    async pullRequests(of, state, at) {
      const query = { ...paged(at), state: STATES[state], order_by: 'updated_at', sort: 'desc' };
      const { json } = await api.call({ path: `${project(of)}/merge_requests`, query });
      return portion(list(json), at, pullRequestOf);
    },
    async pullRequest(of, number) {
      return pullRequestOf((await api.call({ path: `${project(of)}/merge_requests/${number}` })).json);
    },
    async checks(of, sha) {
      const { json } = await api.call({
        path: `${project(of)}/repository/commits/${sha}/statuses`,
        query: { per_page: PER_PAGE },
      });
      return checksOf(list(json).flatMap(checkOf));
    },
  };
}

function writesOf(api: Api): GitProviderWrites {
  return {
    async setStatus(of, sha, { state, description, url, context }) {
      const body = {
        state: state === 'failure' ? 'failed' : state,
        name: context,
        description: description.slice(0, 255),
        ...(url && { target_url: url }),
      };
      await ignoreSameState(api.call({ method: 'POST', path: `${project(of)}/statuses/${sha}`, body }));
    },
    async writeComment(of, number, id, body) {
      const notes = `${project(of)}/merge_requests/${number}/notes`;
      const { json } =
        id === null
          ? await api.call({ method: 'POST', path: notes, body: { body } })
          : await api.call({ method: 'PUT', path: `${notes}/${encodeURIComponent(id)}`, body: { body } });
      return toText(json?.id);
    },
    ensureWebhook: (of, url, secret) => ensureWebhook(api, `${project(of)}/hooks`, url, secret),
    async removeWebhook(of, id) {
      await api.call({ method: 'DELETE', path: `${project(of)}/hooks/${encodeURIComponent(id)}` });
    },
  };
}

const paged = (at: string | null) => ({ per_page: PER_PAGE, page: pageNumber(at) });
const project = ({ id }: { id: string }): string => `/projects/${encodeURIComponent(id)}`;

function portion<Row>(rows: any[], at: string | null, make: (row: any) => Row): GitPortion<Row> {
  return { rows: rows.map(make), next: nextPage(rows, pageNumber(at)) };
}

async function ensureWebhook(api: Api, path: string, url: string, secret: string): Promise<string> {
  const { json } = await api.call({ path, query: { per_page: PER_PAGE } });
  const present = list(json).find((hook) => hook?.url === url);
  const body = {
    url,
    token: secret,
    push_events: true,
    merge_requests_events: true,
    pipeline_events: true,
    enable_ssl_verification: true,
  };
  const made = present
    ? await api.call({ method: 'PUT', path: `${path}/${present.id}`, body })
    : await api.call({ method: 'POST', path, body });
  return toText(made.json?.id);
}

async function readAccount(
  api: Api,
): Promise<{ id: string; login: string; type: 'user'; url: string; missing_scopes: string[] }> {
  const { json } = await api.call({ path: '/user' });
  // Not available for OAuth tokens, whose scope was requested by the platform.
  const scopes =
    api.access.auth_type === 'token'
      ? await api.call({ path: '/personal_access_tokens/self' }).then(
          (found) => list(found.json?.scopes).map(String),
          () => ['api'],
        )
      : ['api'];
  return {
    id: toText(json?.id),
    login: toText(json?.username),
    type: 'user',
    url: toText(json?.web_url),
    missing_scopes: scopes.includes('api') ? [] : ['api'],
  };
}

// Setting a status to its current state is an error, which is ignored.
async function ignoreSameState(sent: Promise<unknown>): Promise<void> {
  try {
    await sent;
  } catch (error) {
    if (!/Cannot transition status/.test((error as Error).message)) throw error;
  }
}

const PENDING = new Set(['created', 'waiting_for_resource', 'preparing', 'pending', 'running', 'scheduled']);

function checkOf({ name, status, allow_failure }: any): Check[] {
  if (toText(name).startsWith(STATUS_PREFIX)) return [];
  if (PENDING.has(status)) return [{ name: toText(name), state: 'pending' }];
  const passed = status === 'success' || status === 'skipped' || status === 'manual' || allow_failure === true;
  return [{ name: toText(name), state: passed ? 'success' : 'failure' }];
}

function repositoryOf({ service }: Api, row: any): GitRepository {
  const full_name = toText(row?.path_with_namespace);
  return {
    id: toText(row?.id),
    full_name,
    name: toText(row?.path),
    private: row?.visibility !== 'public',
    default_branch: toText(row?.default_branch) || null,
    url: toText(row?.web_url),
    pushed_at: toTime(row?.last_activity_at),
    clone_url: `${service.web}/${segments(full_name)}.git`,
  };
}

function branchOf(row: any): GitBranch {
  return branchWith(row, row?.commit?.id);
}

function pullRequestOf(row: any): GitPullRequest {
  return {
    number: Number(row?.iid),
    title: toText(row?.title),
    state: row?.state === 'merged' ? 'merged' : row?.state === 'opened' || row?.state === 'locked' ? 'open' : 'closed',
    source_branch: toText(row?.source_branch),
    target_branch: toText(row?.target_branch),
    author: toText(row?.author?.username, 'ghost'),
    commit_sha: toText(row?.sha),
    url: toText(row?.web_url),
    updated_at: toTime(row?.updated_at) ?? new Date(0).toISOString(),
    from_fork: row?.source_project_id !== row?.target_project_id,
  };
}
