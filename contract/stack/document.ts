// The file of a project as entries: what each of them says, and on which line. Fields are those of the inputs of the
// operations (kinds.ts); their bounds are checked by the operations themselves.
import {
  getNullableType,
  isInputObjectType,
  isListType,
  isScalarType,
  type GraphQLInputObjectType,
  type GraphQLInputType,
} from 'graphql';
import { validationFailed, type FieldError } from '../../core/errors';
import type { RootField } from '../operations';
import { ATTACHMENT_PARTS, STACK_KINDS, stackKind, type StackKind } from './kinds';
import { GROUPS, expandGroups } from './variable_groups';
import { mergeTrees, mistake, readYaml, type Tree } from './yaml_tree';

/** One resource, as the file describes it. */
export interface StackEntry {
  kind: StackKind;
  /** Name of the application that it belongs to. */
  parent: string | null;
  key: string;
  /** `applications.shop.processes.web` */
  path: string;
  line: number;
  values: Record<string, unknown>;
  /** Lines of the values, by their paths below `path`. */
  lines: Map<string, number>;
  /** A variable whose value is set elsewhere. */
  isSecret?: true;
}

/** The root fields by their names. */
export interface Fields {
  get(name: string): Pick<RootField, 'body'> | undefined;
}

const ENTRIES_MAX = 500;
const ENVIRONMENTS_MAX = 20;
const REFERENCE = /^\$\{database\.([^.${}]+)\.([a-z]+)\}$/;
const SECTIONS = STACK_KINDS.filter(({ section }) => section !== '');

/** Where a file is read for. */
export interface StackPlace {
  /** Whose values replace those above it. */
  environment: string | null;
  project: { id: string; name: string };
}

/** Reads a file. @throws validation_failed with the line of each mistake */
export function readStack(text: string, { environment, project }: StackPlace, fields: Fields): StackEntry[] {
  const read = readYaml(text);
  if ('mistakes' in read) throw validationFailed(read.mistakes);
  const { tree } = read;
  const mistakes: FieldError[] = [];
  const reading: Reading = { fields, mistakes };
  const base = mapOf(reading, tree, '');
  const environments = mapOf(reading, base.get('environments') ?? null, 'environments');
  const top: Tree = {
    ...{ is: 'map', line: tree.line },
    entries: new Map([...base].filter(([name]) => name !== 'environments')),
  };
  if (environments.size > ENVIRONMENTS_MAX)
    mistakes.push(mistake(tree.line, `has more than ${ENVIRONMENTS_MAX} environments`, 'environments'));
  let entries = readSections(reading, withoutProject(withGroups(reading, top)), null, '');
  for (const [name, patch] of [...environments].slice(0, ENVIRONMENTS_MAX)) {
    const merged = readSections(reading, withoutProject(withGroups(reading, mergeEnvironment(top, patch))), null, '');
    if (name === environment) entries = merged;
  }
  requireProject(reading, top, environment === null ? null : (environments.get(environment) ?? null), project);
  if (environment !== null && !environments.has(environment))
    throw validationFailed([
      { field: 'environment', code: 'not_in_enum', detail: 'is not one of the `environments` of the file' },
    ]);
  if (entries.length > ENTRIES_MAX) mistakes.push(mistake(1, `has more than ${ENTRIES_MAX} resources`));
  if (mistakes.length) throw validationFailed(uniqueMistakes(mistakes));
  return entries;
}

/** One without a line of its own (`staging:`) is as the file above it, not an empty file that prunes everything. */
function mergeEnvironment(top: Tree, patch: Tree): Tree {
  return patch.is === 'scalar' && patch.value === null ? top : mergeTrees(top, patch);
}

/** The tree with the variables of groups at the applications that name them. Groups that nobody names are read, too. */
function withGroups(reading: Reading, tree: Tree): Tree {
  const kind = stackKind('environment_variable');
  const groups = tree.is === 'map' ? (tree.entries.get(GROUPS) ?? null) : null;
  for (const [name, content] of mapOf(reading, groups, GROUPS))
    readSection(reading, kind, content, '', `${GROUPS}.${name}`);
  return expandGroups(tree, (at, path, detail) => void refuse(reading, at, path, detail));
}

/** The fields of a section, with the types of their values. */
export function stackFields(kind: StackKind, fields: Fields): Map<string, GraphQLInputType> {
  const type = sectionInput(kind, fields);
  const found = Object.values(type.getFields()).filter(
    ({ name, deprecationReason }) => name !== kind.key && !kind.omitted?.includes(name) && !deprecationReason,
  );
  const renamed = new Map(Object.entries(kind.references ?? {}).map(([name, { field }]) => [field, name]));
  return new Map(found.map(({ name, type: one }) => [renamed.get(name) ?? name, one]));
}

export function sectionInput({ create, updates, type }: StackKind, fields: Fields): GraphQLInputObjectType {
  const input = fields.get(create ?? updates[0]?.operation ?? '')?.body?.type;
  if (!input) throw new Error(`stack: ${type} has no input`);
  return input;
}

/**
 * A file of another project, or of another environment, must not be applied by mistake. An environment is a project of
 * its own: it has no part in the `project` above it, but is not that one either.
 */
function requireProject(reading: Reading, top: Tree, patch: Tree | null, { id, name }: StackPlace['project']): void {
  const [above, own] = [top, patch].map((tree) => (tree?.is === 'map' ? tree.entries.get('project') : undefined));
  const named = patch ? own : above;
  if (named && (named.is !== 'scalar' || named.value === null))
    return void refuse(reading, named, 'project', 'must be the name of a project');
  const isHere = (tree: Tree | undefined): boolean => tree?.is === 'scalar' && [id, name].includes(tree.source);
  if (named && !isHere(named))
    refuse(reading, named, 'project', `names the project ${sourceOf(named)}, and this is ${name}`);
  if (patch && !named && above && isHere(above))
    refuse(reading, above, 'project', `names ${name}, and an environment has a \`project\` of its own`);
}

const sourceOf = (tree: Tree): string => (tree.is === 'scalar' ? tree.source : '');

function withoutProject(tree: Tree): Tree {
  if (tree.is !== 'map') return tree;
  return { ...tree, entries: new Map([...tree.entries].filter(([name]) => name !== 'project')) };
}

interface Reading {
  fields: Fields;
  mistakes: FieldError[];
}

/** The entries of a mapping; none and a mistake for anything else. */
function mapOf(reading: Reading, tree: Tree | null, path: string): Map<string, Tree> {
  if (!tree || (tree.is === 'scalar' && tree.value === null)) return new Map();
  if (tree.is === 'map') return tree.entries;
  refuse(reading, tree, path, 'must be a mapping');
  return new Map();
}

/** The sections of the file, or of an application. */
function readSections(reading: Reading, tree: Tree, parent: string | null, path: string): StackEntry[] {
  const known = SECTIONS.filter(({ isChild }) => isChild === (parent !== null));
  const entries: StackEntry[] = [];
  for (const [name, content] of mapOf(reading, tree, path)) {
    const kind = known.find(({ section }) => section === name);
    const place = path ? `${path}.${name}` : name;
    if (kind) entries.push(...readSection(reading, kind, content, parent, place));
    else if (parent === null)
      refuse(reading, content, place, `is not one of ${known.map((one) => one.section).join(', ')}`);
  }
  return entries;
}

function readSection(reading: Reading, kind: StackKind, tree: Tree, parent: string | null, path: string): StackEntry[] {
  if (kind.key === null) return [readEntry(reading, kind, '', tree, parent, path)];
  const entries = [...mapOf(reading, tree, path)].flatMap(([key, content]) =>
    kind.type === 'environment_variable'
      ? readVariable(reading, kind, key, content, parent as string, `${path}.${key}`)
      : [readEntry(reading, kind, key, content, parent, `${path}.${key}`)],
  );
  if (kind.type === 'environment_variable') return withAttachments(reading, entries);
  if (kind.type !== 'application') return entries;
  const children = [...mapOf(reading, tree, path)].flatMap(([key, content]) =>
    readSections(reading, content, key, `${path}.${key}`),
  );
  return [...entries, ...children];
}

function readEntry(
  reading: Reading,
  kind: StackKind,
  key: string,
  tree: Tree,
  parent: string | null,
  path: string,
): StackEntry {
  const entry: StackEntry = { kind, parent, key, path, line: tree.line, values: {}, lines: new Map() };
  const types = stackFields(kind, reading.fields);
  const below = kind.type === 'application' ? SECTIONS.filter(({ isChild }) => isChild) : [];
  for (const [name, content] of mapOf(reading, tree, path)) {
    if (below.some(({ section }) => section === name)) continue;
    const type = types.get(name);
    if (type) entry.values[name] = readValue(reading, content, type, name, entry);
    else refuse(reading, content, `${path}.${name}`, `is not a field of ${kind.type.replaceAll('_', ' ')} in a file`);
  }
  return entry;
}

function readValue(reading: Reading, tree: Tree, type: GraphQLInputType, path: string, entry: StackEntry): unknown {
  entry.lines.set(path, tree.line);
  if (tree.is === 'scalar' && tree.value === null) return null;
  const bare = getNullableType(type);
  const full = `${entry.path}.${path}`;
  if (isListType(bare)) {
    if (tree.is !== 'list') return refuse(reading, tree, full, 'must be a list');
    return tree.items.map((item, index) =>
      readValue(reading, item, bare.ofType as GraphQLInputType, `${path}.${index}`, entry),
    );
  }
  if (isInputObjectType(bare)) return readObject(reading, tree, bare, path, entry);
  if (tree.is !== 'scalar') return refuse(reading, tree, full, 'must be a single value');
  const isPlain = isScalarType(bare) && ['Int', 'Float', 'Boolean', 'ByteCount'].includes(bare.name);
  // 16 is a version, and 1.10 is not 1.1.
  return isPlain || typeof tree.value === 'string' ? tree.value : tree.source;
}

function readObject(
  reading: Reading,
  tree: Tree,
  type: GraphQLInputObjectType,
  path: string,
  entry: StackEntry,
): unknown {
  if (tree.is !== 'map') return refuse(reading, tree, `${entry.path}.${path}`, 'must be a mapping');
  const values: Record<string, unknown> = {};
  for (const [name, content] of tree.entries) {
    const field = Object.hasOwn(type.getFields(), name) ? type.getFields()[name] : undefined;
    if (field) values[name] = readValue(reading, content, field.type, `${path}.${name}`, entry);
    else refuse(reading, content, `${entry.path}.${path}.${name}`, 'is not a field here');
  }
  return values;
}

function readVariable(
  reading: Reading,
  kind: StackKind,
  key: string,
  tree: Tree,
  parent: string,
  path: string,
): StackEntry[] {
  const entry: StackEntry = { kind, parent, key, path, line: tree.line, values: {}, lines: new Map() };
  if (tree.is === 'scalar') return withValue(reading, entry, tree);
  const given = mapOf(reading, tree, path);
  for (const [name, content] of given)
    if (!['value', 'available_at', 'secret'].includes(name))
      refuse(reading, content, `${path}.${name}`, 'is not one of value, available_at, secret');
  const [value, secret, at] = ['value', 'secret', 'available_at'].map((name) => given.get(name));
  if (secret && !(secret.is === 'scalar' && secret.value === true))
    refuse(reading, secret, `${path}.secret`, 'can only be true');
  if (secret && (value || at))
    refuse(reading, tree, path, 'has `secret: true`, so it is set elsewhere and has nothing else');
  if (secret) return [{ ...entry, isSecret: true }];
  if (at) entry.values.available_at = at.is === 'scalar' ? at.source : refuse(reading, at, path, 'must be a word');
  if (value) return withValue(reading, entry, value);
  refuse(reading, tree, path, 'needs a `value`, or `secret: true`');
  return [];
}

function withValue(reading: Reading, entry: StackEntry, tree: Tree): StackEntry[] {
  entry.lines.set('value', tree.line);
  if (tree.is !== 'scalar') refuse(reading, tree, entry.path, 'must be a text');
  else if (tree.value === null) refuse(reading, tree, entry.path, "needs a value; '' is an empty one");
  else entry.values.value = typeof tree.value === 'string' ? tree.value : tree.source;
  return [entry];
}

/** References to databases are attachments, which keep the variables as they are when a password is rotated. */
function withAttachments(reading: Reading, entries: readonly StackEntry[]): StackEntry[] {
  const attached = new Map<string, StackEntry>();
  const plain: StackEntry[] = [];
  for (const entry of entries) {
    const { value } = entry.values;
    if (typeof value !== 'string' || !value.includes('${')) plain.push(entry);
    else if (REFERENCE.test(value)) attach(reading, attached, entry, REFERENCE.exec(value) as RegExpExecArray);
    else if (/\$\{/.test(value.replaceAll('$${', '')))
      refuse(
        reading,
        entry,
        entry.path,
        'has a reference that is not `${database.<name>.<part>}` alone; `$${` is `${`',
      );
    else plain.push({ ...entry, values: { ...entry.values, value: value.replaceAll('$${', '${') } });
  }
  return [...attached.values(), ...plain];
}

function attach(
  reading: Reading,
  attached: Map<string, StackEntry>,
  entry: StackEntry,
  [, database, part]: RegExpExecArray,
): void {
  const suffix = `_${(part as string).toUpperCase()}`;
  const prefix = entry.key.endsWith(suffix) ? entry.key.slice(0, -suffix.length) : '';
  if (!(ATTACHMENT_PARTS as readonly string[]).includes(part as string))
    return void refuse(reading, entry, entry.path, `refers to none of ${ATTACHMENT_PARTS.join(', ')}`);
  if (!prefix || entry.values.available_at !== undefined) {
    const detail = `refers to a database, so its name ends with ${suffix} and it is available at any time`;
    return void refuse(reading, entry, entry.path, detail);
  }
  const known = attached.get(prefix);
  if (known && known.values.database !== database)
    return void refuse(reading, entry, entry.path, `refers to another database than the other variables ${prefix}_…`);
  const kind = stackKind('database_attachment');
  attached.set(prefix, known ?? { ...entry, kind, key: prefix, values: { database }, lines: new Map() });
}

function refuse(reading: Reading, { line }: { line: number }, path: string, detail: string): null {
  reading.mistakes.push(mistake(line, detail, path));
  return null;
}

const MISTAKES_MAX = 50;

/** Those of the file itself come again with each environment. */
function uniqueMistakes(mistakes: readonly FieldError[]): FieldError[] {
  return [...new Map(mistakes.map((one) => [`${one.field} ${one.detail}`, one])).values()].slice(0, MISTAKES_MAX);
}
