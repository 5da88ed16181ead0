// What a person types into a form of the table, and the input that it means.
import type { Row } from '../../api/resources/query';
import type { ResourceTable, Value } from '../../api/resources/table';

/** Texts of scalars, lists, and objects; null: an object that is not given. */
export type Draft = string | Draft[] | { [name: string]: Draft } | null;
export type Drafts = Record<string, Draft>;

/** An empty form. */
export function emptyDrafts(table: ResourceTable, fields: readonly Value[]): Drafts {
  return Object.fromEntries(fields.map((field) => [field.name, emptyDraft(table, field)]));
}

function emptyDraft(table: ResourceTable, field: Value): Draft {
  if (field.list) return [];
  if (field.kind === 'input') return field.required ? emptyDrafts(table, fieldsOf(table, field)) : null;
  if (field.type === 'Boolean' && typeof field.default === 'boolean') return String(field.default);
  return '';
}

/** An entry of a list, or an object that is begun. */
export function newEntry(table: ResourceTable, field: Value): Draft {
  return field.kind === 'input' ? emptyDrafts(table, fieldsOf(table, field)) : '';
}

export function fieldsOf(table: ResourceTable, { type }: Pick<Value, 'type'>): readonly Value[] {
  return table.inputs[type]?.fields ?? [];
}

/** A form with what is there. */
export function draftsOf(table: ResourceTable, fields: readonly Value[], row: Row): Drafts {
  return Object.fromEntries(fields.map((field) => [field.name, draftOf(table, field, row[field.name])]));
}

function draftOf(table: ResourceTable, field: Value, value: unknown): Draft {
  if (value === null || value === undefined) return emptyDraft(table, { ...field, default: undefined });
  if (field.list) return (value as unknown[]).map((entry) => draftOf(table, { ...field, list: false }, entry));
  if (field.kind === 'input') return draftsOf(table, fieldsOf(table, field), value as Row);
  return field.type === 'DateTime' ? localTime(String(value)) : String(value);
}

/**
 * The input of what is filled in. @param before of a form with what was there: what is as it was is left out, and what
 * was emptied is null
 */
export function inputOf(table: ResourceTable, fields: readonly Value[], drafts: Drafts, before?: Drafts): Row {
  const input: Row = {};
  for (const field of fields) {
    const draft = drafts[field.name] ?? null;
    const earlier = before?.[field.name];
    if (before && same(draft, earlier)) continue;
    const value = valueOf(table, field, draft, earlier);
    if (value !== undefined) input[field.name] = value;
  }
  return input;
}

function valueOf(table: ResourceTable, field: Value, draft: Draft, before: Draft | undefined): unknown {
  if (Array.isArray(draft)) {
    const entry = { ...field, list: false };
    const list = draft.map((one) => valueOf(table, entry, one, undefined)).filter((one) => one !== undefined);
    return list.length || before !== undefined || field.required ? list : undefined;
  }
  if (draft === null) return before === undefined ? undefined : null;
  if (typeof draft !== 'string') return objectOf(table, field, draft, before);
  if (draft === '') return before === undefined ? undefined : null;
  return scalarOf(field, draft);
}

/** An object whole: of what is emptied the API is told, what has not changed is said again. */
function objectOf(table: ResourceTable, field: Value, draft: Drafts, before: Draft | undefined): Row {
  const fields = fieldsOf(table, field);
  const input = inputOf(table, fields, draft);
  if (!before || typeof before === 'string' || Array.isArray(before)) return input;
  for (const { name } of fields) {
    const now = draft[name] ?? null;
    if (!(name in input) && !same(now, before[name])) input[name] = Array.isArray(now) ? [] : null;
  }
  return input;
}

/** A text that is no number goes to the API as it is, which says what is wrong with it. */
function scalarOf({ type }: Value, text: string): unknown {
  if (type === 'Boolean') return text === 'true';
  if (/^(Int|Float|ByteCount)$/.test(type)) return Number.isFinite(Number(text)) ? Number(text) : text;
  if (type === 'DateTime') return Number.isNaN(Date.parse(text)) ? text : new Date(text).toISOString();
  return text;
}

export function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(left ?? null) === JSON.stringify(right ?? null);
}

/** As `datetime-local` has it: in the time zone of the person, with seconds. */
export function localTime(time: string): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** Names of fields that differ between two rows, of those that a form has. */
export function differing(fields: readonly Value[], left: Row, right: Row): Value[] {
  return fields.filter(({ name }) => !same(left[name], right[name]));
}

const SECRET = /(^|_)(password|secret|token|private_key|routing_key)$/;

export function isSecret({ name, type }: Value): boolean {
  return type === 'String' && SECRET.test(name);
}

/** The input with its secrets covered, to be shown. */
export function withoutSecrets(table: ResourceTable, fields: readonly Value[], input: Row): Row {
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      const field = fields.find((one) => one.name === name);
      if (!field || value === null) return [name, value];
      if (isSecret(field)) return [name, '…'];
      if (field.kind !== 'input') return [name, value];
      const cover = (one: unknown): Row => withoutSecrets(table, fieldsOf(table, field), one as Row);
      return [name, Array.isArray(value) ? value.map(cover) : cover(value)];
    }),
  );
}
