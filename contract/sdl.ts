// The SDL of schema/ as it is served. What lists, operations below a project and folders have in common is said by
// @list, @inProject and the name of the folder there, and written out here, once at the start.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Kind, parse, parseType, print } from 'graphql';
import type {
  ConstArgumentNode,
  ConstDirectiveNode,
  DefinitionNode,
  DocumentNode,
  FieldDefinitionNode,
  InputValueDefinitionNode,
  ObjectTypeDefinitionNode,
  TypeNode,
} from 'graphql';
import { layerFiles } from '../core/layer_files';
import { groups } from '../core/groups';

/** Directives of the sources alone, and their arguments. */
const WRITTEN_OUT: Record<string, readonly string[]> = {
  list: ['of', 'page', 'maxPage', 'sorts', 'defaultSort'],
  inProject: [],
};
/** Arguments of @rest, in the order in which they are shown. */
const REST = ['method', 'path', 'id', 'status', 'also', 'group', 'extension', 'summary'];

/** Values of the arguments of a directive, each as it is written. */
type Values = Record<string, string | undefined>;

/**
 * Reads the SDL below a folder, one document a file.
 * @param folder absolute path of schema/
 * @throws Error that names the field whose directives contradict others
 */
export function readSdl(folder: string): DocumentNode[] {
  const sources = layerFiles(folder, /\.graphql$/).map((file) => ({
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
  return group?.name ?? folder;
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
  const inProject = valuesOf(field, 'inProject');
  const own = (field.directives ?? []).filter((one) => !(one.name.value in WRITTEN_OUT));
  const directives = own.flatMap((one) => {
    if (one.name.value !== 'rest') return [one];
    const binding = textOf(one, 'group') === undefined ? withTexts(one, { group }) : one;
    return inProject ? [binding, inPathOfProject(field.name.value, binding, root)] : [binding];
  });
  const given = inProject ? [...parseArguments(projectArgument(root)), ...(field.arguments ?? [])] : field.arguments;
  return list ? asPage({ ...field, directives, arguments: given }, list) : { ...field, directives, arguments: given };
}

/** Filters are optional; what comes before them says of what the list is. */
function asPage(field: FieldDefinitionNode, list: Values): FieldDefinitionNode {
  const isFilter = ({ name, type }: InputValueDefinitionNode): boolean =>
    type.kind !== Kind.NON_NULL_TYPE && name.value !== 'project_id';
  const own = field.arguments ?? [];
  const item = itemOf(field.type);
  return {
    ...field,
    arguments: [
      ...own.filter((one) => !isFilter(one)),
      ...parseArguments(pageArguments(list)),
      ...own.filter(isFilter),
    ],
    type: item ? parseType(`${item}List!`) : field.type,
  };
}

function projectArgument(root: string): string {
  return `${root === 'Query' ? '"Id of the project. Defaults to the selected project." ' : ''}project_id: ID`;
}

function pageArguments({ page = '20', maxPage = '100', sorts, defaultSort }: Values): string {
  const fallback = defaultSort ? `, default: ${defaultSort}` : '';
  const sort = sorts ? `sort: String @spec(sorts: ${sorts}${fallback})` : '';
  return `limit: Int = ${page} @spec(page: ${page}, maxPage: ${maxPage}) cursor: String ${sort}`;
}

function parseArguments(text: string): readonly InputValueDefinitionNode[] {
  const [definition] = parse(`type Root { field(${text}): ID }`, { noLocation: true }).definitions;
  return (definition as ObjectTypeDefinitionNode).fields?.[0]?.arguments ?? [];
}

/** The same operation below the path of a project. */
function inPathOfProject(name: string, binding: ConstDirectiveNode, root: string): ConstDirectiveNode {
  const ending = /(in|of) the current project$/;
  const [route = '', summary = ''] = [textOf(binding, 'path'), textOf(binding, 'summary')];
  if (!ending.test(summary)) fail(name, 'the summary of an operation @inProject ends in "the current project"');
  return withTexts(binding, {
    path: route.replace('/v2', '/v2/projects/{id:project_id}'),
    id: name.replace(/^[a-z]+/, '$&Project'),
    summary: summary.replace(ending, `${root === 'Query' ? 'of' : 'in'} the project in the path`),
  });
}

/** A @rest with these arguments, in the order in which they are shown. */
function withTexts(binding: ConstDirectiveNode, texts: Record<string, string>): ConstDirectiveNode {
  const own = (binding.arguments ?? []).filter(({ name }) => !(name.value in texts));
  const added = Object.entries(texts).map(([name, value]): ConstArgumentNode => ({
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: name },
    value: { kind: Kind.STRING, value },
  }));
  const placeOf = ({ name }: ConstArgumentNode): number => REST.indexOf(name.value);
  return { ...binding, arguments: [...own, ...added].sort((a, b) => placeOf(a) - placeOf(b)) };
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
  const list = type.kind === Kind.NON_NULL_TYPE ? type.type : type;
  const item = list.kind === Kind.LIST_TYPE && list.type.kind === Kind.NON_NULL_TYPE ? list.type.type : list;
  return list.kind === Kind.LIST_TYPE && item.kind === Kind.NAMED_TYPE ? item.name.value : undefined;
}

function textOf(directive: ConstDirectiveNode, name: string): string | undefined {
  const value = directive.arguments?.find((one) => one.name.value === name)?.value;
  return value?.kind === Kind.STRING ? value.value : undefined;
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
