// The SDL of schema/ as it is served. What lists, operations below a project and folders have in common is said by
// @list, @inProject and the name of the folder there, and written out here, once at the start.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Kind, parse, print } from 'graphql';
import type {
  ConstDirectiveNode,
  DefinitionNode,
  DocumentNode,
  FieldDefinitionNode,
  InputValueDefinitionNode,
  ObjectTypeDefinitionNode,
  TypeNode,
} from 'graphql';
import { registeredFiles } from '../core/folder_registry';
import { groups } from '../core/groups';

/** Directives of the sources alone, and their arguments. */
const WRITTEN_OUT: Record<string, readonly string[]> = {
  list: ['of', 'page', 'maxPage', 'sorts', 'defaultSort'],
  inProject: [],
};
/** Values of the arguments of a directive, each as it is written. */
type Values = Record<string, string | undefined>;

/**
 * Reads the SDL below a folder, one document a file.
 * @param folder absolute path of schema/
 * @throws Error that names the field whose directives contradict others
 */
export function readSdl(folder: string): DocumentNode[] {
  const sources = registeredFiles(folder, /\.graphql$/).map((file) => ({
    group: groupOf(path.basename(path.dirname(file))),
    definitions: parse(readFileSync(file, 'utf8'), { noLocation: true }).definitions,
  }));
  const pages = pagesOf(sources.flatMap(({ definitions }) => definitions));
  return sources.map(({ group, definitions }) => ({
    kind: Kind.DOCUMENT,
    definitions: definitions.flatMap((definition) => writeOut(definition, group, pages)),
  }));
}

/** The operations in schema/object_storage are of the group "Object storage". */
function groupOf(folder: string): string {
  const group = groups.find(({ name }) => name.toLowerCase().replaceAll(' ', '_') === folder);
  return JSON.stringify(group?.name ?? folder);
}

function writeOut(definition: DefinitionNode, group: string, pages: Map<string, string>): DefinitionNode[] {
  if (definition.kind === Kind.DIRECTIVE_DEFINITION && definition.name.value in WRITTEN_OUT) return [];
  if (definition.kind === Kind.OBJECT_TYPE_DEFINITION) return [definition, ...pageType(definition.name.value, pages)];
  if (definition.kind !== Kind.OBJECT_TYPE_EXTENSION) return [definition];
  const fields = definition.fields?.map((field) => writeOutField(field, definition.name.value, group));
  return [{ ...definition, fields }];
}

function writeOutField(field: FieldDefinitionNode, root: string, group: string): FieldDefinitionNode {
  const list = valuesOf(field, 'list');
  const own = field.arguments ?? [];
  // Filters are optional; what comes before them says of what the list is.
  const isFilter = ({ name, type }: InputValueDefinitionNode): boolean =>
    list !== undefined && type.kind !== Kind.NON_NULL_TYPE && name.value !== 'project_id';
  const args = [
    ...(valuesOf(field, 'inProject') ? [projectArgument(root)] : []),
    ...own.filter((one) => !isFilter(one)).map(print),
    ...(list ? pageArguments(list) : []),
    ...own.filter(isFilter).map(print),
  ];
  const item = list && itemOf(field.type);
  const type = item ? `${item}List!` : print(field.type);
  const directives = (field.directives ?? []).flatMap((one) => writeOutDirective(one, field, root, group));
  const head = `${field.name.value}${args.length > 0 ? `(${args.join(' ')})` : ''}`;
  return { ...parseField(`${head}: ${type} ${directives.join(' ')}`), description: field.description };
}

function parseField(text: string): FieldDefinitionNode {
  const [definition] = parse(`type Root { ${text} }`, { noLocation: true }).definitions;
  return (definition as ObjectTypeDefinitionNode).fields?.[0] as FieldDefinitionNode;
}

function projectArgument(root: string): string {
  return `${root === 'Query' ? '"Id of the project. Defaults to the selected project." ' : ''}project_id: ID`;
}

function pageArguments({ page = '20', maxPage = '100', sorts, defaultSort }: Values): string[] {
  const limit = `limit: Int = ${page} @spec(page: ${page}, maxPage: ${maxPage})`;
  const fallback = defaultSort ? `, default: ${defaultSort}` : '';
  return [limit, 'cursor: String', ...(sorts ? [`sort: String @spec(sorts: ${sorts}${fallback})`] : [])];
}

function writeOutDirective(one: ConstDirectiveNode, field: FieldDefinitionNode, root: string, group: string): string[] {
  if (one.name.value in WRITTEN_OUT) return [];
  if (one.name.value !== 'rest') return [print(one)];
  const { method, path: route, status, also, extension, summary, ...others } = argumentsOf(one);
  // In the order in which they are shown.
  const values = { method, path: route, id: undefined, status, also, group, extension, summary, ...others };
  const bindings = [values, ...(valuesOf(field, 'inProject') ? [inPathOfProject(field.name.value, values, root)] : [])];
  return bindings.map((binding) => `@rest(${written(binding)})`);
}

function written(values: Values): string {
  return Object.entries(values)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]))
    .join(' ');
}

/** The same operation below the path of a project. */
function inPathOfProject(name: string, values: Values, root: string): Values {
  const { path: route = '', summary = '' } = values;
  const inPath = summary.replace(
    /(in|of) the current project"$/,
    `${root === 'Query' ? 'of' : 'in'} the project in the path"`,
  );
  if (inPath === summary) fail(name, 'the summary of an operation @inProject ends in "the current project"');
  const id = JSON.stringify(name.replace(/^[a-z]+/, '$&Project'));
  return { ...values, path: route.replace('/v2', '/v2/projects/{id:project_id}'), id, summary: inPath };
}

/** Types of which there are lists, each with the plural that a page is described by. */
function pagesOf(definitions: DefinitionNode[]): Map<string, string> {
  const pages = new Map<string, string>();
  const roots = definitions.flatMap((one) => (one.kind === Kind.OBJECT_TYPE_EXTENSION ? (one.fields ?? []) : []));
  for (const field of roots) {
    const list = valuesOf(field, 'list');
    const item = list && itemOf(field.type);
    if (!item) continue;
    const plural = list.of ? (JSON.parse(list.of) as string) : fail(field.name.value, '@list needs `of`');
    if ((pages.get(item) ?? plural) !== plural)
      fail(field.name.value, `another list has "${pages.get(item)}" in pages of ${item}`);
    pages.set(item, plural);
  }
  return pages;
}

function pageType(item: string, pages: Map<string, string>): readonly DefinitionNode[] {
  const plural = pages.get(item);
  if (plural === undefined) return [];
  const text = `"A page of ${plural}."
    type ${item}List {
      data: [${item}!]!
      "Cursor of the next page, or \`null\` on the last page."
      next_cursor: String
    }`;
  return parse(text, { noLocation: true }).definitions;
}

/** Volume of `[Volume!]!`, undefined if the type is no list. */
function itemOf(type: TypeNode): string | undefined {
  return /^\[(\w+)!\]!$/.exec(print(type))?.[1];
}

function valuesOf(field: FieldDefinitionNode, name: string): Values | undefined {
  const found = field.directives?.find((one) => one.name.value === name);
  const values = found && argumentsOf(found);
  const unknown = Object.keys(values ?? {}).find((one) => !WRITTEN_OUT[name]?.includes(one));
  return unknown ? fail(field.name.value, `@${name} has no argument "${unknown}"`) : values;
}

function argumentsOf(directive: ConstDirectiveNode): Values {
  return Object.fromEntries((directive.arguments ?? []).map(({ name, value }) => [name.value, print(value)]));
}

function fail(field: string, message: string): never {
  throw new Error(`schema: ${field}: ${message}`);
}
