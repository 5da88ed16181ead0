// Relations: one query for all rows of a page, per request.
import DataLoader from 'dataloader';
import type { Context } from '../../core/context';
import { selectsOnly, type Selection } from '../../core/selection';
import type { Resource, ResourceClass } from './resource';
import { columnsOf, tableOf } from '../../db/table';
import { quick } from '../../db/statement';

/** Columns that most queries select of a related row. One fixed set, since each set is a separate statement. */
const BRIEF = ['id', 'project_id', 'name', 'status'];
const isBrief = selectsOnly(BRIEF);

interface Loaded<R> {
  loader: DataLoader<string, R | null>;
  /** The same promise for the same row; the loader's own memory would make one for each question. */
  rows: Map<string, Promise<R | null>>;
}

/** Of one kind, by project. A key put together of both would be made for each row of a page. */
type OfKind<R> = Map<string, { brief?: Loaded<R>; whole?: Loaded<R> }>;

/**
 * The row that a relation points to, within the project of the row it starts from; null where there is none.
 * @param info of the relation's resolver, which may then get a row without the columns that the query does not show
 */
export function loadOne<R extends Resource>(
  kind: ResourceClass<R>,
  ctx: Context,
  projectId: string,
  id: string | null,
  info?: Selection,
): Promise<R | null> | null {
  if (!id) return null;
  const { loader, rows } = loadedOf(kind, ctx, projectId, info !== undefined && isBrief(info));
  const known = rows.get(id);
  if (known) return known;
  const row = loader.load(id);
  rows.set(id, row);
  return row;
}

function loadedOf<R extends Resource>(
  kind: ResourceClass<R>,
  ctx: Context,
  projectId: string,
  brief: boolean,
): Loaded<R> {
  const ofKind = (ctx.loaders.get(kind) ?? new Map()) as OfKind<R>;
  ctx.loaders.set(kind, ofKind);
  const ofProject = ofKind.get(projectId) ?? {};
  ofKind.set(projectId, ofProject);
  return (ofProject[brief ? 'brief' : 'whole'] ??= {
    loader: new DataLoader<string, R | null>((ids) => loadMany(kind, ctx, projectId, ids, brief), {
      maxBatchSize: 500,
      cache: false,
    }),
    rows: new Map(),
  });
}

async function loadMany<R extends Resource>(
  kind: ResourceClass<R>,
  ctx: Context,
  projectId: string,
  ids: readonly string[],
  brief: boolean,
): Promise<(R | null)[]> {
  const info = tableOf(ctx, kind.table);
  const alive = info.columns.includes('deleted_at') ? 'and deleted_at is null' : '';
  const columns = brief ? BRIEF.filter((column) => info.columns.includes(column)).join(', ') : columnsOf(info);
  const text = `select ${columns} from ${kind.table} where project_id = $1 and id = any($2) ${alive}`;
  const rows = await ctx.sql.query<R>(quick(text, kind), [projectId, ids]);
  const found = new Map(rows.map((row) => [row.id, row]));
  return ids.map((id) => found.get(id) ?? null);
}

/** The request's loader of this name, created at first use: all parameters of the load must be part of the name. */
export function loaderOf<Key, Value>(
  ctx: Context,
  name: string,
  load: (keys: readonly Key[]) => Promise<Value[]>,
): DataLoader<Key, Value> {
  const known = ctx.loaders.get(name) as DataLoader<Key, Value> | undefined;
  const loader = known ?? new DataLoader<Key, Value>(load, { maxBatchSize: 500 });
  ctx.loaders.set(name, loader);
  return loader;
}
