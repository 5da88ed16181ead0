// Repositories of integrations that applications use: the webhook at the provider, the current name, and the open pull
// requests if no webhook reports them.
import {
  GitProviderError,
  type GitProviderClient,
  type GitPullRequest,
  type GitRepository,
} from '../../core/protocols/git_provider';
import { Problem } from '../../core/errors';
import { pauseMsAfter } from '../../core/process/backoff';
import { withProviderClient } from '../../models/integrations/git_integration/client';
import { hookUrl, openHook } from '../../models/integrations/git_integration/hook';
import {
  describedBy,
  notePullRequests,
  retireRepository,
  usersOf,
  type RepositoryRow,
  type RepositoryUser,
} from '../../models/integrations/git_repository';
import { gone, jittered, progressing, requireHost, settled, type Job, type JobContext, type Outcome } from '../job';

const WITH_HOOK_MS = 10 * 60_000;
const BACKOFF_MAX_MS = 60 * 60_000;

export const job: Job<RepositoryRow> = {
  table: 'git_repositories',
  host: true,
  quiet: true,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: RepositoryRow, ctx: JobContext): Promise<Outcome> {
  const users = await usersOf(ctx.sql, row);
  if (!users.length) {
    await retireRepository(ctx.sql, row);
    return progressing(0);
  }
  const checked_at = new Date().toISOString();
  try {
    const { found, hook, pulls } = await askProvider(row, users, ctx);
    if (pulls)
      for (const user of users.filter(({ auto_create }) => auto_create))
        await notePullRequests(ctx.sql, row, user, pulls);
    const pollMs = ctx.config.gitPollSeconds * 1000;
    const nextMs = hook.provider_hook_id === null ? pollMs : Math.max(pollMs, WITH_HOOK_MS);
    return settled({ ...describedBy(found), ...hook, checked_at, failures: 0 }, jittered(nextMs));
  } catch (error) {
    if (!(error instanceof GitProviderError || error instanceof Problem)) throw error;
    const failures = row.failures + 1;
    const pauseMs = pauseMsAfter(failures, { firstMs: 2 * ctx.config.gitPollSeconds * 1000, maxMs: BACKOFF_MAX_MS });
    return settled(
      { checked_at, failures, hook_reason: row.provider_hook_id ? null : error.message },
      jittered(pauseMs),
    );
  }
}

interface ProviderState {
  found: GitRepository;
  hook: HookColumns;
  /** Open pull requests, at most the newest; null if previews are off. */
  pulls: GitPullRequest[] | null;
}

function askProvider(row: RepositoryRow, users: readonly RepositoryUser[], ctx: JobContext): Promise<ProviderState> {
  return asProvider(row, ctx, async (client) => {
    const found = await client.repository(row.repository_id);
    const hook = await ensureHook(row, found.full_name, client, ctx);
    if (!users.some(({ auto_create }) => auto_create)) return { found, hook, pulls: null };
    const of = { id: row.repository_id, full_name: found.full_name };
    return { found, hook, pulls: (await client.pullRequests(of, 'open', null)).rows };
  });
}

interface HookColumns {
  provider_hook_id: string | null;
  hook_reason: string | null;
}

/** A token that may not create webhooks is no fault: the address is shown to the user. */
async function ensureHook(
  row: RepositoryRow,
  full_name: string,
  client: GitProviderClient,
  ctx: JobContext,
): Promise<HookColumns> {
  if (row.provider_hook_id !== null) return { provider_hook_id: row.provider_hook_id, hook_reason: null };
  const hook = openHook(ctx.secrets, row);
  try {
    const of = { id: row.repository_id, full_name };
    const id = await client.ensureWebhook(of, hookUrl(ctx.config, hook), hook.secret);
    return { provider_hook_id: id || null, hook_reason: null };
  } catch (error) {
    if (!(error instanceof GitProviderError) || error.failure === 'unauthorized') throw error;
    return { provider_hook_id: null, hook_reason: error.message };
  }
}

async function tearDown(row: RepositoryRow, ctx: JobContext): Promise<Outcome> {
  if (row.provider_hook_id === null) return gone;
  try {
    const of = { id: row.repository_id, full_name: row.full_name };
    await asProvider(row, ctx, (client) => client.removeWebhook(of, row.provider_hook_id as string));
  } catch (error) {
    // A provider that is away for good must not keep the row.
    if (!(error instanceof GitProviderError || error instanceof Problem)) throw error;
    ctx.log.info({ git_integration_id: row.git_integration_id }, 'a webhook stays at the provider');
  }
  return gone;
}

function asProvider<T>(
  row: RepositoryRow,
  ctx: JobContext,
  work: (client: GitProviderClient) => Promise<T>,
): Promise<T> {
  const { gitProviders } = requireHost(ctx);
  return withProviderClient(ctx, row.git_integration_id, (access) => gitProviders.client(access, ctx.signal), work);
}
