// Queries and mutations of the generic pages, written from the table. The form of their text is the one that
// "as API call" reads: root fields at the first level, their arguments on one line.
import { requestWith, type Sent } from '../client';
import type { Query } from '../graphql';
import type { Operation, ResourceTable, Shown } from './table';

export type Row = Record<string, unknown>;

/** Objects in objects are asked for to this depth. */
const DEPTH_MAX = 6;

export interface ListPage {
  data: Row[];
  next_cursor: string | null;
}

/** @param fields of the first level; all where it is left out */
export function queryText(
  table: ResourceTable,
  operation: Operation,
  given: readonly string[],
  fields?: readonly string[],
): string {
  const args = operation.args.filter(({ name }) => given.includes(name));
  const heads = args.map(({ name, type, list, required }) => {
    const named = list ? `[${type}!]` : type;
    return `$${name}: ${named}${required ? '!' : ''}`;
  });
  const title = operation.name.charAt(0).toUpperCase() + operation.name.slice(1);
  const root = `${operation.name}${args.length ? `(${args.map(({ name }) => `${name}: $${name}`).join(', ')})` : ''}`;
  return [
    `${operation.isMutation ? 'mutation' : 'query'} ${title}${heads.length ? `(${heads.join(', ')})` : ''} {`,
    `  ${root}${selection(table, operation, fields)}`,
    '}',
  ].join('\n');
}

function selection(table: ResourceTable, { answer, isList }: Operation, fields?: readonly string[]): string {
  const all = table.types[answer];
  if (!all) return isList ? block(['data', 'next_cursor'], 2) : '';
  const shown = fields ? all.filter(({ name }) => fields.includes(name)) : all;
  if (!isList) return fieldsText(table, shown, 2, DEPTH_MAX);
  return block([`data${fieldsText(table, shown, 4, DEPTH_MAX)}`, 'next_cursor'], 2);
}

function fieldsText(table: ResourceTable, fields: readonly Shown[], indent: number, depth: number): string {
  const lines = fields.flatMap(({ name, type, kind }) => {
    if (kind !== 'object') return [name];
    return depth ? [name + fieldsText(table, table.types[type] ?? [], indent + 2, depth - 1)] : [];
  });
  return block(lines, indent);
}

function block(lines: readonly string[], indent: number): string {
  const [outer, inner] = [' '.repeat(indent), ' '.repeat(indent + 2)];
  return ` {\n${lines.map((line) => inner + line).join('\n')}\n${outer}}`;
}

/** Runs an operation. @returns what its root field answers, and its ETag */
export async function run<Answer>(
  operation: Operation,
  text: string,
  variables: Row,
  sent: Sent = {},
): Promise<{ answer: Answer; etag: string | null }> {
  const query = text as unknown as Query<Record<string, Answer>, Row>;
  const { data, etag } = await requestWith(query, variables, sent);
  return { answer: data[operation.name] as Answer, etag };
}
