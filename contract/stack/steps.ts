// The differences between what a file says and what exists, as calls of the operations that make it so.
import { isDeepStrictEqual } from 'node:util';
import { Problem, problem } from '../../core/errors';
import type { UndoCall } from '../../core/undo';
import { isDestroying } from '../destroying';
import { isDocument } from '../revert';
import type { StackEntry } from './document';
import type { StackKind } from './kinds';
import { changeOf, refuseEntry, type StackChange, type StackRow, type StackRun, type Step, type Values } from './run';

const VALUE_CHARACTERS_MAX = 500;

/** What exists of a kind, as entries name it. */
async function present(run: StackRun, kind: StackKind): Promise<{ names: Map<string, StackRow>; rows: StackRow[] }> {
  const names = new Map((await run.reader.rows(run.ctx, 'application')).map((row) => [row.name as string, row]));
  for (const [name, { id }] of names) run.names.set(id, name);
  const rows = kind.type === 'application' ? [...names.values()] : await run.reader.rows(run.ctx, kind.type);
  return { names, rows };
}

/** Calls for what the file has of a kind. */
export async function upserts(run: StackRun, kind: StackKind): Promise<Step[]> {
  const entries = run.entries.filter((entry) => entry.kind === kind);
  if (!entries.length) return [];
  const { names, rows } = await present(run, kind);
  const targets = await referredRows(run, kind, names);
  return entries.flatMap((entry) => {
    const parent = entry.parent === null ? null : (names.get(entry.parent) ?? null);
    if (entry.parent !== null && !parent) {
      const detail = `The application ${entry.parent} is refused.`;
      return refuseEntry(run, entry, problem('reference_not_found', detail), '');
    }
    return stepsOf(run, entry, parent, rows, targets);
  });
}

/** Rows that fields of a file name. */
async function referredRows(
  run: StackRun,
  kind: StackKind,
  applications: Map<string, StackRow>,
): Promise<Map<string, Map<string, StackRow>>> {
  const databases = kind.type === 'database_attachment' ? await run.reader.rows(run.ctx, 'database') : [];
  return new Map([
    ['application', applications],
    ['database', new Map(databases.map((row) => [row.name as string, row]))],
  ]);
}

function stepsOf(
  run: StackRun,
  entry: StackEntry,
  parent: StackRow | null,
  rows: readonly StackRow[],
  targets: Map<string, Map<string, StackRow>>,
): Step[] {
  const { kind } = entry;
  const found = (key: string): StackRow | undefined =>
    rows.find((row) => isOf(kind, row, parent) && (kind.key === null || row[kind.key] === key));
  if (entry.isSecret) {
    if (!found(entry.key))
      run.missing_secrets.push({ application: entry.parent as string, key: entry.key, line: entry.line });
    return [];
  }
  if (kind.type === 'database_attachment') return attachmentSteps(run, entry, parent as StackRow, rows, targets);
  const named = withIds(run, entry, targets);
  if (!named) return [];
  try {
    const { key, values } = normalised(run, entry, parent, named);
    const row = found(key);
    return row ? updates(run, entry, parent, row, values) : [creation(run, entry, parent, key, values)];
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return refuseEntry(run, entry, error, '');
  }
}

/** Domains are found wherever they are: they can move. */
const isOf = ({ type, isChild }: StackKind, row: StackRow, parent: StackRow | null): boolean =>
  !isChild || type === 'domain' || row.application_id === parent?.id;

/** The values with ids for the names that they refer to; null and a refusal where there is no such thing. */
function withIds(run: StackRun, entry: StackEntry, targets: Map<string, Map<string, StackRow>>): Values | null {
  const values: Values = { ...entry.values };
  for (const [name, { field, type }] of Object.entries(entry.kind.references ?? {})) {
    if (!(name in values)) continue;
    const wanted = values[name] as string | null;
    delete values[name];
    values[field] = wanted === null ? null : (targets.get(type)?.get(wanted)?.id ?? undefined);
    if (values[field] !== undefined) continue;
    refuseEntry(run, entry, problem('reference_not_found', `There is no ${type} ${wanted} in this project.`), name);
    return null;
  }
  return values;
}

/** Key and values as the operation would store them. @throws validation_failed */
function normalised(
  run: StackRun,
  entry: StackEntry,
  parent: StackRow | null,
  values: Values,
): { key: string; values: Values } {
  const { kind, key } = entry;
  if (kind.create === null) {
    const args = run.calls.operation(kind.updates[0]?.operation ?? '').validate({ id: parent?.id, input: values });
    return { key: '', values: args.input as Values };
  }
  const args = run.calls.operation(kind.create).validate(argumentsOf(kind, parent, key, values));
  const { [kind.key as string]: named = args[kind.key as string], ...rest } = args.input as Values;
  return { key: named as string, values: rest };
}

function argumentsOf(kind: StackKind, parent: StackRow | null, key: string, values: Values): Values {
  const input = kind.isKeyed ? values : { [kind.key as string]: key, ...values };
  return { ...(parent && { id: parent.id }), ...(kind.isKeyed && { [kind.key as string]: key }), input };
}

function creation(run: StackRun, entry: StackEntry, parent: StackRow | null, key: string, values: Values): Step {
  const { kind } = entry;
  const operation = kind.create as string;
  const fields = fieldsOf(run, kind, values, {});
  const call = { operation, args: argumentsOf(kind, parent, key, values) };
  return { change: changeOf('create', entry, operation, fields, null), calls: [call], entry };
}

/** One step for each operation that has something to change. @throws validation_failed for a field that none has */
function updates(run: StackRun, entry: StackEntry, parent: StackRow | null, row: StackRow, values: Values): Step[] {
  const { kind } = entry;
  // A number of instances turns autoscaling off.
  const desired: Values =
    kind.type === 'process' && (values.instances !== undefined || values.autoscaling === null)
      ? { autoscaling: null, instances: row.instances, ...values }
      : kind.type === 'domain'
        ? { ...values, application_id: parent?.id }
        : values;
  requireReadable(kind, row);
  const isScaled = isDocument(desired.autoscaling);
  const changed = Object.fromEntries(
    Object.entries(desired).filter(
      ([name, value]) => !(isScaled && name === 'instances') && !contains(row[name], value),
    ),
  );
  const done = new Set<string>();
  const steps = kind.updates.flatMap(({ operation, fields, input }): Step[] => {
    const { field } = run.calls.operation(operation);
    const known = Object.keys(field.body?.type.getFields() ?? {});
    const own = Object.keys(changed).filter((name) => (fields ?? known).includes(name));
    if (!own.length) return [];
    for (const name of own) done.add(name);
    const part = Object.fromEntries(own.map((name) => [name, changed[name]]));
    const sent = input ? input({ ...row, ...desired }, part) : part;
    const args = { ...(kind.isChild ? childArguments(kind, row) : { id: row.id }), input: sent };
    const danger = field.destroyingInputs.some((one) => isDestroying(one, sent)) ? 'destroys' : null;
    const change = changeOf('update', entry, operation, fieldsOf(run, kind, part, row), row, danger);
    return [{ change, calls: [{ operation, args }], entry }];
  });
  const fixed = Object.keys(changed).filter((name) => !done.has(name));
  if (fixed.length) throw immutable(fixed);
  return steps;
}

function childArguments(kind: StackKind, row: StackRow): Values {
  const id = kind.key === null ? row.id : row.application_id;
  return { id, ...(kind.childId && { [kind.childId]: row.id }), ...(kind.isKeyed && { key: row.key }) };
}

function immutable(names: readonly string[]): Problem {
  const detail = 'cannot be changed once it exists: create another one under a new name';
  return problem('validation_failed', undefined, {
    errors: names.map((field) => ({ field, code: 'immutable', detail })),
  });
}

/** Whether a variable has changed is a secret too. @throws insufficient_scope */
function requireReadable({ type }: StackKind, row: StackRow): void {
  if (type !== 'environment_variable' || row.value !== undefined) return;
  const detail = 'To compare a variable with the file needs the scope env:read.';
  throw problem('insufficient_scope', detail, { required_scope: 'env:read' });
}

/** Databases that an application has under a prefix. */
function attachmentSteps(
  run: StackRun,
  entry: StackEntry,
  parent: StackRow,
  rows: readonly StackRow[],
  targets: Map<string, Map<string, StackRow>>,
): Step[] {
  const name = entry.values.database as string;
  const database = targets.get('database')?.get(name);
  if (!database) {
    const detail = `There is no database ${name} in this project, or it is refused.`;
    return refuseEntry(run, entry, problem('reference_not_found', detail), '');
  }
  const row = rows.find((one) => one.application_id === parent.id && one.env_prefix === entry.key);
  if (row?.database_id === database.id) return [];
  const operation = 'createDatabaseAttachment';
  const made = {
    operation,
    args: { id: database.id, input: { application_id: parent.id, env_prefix: entry.key } },
  };
  const before = row && [...(targets.get('database')?.values() ?? [])].find(({ id }) => id === row.database_id)?.name;
  const fields = [{ path: 'database', from: before === undefined ? null : shown(before), to: shown(name) }];
  const change = changeOf(row ? 'replace' : 'create', entry, operation, fields, null, row ? 'destroys' : null);
  return [{ change, calls: row ? [deletionCall(entry.kind, row), made] : [made], entry }];
}

/** Calls for what exists and is not in the file. */
export async function deletions(run: StackRun, kind: StackKind): Promise<Step[]> {
  if (!kind.delete) return [];
  const { names, rows } = await present(run, kind);
  const nameOfApplication = new Map([...names].map(([name, { id }]) => [id, name]));
  const applications = new Set(run.entries.filter((one) => one.kind.type === 'application').map(({ key }) => key));
  return rows.flatMap((row) => {
    const parent = kind.isChild ? (nameOfApplication.get(row.application_id as string) ?? null) : null;
    if (isKept(run, kind, row, parent, applications)) return [];
    const own = row[kind.key as string] as string;
    const [operation_id, name] = [kind.delete as string, parent === null ? own : `${parent}/${own}`];
    const change: StackChange = {
      ...{ action: 'delete', type: kind.type, name, fields: [], operation_id, line: null, resource_id: row.id },
      danger: kind.holdsData ? 'destroys_data' : 'destroys',
    };
    return [{ change, calls: [...releaseCalls(kind, row), deletionCall(kind, row)], entry: null }];
  });
}

function isKept(
  run: StackRun,
  kind: StackKind,
  row: StackRow,
  parent: string | null,
  applications: ReadonlySet<string>,
): boolean {
  const own = row[kind.key as string];
  if (own === kind.keeps || row.managed_by != null || row.is_special) return true;
  // Goes with its application, but for what holds others.
  if (kind.isChild && kind.type !== 'database_attachment' && !applications.has(parent as string)) return true;
  return run.entries.some(
    (entry) =>
      entry.kind === kind &&
      (kind.type === 'domain' ? hostnameOf(run, entry) === own : entry.parent === parent && entry.key === own),
  );
}

/** As it is stored. */
function hostnameOf(run: StackRun, entry: StackEntry): string {
  try {
    return normalised(run, entry, null, entry.values).key;
  } catch {
    return entry.key;
  }
}

/** Of a volume that an application goes on without. */
function releaseCalls({ release, isChild }: StackKind, { id, application_id }: StackRow): UndoCall[] {
  if (!release || isChild || application_id == null) return [];
  return [{ operation: release.operation, args: { id, input: release.input } }];
}

function deletionCall(kind: StackKind, row: StackRow): UndoCall {
  const operation = kind.delete as string;
  if (kind.type === 'database_attachment') return { operation, args: { id: row.database_id, attachment_id: row.id } };
  return { operation, args: kind.isChild ? childArguments(kind, row) : { id: row.id } };
}

function fieldsOf({ names }: StackRun, { type }: StackKind, values: Values, before: Values): StackChange['fields'] {
  return Object.entries(values).map(([path, value]) => {
    if (type === 'environment_variable' && path === 'value') return { path, from: null, to: null };
    if (path !== 'application_id') return { path, from: shown(before[path]), to: shown(value) };
    const [from, to] = [before[path], value].map((id) => shown(names.get(id as string)));
    return { path: 'application', from: from ?? null, to: to ?? null };
  });
}

function shown(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const text = JSON.stringify(value);
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text;
}

/** Whether what exists is as the file says; documents without what the file does not say. */
function contains(existing: unknown, wanted: unknown): boolean {
  if (isDocument(wanted))
    return isDocument(existing) && Object.entries(wanted).every(([name, value]) => contains(existing[name], value));
  return isDeepStrictEqual(existing ?? null, wanted ?? null);
}
