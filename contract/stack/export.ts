// Writes what exists as a file, of which a plan is empty.
import { createRequire } from 'node:module';
import type * as OfYaml from 'yaml';
import { requireScope } from '../guard';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { memoize } from '../../core/memoize';
import { pruneTo } from '../revert';
import { stackFields, type Fields } from './document';
import { STACK_KINDS, type StackKind } from './kinds';
import type { StackReader, StackRow } from './run';

const yaml = memoize(() => createRequire(__filename)('yaml') as typeof OfYaml);

/** Keys are names that strangers chose, so these are no objects. */
type Content = Map<string, unknown>;

interface Writing {
  ctx: Context;
  fields: Fields;
  withValues: boolean;
  /** Names by the ids of applications and databases. */
  names: ReadonlyMap<string, string>;
  attachments: ReadonlyMap<string, StackRow>;
}

/** @throws insufficient_scope, role_not_permitted where values are asked for by who may not list them */
export async function writeStack(
  ctx: Context,
  reader: StackReader,
  fields: Fields,
  withValues: boolean,
): Promise<{ document: string; left_out: string[] }> {
  if (withValues && ctx.identity) requireScope(ctx.identity, 'env:read');
  if (withValues && ctx.project?.role === 'viewer')
    throw problem('role_not_permitted', undefined, { required_role: 'developer' });
  const loaded = new Map<StackKind, StackRow[]>();
  for (const kind of STACK_KINDS) loaded.set(kind, await reader.rows(ctx, kind.type));
  const of = (type: string): StackRow[] => [...loaded].find(([kind]) => kind.type === type)?.[1] ?? [];
  const names = new Map([...of('application'), ...of('database')].map(({ id, name }) => [id, name as string]));
  const attachments = new Map(of('database_attachment').map((row) => [row.id, row]));
  const writing: Writing = { ctx, fields, withValues, names, attachments };
  const file: Content = new Map();
  for (const [kind, rows] of loaded) for (const row of sorted(kind, rows)) writeRow(writing, file, kind, row);
  const special = [...attachments.values()].filter(({ is_special }) => is_special);
  return {
    document: file.size ? yaml().stringify(file, { lineWidth: 0, aliasDuplicateObjects: false }) : '{}\n',
    left_out: special.map(
      ({ application_id, database_id, env_prefix }) =>
        `${names.get(application_id as string)}: ${env_prefix as string}_… of the database ` +
        `${names.get(database_id as string)}, over another endpoint or as another user than the default.`,
    ),
  };
}

function sorted({ key }: StackKind, rows: readonly StackRow[]): StackRow[] {
  const nameOf = (row: StackRow): string => (key === null ? '' : (row[key] as string));
  return [...rows].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

function writeRow(writing: Writing, file: Content, kind: StackKind, row: StackRow): void {
  const parent = kind.isChild ? writing.names.get(row.application_id as string) : null;
  if (parent === undefined || row.is_special) return;
  const above = parent === null ? file : section(section(file, 'applications'), parent);
  if (kind.type === 'database_attachment') {
    const name = writing.names.get(row.database_id as string);
    return void section(above, 'variables').set(`${row.env_prefix as string}_URL`, `\${database.${name}.url}`);
  }
  const content = kind.type === 'environment_variable' ? variable(writing, row) : valuesOf(writing, kind, row);
  if (content === null || (kind.key === null && !(content as Content).size)) return;
  const place = kind.key === null ? above : section(above, kind.section);
  place.set(kind.key === null ? kind.section : (row[kind.key] as string), content);
}

function section(above: Content, name: string): Content {
  const found = (above.get(name) as Content | undefined) ?? new Map<string, unknown>();
  above.set(name, found);
  return found;
}

/** The value as a file has it; null for one that an attachment sets. */
function variable({ withValues }: Writing, { value, available_at, managed_by }: StackRow): unknown {
  if (managed_by !== null) return null;
  if (!withValues) return new Map([['secret', true]]);
  const text = (value as string).replaceAll('${', '$$${');
  return available_at === 'both'
    ? text
    : new Map([
        ['value', text],
        ['available_at', available_at as string],
      ]);
}

function valuesOf({ ctx, fields, names }: Writing, kind: StackKind, row: StackRow): Content {
  const stored = kind.key === null ? (row.stored as StackRow) : row;
  const content: Content = new Map();
  for (const [name, type] of stackFields(kind, fields)) {
    const reference = kind.references?.[name];
    const found = reference ? names.get(stored[reference.field] as string) : stored[name];
    if (found === null || found === undefined || isImplied(ctx, name, stored)) continue;
    const value = withoutNulls(pruneTo(type as Parameters<typeof pruneTo>[0], found));
    if (value !== undefined) content.set(name, value);
  }
  return content;
}

/** What a new resource has by itself, and a number of instances that is the autoscaler's. */
function isImplied({ project }: Context, name: string, row: StackRow): boolean {
  return (
    (name === 'region' && row.region === project?.default_region) || (name === 'instances' && row.autoscaling != null)
  );
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value) || typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, one]): [string, unknown][] => {
    const inner = withoutNulls(one);
    return inner === null || inner === undefined ? [] : [[name, inner]];
  });
  return entries.length ? Object.fromEntries(entries) : undefined;
}
