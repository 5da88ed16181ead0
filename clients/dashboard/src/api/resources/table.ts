// The table that the build makes of the SDL (resource_table.mjs): its shapes, and how addresses of pages fit to it.
import type { Reversal } from '../../parts/reversal';

/** An argument of an operation or a field of a form. */
export interface Value {
  name: string;
  type: string;
  kind: 'scalar' | 'enum' | 'input';
  list?: boolean;
  required?: boolean;
  /** It may be left out, but not be null. */
  notNull?: boolean;
  description?: string;
  example?: unknown;
  default?: unknown;
  sorts?: readonly string[];
  min?: number;
  max?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  format?: string;
  pattern?: string;
}

/** A field of an answer. */
export interface Shown {
  name: string;
  type: string;
  kind: 'scalar' | 'enum' | 'object';
  list?: boolean;
  secret?: boolean;
  description?: string;
}

export interface Operation {
  name: string;
  /** Ids of the operations of REST that are this root field. */
  ids: readonly string[];
  isMutation: boolean;
  method: string;
  group: string;
  summary: string;
  description?: string;
  /** Path of REST, each parameter with the name of its argument. */
  rest: string;
  /** Path of its page, or below the page that offers it. */
  path: string;
  args: readonly Value[];
  /** The argument that is the body. */
  body?: string;
  answer: string;
  /** Type of the page of a list. */
  list?: string;
  isList: boolean;
  hasSecret: boolean;
  /** Argument for the id of the project; null where an id of a resource says it, or none is needed. */
  project: string | null;
  role: 'viewer' | 'developer' | 'owner';
  isGlobal: boolean;
  /** Removes or overwrites what cannot be made again, or ends access: its name is asked for. */
  destroys: boolean;
  reversibleBy: Reversal;
}

export interface ResourcePage {
  path: string;
  group: string;
  scope: 'project' | 'account';
  /** The query that reads it. */
  read: string;
  isList: boolean;
  /** Type of the document or of the rows. */
  type: string;
  /** Field by which the item is found in the list that `read` answers; its kind has no query for one item. */
  finds?: string;
  /** Operations that the page offers. */
  operations: readonly string[];
  /** Keys of the pages right below it. */
  pages: readonly string[];
}

export interface EnumValue {
  value: string;
  description?: string;
}

export interface ResourceTable {
  operations: Record<string, Operation>;
  pages: Record<string, ResourcePage>;
  types: Record<string, readonly Shown[]>;
  inputs: Record<string, { rules: readonly string[]; fields: readonly Value[] }>;
  enums: Record<string, readonly EnumValue[]>;
}

/** A page at an address. */
export interface Place {
  key: string;
  page: ResourcePage;
  /** Project of the address; undefined for pages of the account. */
  projectId: string | undefined;
  /** Values of the parameters of the path, in their order. */
  ids: readonly string[];
}

/** The page of `/projects/<id>/resources/<rest>` or `/resources/<rest>`; null where the API has nothing there. */
export function placeOf(table: ResourceTable, projectId: string | undefined, rest: readonly string[]): Place | null {
  const found = Object.entries(table.pages).filter(
    ([key, { scope }]) => (scope === 'account' || projectId) && isAt(key.split('/'), rest),
  );
  // Words of a path come before parameters: `databases/engines` is no database.
  found.sort(([left], [right]) => left.split('{}').length - right.split('{}').length);
  const [key, page] = found[0] ?? [];
  if (key === undefined || !page) return null;
  const parts = key.split('/');
  return { key, page, projectId, ids: rest.filter((_, index) => parts[index] === '{}') };
}

function isAt(parts: readonly string[], rest: readonly string[]): boolean {
  return parts.length === rest.length && parts.every((part, index) => part === '{}' || part === rest[index]);
}

/** Address of the page of a key. Without a project, one of the account. */
export function hrefOf(key: string, projectId: string | undefined, ids: readonly string[]): string {
  const rest = [...ids];
  const path = key
    .split('/')
    .map((part) => (part === '{}' ? encodeURIComponent(rest.shift() ?? '') : part))
    .join('/');
  return `${rootOf(projectId)}/${path}`;
}

/** Address of the list of all resources. */
export function rootOf(projectId: string | undefined): string {
  return projectId ? `/projects/${projectId}/resources` : '/resources';
}

/** Names of the parameters of a path. */
export function parametersOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}

/** Arguments of an operation that the address says: its ids, and the project. Others are asked for. */
export function knownArguments(operation: Operation, { projectId, ids }: Place): Record<string, string> {
  const known: Record<string, string> = {};
  for (const [index, name] of parametersOf(operation.path).entries()) {
    const id = ids[index];
    if (id !== undefined) known[name] = id;
  }
  if (projectId && operation.project) known[operation.project] = projectId;
  return known;
}

/** Place above a place that has a page. */
export function placesAbove(table: ResourceTable, { key, projectId, ids }: Place): Place[] {
  const parts = key.split('/');
  const above: Place[] = [];
  for (let length = 1; length < parts.length; length += 1) {
    const part = parts.slice(0, length).join('/');
    const page = table.pages[part];
    const count = part.split('{}').length - 1;
    if (page) above.push({ key: part, page, projectId, ids: ids.slice(0, count) });
  }
  return above;
}

/** Key of the page of a kind, such as `volumes/{}` for `volume_id` and `current_volume_id`. */
export function keyOfKind(table: ResourceTable, field: string): string | undefined {
  if (!/_ids?$/.test(field)) return undefined;
  const parts = field.replace(/_ids?$/, '').split('_');
  const kinds = parts.map((_, index) => parts.slice(index).join('_'));
  for (const kind of kinds) {
    const found = Object.entries(table.pages).find(
      ([key, { type, isList, finds }]) => !isList && !finds && key.endsWith('{}') && snakeCase(type) === kind,
    );
    if (found) return found[0];
  }
  return undefined;
}

function snakeCase(type: string): string {
  return type.replace(/(?!^)([A-Z])/g, '_$1').toLowerCase();
}
