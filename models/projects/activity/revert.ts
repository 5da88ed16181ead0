// Takes a change back, where what it changed is as the change left it (docs/decisions/0232-undo-of-settings.md).
import { isDeepStrictEqual } from 'node:util';
import type { Context } from '../../../core/context';
import { problem, type Problem } from '../../../core/errors';
import { REVERT_OBSTACLES, type ExpectedRow, type RevertObstacle, type Undo } from '../../../core/undo';
import { named } from '../../../db/statement';
import { columnsOf, tableOf, type Values } from '../../../db/table';
import { kindNamed } from '../../base/kinds';
import type { Resource } from '../../base/resource';
import { sealedColumns } from '../../base/sealed_columns';
import { Activity } from '../activity';

const TAKE = named('delete from activity_undos where id = $1 and project_id = $2 returning undo');
const READ = named('select undo from activity_undos where id = $1 and project_id = $2');
const MARK = named('update activity set reverted_by = $2 where id = $1 and reverted_by is null returning id');

/** What takes back an entry, as it is now. @throws not_found, not_revertible */
export async function readUndo(ctx: Context, id: string): Promise<Undo> {
  await revertibleEntry(ctx, id);
  return openUndo(ctx, id, await ctx.sql.query<{ undo: string }>(READ, [id, ctx.project?.id]));
}

/**
 * The same, taken: of two who revert at once, one gets it. @param by id of the entry of the revert
 * @throws not_found, not_revertible
 */
export async function takeUndo(ctx: Context, id: string, by: string): Promise<{ entry: Activity; undo: Undo }> {
  const entry = await revertibleEntry(ctx, id);
  const [marked] = await ctx.sql.query(MARK, [id, by]);
  if (!marked) throw notRevertible('reverted');
  const undo = openUndo(ctx, id, await ctx.sql.query<{ undo: string }>(TAKE, [id, ctx.project?.id]));
  return { entry: Object.assign(entry, { reverted_by: by }), undo };
}

async function revertibleEntry(ctx: Context, id: string): Promise<Activity> {
  const entry = await Activity.get(ctx, id);
  const { obstacle } = entry;
  if (obstacle) throw notRevertible(obstacle);
  return entry;
}

function openUndo({ secrets }: Context, id: string, [row]: { undo: string }[]): Undo {
  if (!row) throw notRevertible('expired');
  return JSON.parse(secrets.open(row.undo, sealedColumns.activityUndo.contextOf(id))) as Undo;
}

function notRevertible(reason: RevertObstacle): Problem {
  return problem('not_revertible', REVERT_OBSTACLES[reason], { reason });
}

/** Reads what is no row of a kind. */
export type StateReader = (ctx: Context, by: Values) => Promise<Values | null>;

/**
 * Locks what a revert changes, and compares it with what the change left.
 * @throws precondition_failed with `conflicts`, both values of each where the caller may read them
 */
export async function requireUnchanged(
  ctx: Context,
  { holds, expected }: Undo,
  readers: Readonly<Record<string, StateReader>>,
): Promise<void> {
  for (const { kind, id } of holds) await hold(ctx, kind, id);
  const states = await loadStates(ctx, expected, readers);
  const conflicts = expected.flatMap((row, index) => conflictsOf(ctx, row, states[index] ?? null));
  if (!conflicts.length) return;
  const names = [...new Set(conflicts.map(({ field }) => field ?? 'the resource itself'))];
  const detail = `Changed since then: ${names.slice(0, NAMED_MAX).join(', ')}.`;
  throw problem('precondition_failed', detail, { conflicts: conflicts.slice(0, CONFLICTS_MAX) });
}

const NAMED_MAX = 20;
const CONFLICTS_MAX = 100;

async function hold(ctx: Context, kind: string, id: string): Promise<void> {
  if ((await lockRows(ctx, kind, [id], 'for no key update')).length) return;
  const conflicts = [{ type: kind, id, field: null }];
  throw problem('precondition_failed', `The ${kind.replaceAll('_', ' ')} ${id} no longer exists.`, { conflicts });
}

async function loadStates(
  ctx: Context,
  expected: readonly ExpectedRow[],
  readers: Readonly<Record<string, StateReader>>,
): Promise<(Values | null)[]> {
  const byId = new Map<string, Values>();
  for (const kind of new Set(expected.filter(({ by }) => 'id' in by).map((row) => row.kind))) {
    if (readers[kind]) continue;
    const ids = expected.filter((row) => row.kind === kind && 'id' in row.by).map(({ by }) => by.id as string);
    for (const row of await lockRows(ctx, kind, ids, 'for update')) byId.set(row.id, stateOf(ctx, row));
  }
  const found: (Values | null)[] = [];
  for (const { kind, by } of expected) {
    const reader = readers[kind];
    if (reader) found.push(await reader(ctx, by));
    else found.push('id' in by ? (byId.get(by.id as string) ?? null) : await stateBy(ctx, kind, by));
  }
  return found;
}

async function lockRows(
  ctx: Context,
  name: string,
  ids: readonly string[],
  lock: 'for update' | 'for no key update',
): Promise<Resource[]> {
  const kind = kindNamed(name);
  // The project is no tenant of itself.
  const tenant = name === 'project' ? 'id' : 'project_id';
  const info = tableOf(ctx, kind.table);
  const alive = info.columns.includes('deleted_at') ? 'and deleted_at is null' : '';
  const text = `select ${columnsOf(info)} from ${kind.table} where ${tenant} = $1 and id = any($2) ${alive}
    order by id ${lock}`;
  return ctx.sql.query<Resource>(named(text, { makes: kind }), [ctx.project?.id, ids]);
}

async function stateBy(ctx: Context, name: string, by: Values): Promise<Values | null> {
  const kind = kindNamed(name);
  const columns = Object.keys(by);
  const text = `select ${columnsOf(tableOf(ctx, kind.table))} from ${kind.table}
    where project_id = $1 and ${columns.map((column, index) => `${column} = $${index + 2}`).join(' and ')} for update`;
  const rows = await ctx.sql.query<Resource>(named(text, { makes: kind }), [ctx.project?.id, ...Object.values(by)]);
  return rows[0] ? stateOf(ctx, rows[0]) : null;
}

/** A secret that no key opens is none of the values that were left. */
function stateOf(ctx: Context, row: Resource): Values {
  try {
    return row.revertState(ctx);
  } catch {
    return { id: row.id };
  }
}

interface Conflict {
  type: string;
  id: string | null;
  /** null: whether the resource is there at all. */
  field: string | null;
  expected?: unknown;
  current?: unknown;
}

function conflictsOf(ctx: Context, { kind, by, values, secrets }: ExpectedRow, state: Values | null): Conflict[] {
  const resource = { type: kind, id: (by.id ?? state?.id ?? null) as string | null };
  if (!values || !state) return Boolean(values) === Boolean(state) ? [] : [{ ...resource, field: null }];
  return Object.entries(values).flatMap(([field, value]): Conflict[] => {
    const current = plain(valueAt(state, field));
    if (isDeepStrictEqual(current, plain(value))) return [];
    const secret = secrets?.names.some((name) => field === name || field.startsWith(`${name}.`)) ? secrets : null;
    const shown = secret ? secret.readable && mayRead(ctx, 'env:read') : mayRead(ctx, 'read');
    return [{ ...resource, field, ...(shown && { expected: value, current }) }];
  });
}

function mayRead({ identity }: Context, scope: 'read' | 'env:read'): boolean {
  return Boolean(identity) && (identity?.scopes === null || Boolean(identity?.scopes?.includes(scope)));
}

function valueAt(state: Values, path: string): unknown {
  let value: unknown = state;
  for (const name of path.split('.')) value = (value as Values | null | undefined)?.[name];
  return value ?? null;
}

/** As it was stored. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null)) as unknown;
}
