// Quotas of a project: counted under the lock of its row, so that a race can't pass the limit.
import type { Context, Statement } from '../../core/context';
import { problem } from '../../core/errors';
import { isKept } from './bin';
import type { ResourceClass } from './resource';
import { tableOf, type Values } from '../../db/table';
import { named } from '../../db/statement';

/** `resource` as in the usage answer; `sum` counts a column instead of rows. */
export interface Quota {
  resource: string;
  sum?: string;
  /** SQL condition of the rows that count; without it all that are not in tear-down. */
  where?: string;
}

/** How many rows of a kind stand below one parent: `An application may have 20 custom domains.` */
export interface ParentLimit {
  /** Names the parent in the row. */
  column: string;
  max: number;
  /** As in the answer. */
  resource: string;
  /** As in the sentence, with its article. */
  parent: string;
  rows: string;
  /** Which rows count; without it all that are not in tear-down. */
  where?: string;
}

/** A request, or a step of the loop. */
type Counting = Pick<Context, 'sql' | 'config'>;

const LOCK = named('select 1 from projects where id = $1 and deleted_at is null for update');

/**
 * Refuses a row that would pass a limit of its project; locks the project's row until the end of the transaction.
 * @throws quota_exceeded with resource, used, limit; project_not_found where the project has gone since the guard
 * looked
 */
export async function checkQuotas(
  ctx: Counting,
  kind: ResourceClass,
  projectId: string | undefined,
  values: Values,
): Promise<void> {
  if (!kind.quotas.length || !projectId) return;
  await requireAll(
    ctx,
    kind,
    projectId,
    kind.quotas.map((quota) => ({ ...quota, added: quota.sum ? Number(values[quota.sum] ?? 0) : 1 })),
  );
}

/** The same for a row that was there before and is again: it counts already. @throws as checkQuotas */
export async function requireCountWithin(ctx: Counting, kind: ResourceClass, projectId: string): Promise<void> {
  const counts = kind.quotas.filter(({ sum }) => !sum);
  if (counts.length)
    await requireAll(
      ctx,
      kind,
      projectId,
      counts.map((quota) => ({ ...quota, added: 0 })),
    );
}

/** The same for a row that grows by `added`. @throws as checkQuotas */
export async function requireRoom(
  ctx: Counting,
  kind: ResourceClass,
  projectId: string,
  quota: Quota,
  added: number,
): Promise<void> {
  await requireAll(ctx, kind, projectId, [{ ...quota, added }]);
}

/**
 * Refuses rows that would pass the limit of their parent, which the caller has locked, so that a race can't pass it.
 * @throws quota_exceeded with resource, used, limit
 */
export async function requireParentRoom(
  ctx: Counting,
  { table, parentLimit }: Pick<ResourceClass, 'table' | 'parentLimit'>,
  parentId: string,
  more = 1,
): Promise<void> {
  if (!parentLimit) return;
  const { column, where = 'true' } = parentLimit;
  const alive = tableOf(ctx, table).columns.includes('deleted_at') ? 'and deleted_at is null' : '';
  const count = named(`select count(*)::int as used from ${table} where ${column} = $1 and ${where} ${alive}`);
  await requireBelow(ctx, count, parentId, parentLimit, more);
}

/** As above, for rows without a resource kind. @param count a statement that returns `used` for the parent's id */
export async function requireBelow(
  ctx: Counting,
  count: Statement,
  parentId: string,
  { max: limit, resource, parent, rows }: Omit<ParentLimit, 'column'>,
  more = 1,
): Promise<void> {
  const [row] = await ctx.sql.query<{ used: number }>(count, [parentId]);
  const used = Number(row?.used ?? 0);
  if (used + more > limit)
    throw problem('quota_exceeded', `${parent} may have ${limit} ${rows}.`, { resource, used, limit });
}

/** What a project uses of a quota; rows in tear-down don't count. */
export async function usedOf(ctx: Counting, kind: ResourceClass, projectId: string, quota: Quota): Promise<number> {
  const [used = 0] = await allUsed(ctx, kind, projectId, [quota]);
  return used;
}

async function requireAll(
  ctx: Counting,
  kind: ResourceClass,
  projectId: string,
  wanted: (Quota & { added: number })[],
): Promise<void> {
  const limited = wanted.filter(({ resource }) => (ctx.config.quotas[resource] ?? null) !== null);
  // In one go: PostgreSQL counts when it has the lock.
  const [, used] = await Promise.all([
    lock(ctx, projectId),
    limited.length ? allUsed(ctx, kind, projectId, limited) : [],
  ]);
  limited.forEach(({ resource, added }, index) => {
    const [limit, now] = [ctx.config.quotas[resource] as number, used[index] as number];
    if (now + added > limit)
      throw problem('quota_exceeded', `The project may have ${limit} ${resource}.`, { resource, used: now, limit });
  });
}

// A project is deleted under the same lock, so no resource is created in a project that is being deleted.
async function lock(ctx: Counting, projectId: string): Promise<void> {
  const [held] = await ctx.sql.query(LOCK, [projectId]);
  if (!held) throw problem('project_not_found');
}

async function allUsed(
  ctx: Counting,
  kind: ResourceClass,
  projectId: string,
  quotas: readonly Quota[],
): Promise<number[]> {
  const { table, bin } = kind;
  const hasDeleted = tableOf(ctx, table).columns.includes('deleted_at');
  // What is in the bin takes space, and no number.
  const taken = hasDeleted && bin ? `and (deleted_at is null or ${isKept(table)})` : '';
  const alive = hasDeleted ? 'and deleted_at is null' : '';
  const used = quotas.map(({ sum, where = 'true' }, index) => {
    const counted = sum ? `coalesce(sum(${sum}), 0)::bigint` : 'count(*)';
    return `(select ${counted} from ${table} where project_id = $1 and ${where} ${sum && taken ? taken : alive})
      as used_${index}`;
  });
  const [row] = await ctx.sql.query<Record<string, number>>(named(`select ${used.join(', ')}`), [projectId]);
  return quotas.map((_, index) => Number(row?.[`used_${index}`] ?? 0));
}
