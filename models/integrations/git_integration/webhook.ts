// The webhook of the repository that a source names, as a user sees it.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';
import { hookUrl, openHook } from './hook';

const FIND = named(`select id, sealed_hook, hook_reason from git_repositories
    where git_integration_id = $1 and repository_id = $2 and deleted_at is null
  union all
  select id, sealed_hook, null from shared_repositories where id = $3`);

interface Webhook {
  webhook_url: string | null;
  webhook_reason: string | null;
}

/** The fields of a source that name a repository. */
type NamedRepository = Record<'git_integration_id' | 'repository_id' | 'shared_repository_id', string | null>;

export async function webhookOf(ctx: Context, source: NamedRepository | null): Promise<Webhook> {
  const { git_integration_id = null, repository_id = null, shared_repository_id = null } = source ?? {};
  const isNamed = git_integration_id !== null || shared_repository_id !== null;
  const [row] = isNamed
    ? await ctx.sql.query<{ id: string; sealed_hook: string; hook_reason: string | null }>(FIND, [
        ...[git_integration_id, repository_id, shared_repository_id],
      ])
    : [];
  if (!row) return { webhook_url: null, webhook_reason: null };
  return { webhook_url: hookUrl(ctx.config, openHook(ctx.secrets, row)), webhook_reason: row.hook_reason };
}
