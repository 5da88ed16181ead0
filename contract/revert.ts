// How the mutations of settings are taken back. A resolver file exports `revert: { updateX: fieldsBack() }`; an
// operation without one is in contract/irreversible.ts, with the reason.
import { isDeepStrictEqual } from 'node:util';
import { getNamedType, getNullableType, isInputObjectType, isListType, type GraphQLInputObjectType } from 'graphql';
import type { ExpectedRow, RevertObstacle, RowChange, Undo, UndoCall } from '../core/undo';

type Values = Record<string, unknown>;

/** A mutation that has succeeded. */
export interface MutationDone {
  operation: string;
  args: Values;
  changes: readonly RowChange[];
  /** The input type of an operation. @throws Error for one without a body */
  inputOf(operation: string): GraphQLInputObjectType;
}

/** What takes the mutation back, or why nothing does. */
export type Revert = (done: MutationDone) => Undo | RevertObstacle;

interface Fields {
  /** Argument with the id of the row. */
  id?: string;
  /** Kinds of the rows above, by the argument with their id. */
  parents?: Record<string, string>;
  /** Columns that can only increase. */
  growing?: string[];
  /** Fields with secrets, which no answer shows. */
  secrets?: string[];
}

/** Of an update: the same operation with the values from before. */
export function fieldsBack({ id: idArgument = 'id', parents = {}, growing = [], secrets = [] }: Fields = {}): Revert {
  return ({ operation, args, changes, inputOf }) => {
    const change = changes.find(({ id }) => id === args[idArgument]);
    if (!change?.before || !change.after) return 'unchanged';
    const { before, after } = change;
    if (growing.some((name) => differs(before[name], after[name]))) return 'grown';
    const input = changedFields(inputOf(operation), before, after);
    if (!Object.keys(input).length) return 'unchanged';
    const expected = { kind: change.kind, by: { id: change.id }, values: leavesOf(input, after) };
    const hidden = secrets.filter((name) => name in input);
    return {
      calls: [{ operation, args: { ...withoutInput(args), input } }],
      holds: Object.entries(parents).map(([argument, kind]) => ({ kind, id: args[argument] as string })),
      expected: [hidden.length ? { ...expected, secrets: { names: hidden, readable: false } } : expected],
    };
  };
}

interface Child {
  kind: string;
  /** Kind of the row above, whose id is the argument `id`. */
  parent: string;
  create: string;
  delete: string;
  /** Argument of `delete` with the id of the child. */
  id: string;
  /** Whether a row may get its id again: no row in tear-down has it. */
  revives?: true;
}

/** Of a creation: the child is deleted, unless its fields have changed. */
export function createdBack({ kind, parent, create, delete: operation, id }: Child): Revert {
  return ({ args, changes, inputOf }) => {
    const made = changes.find((one) => one.kind === kind && !one.before);
    if (!made?.after) return 'unchanged';
    const names = Object.keys(inputOf(create).getFields()).filter((name) => name in (made.after as Values));
    return {
      calls: [{ operation, args: { id: args.id, [id]: made.id } }],
      holds: [{ kind: parent, id: args.id as string }],
      expected: [{ kind, by: { id: made.id }, values: pick(made.after, names) }],
    };
  };
}

/** Of a deletion: the child is created again. */
export function deletedBack({ kind, parent, create, id, revives }: Child): Revert {
  return ({ args, changes, inputOf }) => {
    const gone = changes.find((one) => one.kind === kind && !one.after && one.id === args[id]);
    if (!gone?.before) return 'unchanged';
    const input = withoutNulls(prune(inputOf(create), gone.before));
    return {
      calls: [{ operation: create, args: { id: args.id, input }, ...(revives && { revive: [gone.id] }) }],
      holds: [{ kind: parent, id: args.id as string }],
      expected: [{ kind, by: { id: gone.id }, values: null }],
    };
  };
}

interface Document {
  kind: string;
  column: string;
  /** Field of the input. */
  field: string;
  set: string;
  delete: string;
}

/** Of a document that is replaced as a whole. */
export function documentBack({ kind, column, field, set, delete: remove }: Document): Revert {
  return ({ args, changes, inputOf }) => {
    const change = changes.find((one) => one.kind === kind && one.id === args.id);
    if (!change?.before || !change.after || !differs(change.before[column], change.after[column])) return 'unchanged';
    const before = (change.before[column] ?? []) as unknown[];
    const input = withoutNulls(prune(inputOf(set), { [field]: before }));
    const call: UndoCall = before.length
      ? { operation: set, args: { id: args.id, input } }
      : { operation: remove, args: { id: args.id } };
    const values = { [column]: change.after[column] ?? null };
    return { calls: [call], holds: [], expected: [{ kind, by: { id: change.id }, values }] };
  };
}

/** The fields of an input whose columns differ, with their values before; documents without what did not change. */
export function changedFields(type: GraphQLInputObjectType, before: Values, after: Values): Values {
  const names = Object.keys(type.getFields()).filter(
    (name) => name in before && name in after && differs(before[name], after[name]),
  );
  return Object.fromEntries(names.map((name) => [name, partBefore(type, name, before[name], after[name])]));
}

// A document is merged, or replaced: what is not null is right for both, what has become null has to be said.
function partBefore(type: GraphQLInputObjectType, name: string, before: unknown, after: unknown): unknown {
  const inner = getNullableType(type.getFields()[name]?.type);
  const pruned = inner ? pruneTo(inner, before) : before;
  if (!isDocument(pruned)) return pruned ?? null;
  const present = isDocument(after) ? after : {};
  return Object.fromEntries(
    Object.entries(pruned).filter(([key, value]) => value != null || (key in present && present[key] != null)),
  );
}

/** The names of an input's leaves, one level into documents, with the values that a row has for them. */
export function leavesOf(input: Values, row: Values): Values {
  return Object.fromEntries(
    Object.entries(input).flatMap(([name, value]): [string, unknown][] => {
      const stored = row[name];
      if (!isDocument(value) && !isDocument(stored)) return [[name, stored ?? null]];
      const keys = new Set([...(isDocument(value) ? Object.keys(value) : []), ...shownKeys(value, stored)]);
      if (stored == null) return [[name, null]];
      return [...keys].map((key) => [`${name}.${key}`, (stored as Values)[key] ?? null]);
    }),
  );
}

/** Where nothing was before, the whole document that is there now. */
function shownKeys(value: unknown, stored: unknown): string[] {
  return value == null && isDocument(stored) ? Object.keys(stored) : [];
}

/** The part of a value that an input type has. */
function prune(type: GraphQLInputObjectType, value: Values): Values {
  const fields = type.getFields();
  const known = Object.entries(value).filter(([name]) => name in fields);
  return Object.fromEntries(known.map(([name, one]) => [name, pruneTo(fields[name]?.type as never, one)]));
}

/** The part of a value that an input type has. */
export function pruneTo(type: Parameters<typeof getNullableType>[0], value: unknown): unknown {
  const bare = getNullableType(type as never) as unknown;
  if (isListType(bare) && Array.isArray(value)) return value.map((one) => pruneTo(bare.ofType as never, one));
  const inner = getNamedType(type as never) as unknown;
  return isInputObjectType(inner) && isDocument(value) ? prune(inner, value) : value;
}

function withoutNulls(value: Values): Values {
  const cleaned = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(cleaned);
    return isDocument(one) ? withoutNulls(one) : one;
  };
  const given = Object.entries(value).filter(([, one]) => one != null);
  return Object.fromEntries(given.map(([name, one]) => [name, cleaned(one)]));
}

export function isDocument(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function differs(before: unknown, after: unknown): boolean {
  return !isDeepStrictEqual(before ?? null, after ?? null);
}

function withoutInput({ input: _, ...rest }: Values): Values {
  return rest;
}

function pick(row: Values, names: readonly string[]): Values {
  return Object.fromEntries(names.map((name) => [name, row[name] ?? null]));
}

/** For hooks of kinds with rules of their own. */
export function expectedFields(change: RowChange, names: readonly string[]): ExpectedRow {
  return { kind: change.kind, by: { id: change.id }, values: pick(change.after ?? {}, names) };
}
