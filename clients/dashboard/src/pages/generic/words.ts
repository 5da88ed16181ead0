// Names of the API as people read them.
import type { Row } from '../../api/resources/query';
import { parametersOf, type Operation, type Place, type ResourcePage, type Shown } from '../../api/resources/table';
import { projectFlag, quote } from '../../parts/command';
import { kindWords, words } from '../../parts/words';

export { kindWords, words };

/** Last words of addresses that say too little by themselves. */
const TITLES: Record<string, string> = {
  'databases/engines': 'Database engines',
  'database_packages/availability': 'Availability of database packages',
};

/** Title of the page of a list or of a document without a name. */
export function pageTitle(key: string): string {
  const given = TITLES[key];
  if (given) return given;
  const parts = key.split('/').filter((part) => part !== '{}');
  return words(parts.at(-1) ?? '');
}

const NAMES = [
  ...['full_name', 'name', 'hostname', 'title', 'username', 'key', 'email', 'number', 'repository', 'message'],
  ...['branch', 'cause', 'action'],
];

/** The field by which people know a row of a type. */
export function nameField(fields: readonly Shown[]): string | undefined {
  const names = fields.filter(({ kind, list }) => kind !== 'object' && !list).map(({ name }) => name);
  return (
    NAMES.find((name) => names.includes(name)) ??
    names.find((name) => name === 'code' || name.endsWith('_name')) ??
    names.find((name) => name === 'id') ??
    names[0]
  );
}

export function nameOf(row: Row, fields: readonly Shown[]): string {
  const name = nameField(fields);
  const value = name === undefined ? undefined : row[name];
  const text = value ?? row.id;
  return typeof text === 'number' ? `#${text}` : String(text ?? '');
}

/** The command of `svc` that calls an operation. */
export function commandOf(operation: Operation, { projectId, ids }: Place, fields: Row = {}): string {
  const hasProject = operation.rest.startsWith('/v2/projects/{');
  const inPath = hasProject && projectId ? [projectId, ...ids] : [...ids];
  const named = parametersOf(operation.rest).map((_, index) => inPath[index] ?? '…');
  const project = !hasProject && !operation.isGlobal ? projectFlag(projectId) : '';
  const given = Object.entries(fields).map(([name, value]) => `--field ${quote(`${name}=${textOf(value)}`)}`);
  return ['svc api', operation.name, ...named.map(quote), ...given].join(' ') + project;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** Sentences of a page that its queries have. */
export function purposeOf({ description, summary }: Operation): string {
  return description ?? `${summary}.`;
}

/** Whether the operation is written into the form of what is there. */
export function isEdit(operation: Operation, page: ResourcePage): boolean {
  return !page.isList && (operation.method === 'PATCH' || operation.method === 'PUT');
}
