// One pass over the file of a project: what it is made of, what it has found, and what was refused.
import type { Context } from '../../core/context';
import { problem, type FieldError, type Problem } from '../../core/errors';
import type { UndoCall } from '../../core/undo';
import type { NestedCalls } from '../nested';
import type { StackEntry } from './document';

export type Values = Record<string, unknown>;

/** What exists. Its fields are named as those of the inputs. */
export interface StackRow extends Values {
  id: string;
  version: number;
  application_id?: string | null;
}

/** Reads what exists. Every call is inside the transaction. */
export interface StackReader {
  /** All of a kind in the project, oldest first. Values of variables only for those who may read them. */
  rows(ctx: Context, type: string): Promise<StackRow[]>;
  /** What it costs in a month. */
  monthlyPrice(ctx: Context): Promise<string>;
}

export interface StackChange {
  action: 'create' | 'update' | 'delete' | 'replace';
  type: string;
  name: string;
  fields: { path: string; from: string | null; to: string | null }[];
  operation_id: string;
  danger: 'destroys' | 'destroys_data' | null;
  line: number | null;
  resource_id: string | null;
}

export interface StackRefusal {
  type: string;
  name: string;
  path: string;
  line: number | null;
  operation_id: string;
  code: string;
  detail: string;
}

export interface Step {
  change: StackChange;
  calls: UndoCall[];
  /** Null for what is not in the file. */
  entry: StackEntry | null;
}

/** One pass over the file. */
export interface StackRun {
  ctx: Context;
  entries: readonly StackEntry[];
  prune: boolean;
  calls: NestedCalls;
  reader: StackReader;
  /** What the outside world has answered before the transaction, by the place of the step. */
  probed: ReadonlyMap<string, unknown>;
  /** A plan goes on behind what is refused. */
  isPlan: boolean;
  changes: StackChange[];
  refusals: StackRefusal[];
  missing_secrets: { application: string; key: string; line: number }[];
  /** Of applications by their ids, which differ with each new one. */
  names: Map<string, string>;
}

/** What an apply fails with. */
export function refused({ refusals }: StackRun): Problem {
  const [first] = refusals;
  return problem('stack_refused', `${first?.operation_id} ${first?.name}: ${first?.detail}`, { refusals });
}

/** Notes why a step is refused, with its line. */
export function refuseStep(run: StackRun, change: StackChange, entry: StackEntry | null, error: Problem): void {
  const { type, name, operation_id } = change;
  const at = (path: string): Pick<StackRefusal, 'path' | 'line'> => {
    const full = [entry?.path, path].filter(Boolean).join('.');
    return { path: full, line: entry ? (lineOf(entry, path) ?? entry.line) : null };
  };
  const mistakes = error.code === 'validation_failed' ? (error.members.errors as FieldError[]) : [];
  const field = typeof error.members.field === 'string' ? error.members.field : '';
  if (!mistakes.length)
    run.refusals.push({
      type,
      name,
      ...at(ownName(entry, field)),
      operation_id,
      code: error.code,
      detail: error.detail,
    });
  for (const one of mistakes) {
    const path = ownName(entry, one.field);
    run.refusals.push({
      type,
      name,
      ...at(path),
      operation_id,
      code: error.code,
      detail: `${path || name} ${one.detail}`,
    });
  }
}

/** The key of an entry is no field of the file. */
function ownName(entry: StackEntry | null, field: string): string {
  const [first, ...rest] = field.split('.');
  const renamed = Object.entries(entry?.kind.references ?? {}).find(([, one]) => one.field === first)?.[0];
  return first === entry?.kind.key ? '' : [renamed ?? first, ...rest].join('.');
}

/** Of the field, or of the nearest one around it. */
function lineOf({ lines }: StackEntry, path: string): number | undefined {
  for (let name = path; name; name = name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : '')
    if (lines.has(name)) return lines.get(name);
  return undefined;
}

/** Notes why an entry is refused. @throws stack_refused where it is no plan */
export function refuseEntry(run: StackRun, entry: StackEntry, error: Problem, path: string): [] {
  const operation = entry.kind.create ?? entry.kind.updates[0]?.operation ?? '';
  if (path && !error.members.field) Object.assign(error.members, { field: path });
  refuseStep(run, changeOf('create', entry, operation, [], null), entry, error);
  if (!run.isPlan) throw refused(run);
  return [];
}

export function changeOf(
  action: StackChange['action'],
  { kind, parent, key, line }: StackEntry,
  operation_id: string,
  fields: StackChange['fields'],
  row: StackRow | null,
  danger: StackChange['danger'] = null,
): StackChange {
  const name = [parent, key].filter(Boolean).join('/');
  return { action, type: kind.type, name, fields, operation_id, danger, line, resource_id: row?.id ?? null };
}
