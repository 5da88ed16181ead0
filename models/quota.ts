// Quotas of a project: counted under the lock of its row, so that a race can't pass the limit.
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import { tableOf, type ResourceClass, type Values } from './base';
import { named } from './statement';

/** `resource` as in the usage answer; `sum` counts a column instead of rows. */
export interface Quota {
  resource: string;
  sum?: string;
}

const LOCK = named('select 1 from projects where id = $1 and deleted_at is null for update');

/**
 * Refuses a row that would pass a limit of its project; locks the project's row until the end of the transaction.
 * @throws quota_exceeded with resource, used, limit; project_not_found where the project has gone since the guard looked
 */
export async function checkQuotas(ctx: Context, kind: ResourceClass, projectId: string | undefined, values: Values): Promise<void> {
  if (!kind.quotas.length || !projectId) return;
  await lock(ctx, projectId);
  for (const quota of kind.quotas) {
    const added = quota.sum ? Number(values[quota.sum] ?? 0) : 1;
    await count(ctx, kind, projectId, quota, added);
  }
}

/** The same for a row that grows by `added`. @throws as checkQuotas */
export async function requireRoom(ctx: Context, kind: ResourceClass, projectId: string, quota: Quota, added: number): Promise<void> {
  await lock(ctx, projectId);
  await count(ctx, kind, projectId, quota, added);
}

/** What a project uses of a quota; rows in tear-down don't count. */
export async function usedOf(ctx: Context, kind: ResourceClass, projectId: string, quota: Quota): Promise<number> {
  const alive = tableOf(ctx, kind.table).columns.includes('deleted_at') ? 'and deleted_at is null' : '';
  const what = quota.sum ? `coalesce(sum(${quota.sum}), 0)::bigint` : 'count(*)';
  const text = `select ${what} as used from ${kind.table} where project_id = $1 ${alive}`;
  const [row] = await ctx.sql.query<{ used: number }>(named(text), [projectId]);
  return Number(row?.used ?? 0);
}

// A project is deleted under the same lock, so nothing is made in one that is on its way out.
async function lock(ctx: Context, projectId: string): Promise<void> {
  const [held] = await ctx.sql.query(LOCK, [projectId]);
  if (!held) throw problem('project_not_found');
}

async function count(ctx: Context, kind: ResourceClass, projectId: string, quota: Quota, added: number): Promise<void> {
  const limit = ctx.config.quotas[quota.resource] ?? null;
  if (limit === null) return;
  const used = await usedOf(ctx, kind, projectId, quota);
  if (used + added > limit) throw problem('quota_exceeded', `The project may have ${limit} ${quota.resource}.`, { resource: quota.resource, used, limit });
}
