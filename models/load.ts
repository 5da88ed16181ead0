// Relations: one query for all rows of a page, per request.
import DataLoader from 'dataloader';
import type { Context } from '../core/context';
import { columnsOf, tableOf, type Resource, type ResourceClass } from './base';
import { quick } from './statement';

/** The row that a relation points to, within the project of the row it starts from; null where there is none. */
export function loadOne<R extends Resource>(kind: ResourceClass<R>, ctx: Context, projectId: string, id: string | null): Promise<R | null> {
  if (!id) return Promise.resolve(null);
  const name = `${kind.kind}:${projectId}`;
  const known = ctx.loaders.get(name) as DataLoader<string, R | null> | undefined;
  const loader = known ?? new DataLoader<string, R | null>((ids) => loadMany(kind, ctx, projectId, ids), { maxBatchSize: 500 });
  ctx.loaders.set(name, loader);
  return loader.load(id);
}

async function loadMany<R extends Resource>(kind: ResourceClass<R>, ctx: Context, projectId: string, ids: readonly string[]): Promise<(R | null)[]> {
  const info = tableOf(ctx, kind.table);
  const alive = info.columns.includes('deleted_at') ? 'and deleted_at is null' : '';
  const text = `select ${columnsOf(info)} from ${kind.table} where project_id = $1 and id = any($2) ${alive}`;
  const rows = await ctx.sql.query<R>(quick(text, kind), [projectId, ids]);
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => found.get(id) ?? null);
}
