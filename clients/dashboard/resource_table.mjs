// What the generic pages know of the API, made of the SDL by the build: operations, types, and which page has which
// operation. A page is a path of REST that is read by GET, or an item of a list whose items have no GET of their own.
import { Kind, parse } from 'graphql';
import { describeTypes, directivesOf, textOf, typeOf, valueOf } from './resource_types.mjs';

/** Scopes whose reads are closed to viewers, as by contract/guard.ts. */
const CLOSED_SCOPES = ['deploy', 'env:read', 'env:write'];

/**
 * @param sdl with the directives of the API
 * @returns {{ operations: object, pages: object, types: object, inputs: object, enums: object }}
 */
export function resourceTable(sdl) {
  const definitions = parse(sdl).definitions;
  const operations = {};
  for (const definition of definitions) {
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION || !/^(Query|Mutation)$/.test(definition.name.value)) continue;
    for (const field of definition.fields ?? []) {
      const operation = operationOf(field, definition.name.value === 'Mutation');
      if (operation) operations[field.name.value] = operation;
    }
  }
  const described = describeTypes(definitions, operations);
  for (const operation of Object.values(operations)) completeAnswer(operation, described.types);
  return { operations, pages: pagesOf(operations, described.types), ...described };
}

function operationOf(field, isMutation) {
  const directives = directivesOf(field);
  const bindings = directives.rest ?? [];
  if (!bindings.length) return null;
  const [{ path, method = 'GET', group, summary }] = bindings;
  const args = (field.arguments ?? []).map(valueOf);
  const scopes = [
    directives.scope?.[0].needs ?? (isMutation ? 'write' : 'read'),
    ...(directives.scope?.[0].also ?? []),
  ];
  const parts = path.split('/').slice(2);
  const isOfProject = parts[0] === 'projects' && parts.length > 1;
  return {
    name: field.name.value,
    ids: bindings.map(({ id }) => id ?? field.name.value),
    isMutation,
    method,
    group,
    summary,
    description: textOf(field),
    rest: path.replace(/\{(?:\w+:)?(\w+)\}/g, '{$1}'),
    // The project stands in the address of its pages already. Entries of its activity and bin are named without it.
    path: placeOf(parts, isOfProject)
      .map((part) => part.replace(/^\{(?:\w+:)?/, '{'))
      .join('/'),
    args,
    body: args.find(({ kind }) => kind === 'input')?.name,
    answer: typeOf(field.type).type,
    project: projectOf(directives, args, isOfProject),
    role: roleOf(directives, isMutation, scopes),
    isGlobal: Boolean(directives.global),
    isLive: Boolean(directives.live),
    destroys: Boolean(directives.destroys) || method === 'DELETE',
    reversibleBy: directives.reversible?.[0].by ?? null,
  };
}

function placeOf(parts, isOfProject) {
  if (isOfProject) return ['project', ...parts.slice(2)];
  return ['activity', 'bin', 'stack'].includes(parts[0]) ? ['project', ...parts] : parts;
}

/** The argument that names the project; null where an id of a resource says it, or no project is meant. */
function projectOf(directives, args, isOfProject) {
  if (isOfProject) return args[0].name;
  if (directives.global) return null;
  return args.some(({ name }) => name === 'project_id') ? 'project_id' : null;
}

function roleOf(directives, isMutation, scopes) {
  const { role } = directives.access?.[0] ?? {};
  if (role) return role;
  return isMutation || scopes.some((scope) => CLOSED_SCOPES.includes(scope)) ? 'developer' : 'viewer';
}

/** A list answers pages of rows: its type is that of the rows. */
function completeAnswer(operation, types) {
  const rows = types[operation.answer]?.find(({ name }) => name === 'data');
  operation.isList = Boolean(rows && types[operation.answer].some(({ name }) => name === 'next_cursor'));
  operation.list = operation.isList ? operation.answer : undefined;
  if (operation.isList) operation.answer = rows.type;
  operation.hasSecret = Boolean(types[operation.answer]?.some(({ secret }) => secret));
}

/** `volumes/{id}` and `volumes/{volume_id}` are one place. */
const keyOf = (path) => path.replace(/\{\w+\}/g, '{}');
const parentOf = (key) => key.slice(0, Math.max(0, key.lastIndexOf('/')));

function pagesOf(operations, types) {
  const pages = {};
  const all = Object.values(operations);
  for (const { name, path, isMutation, isList, isGlobal, group, answer } of all) {
    if (isMutation) continue;
    const scope = isGlobal || path === 'projects' ? 'account' : 'project';
    pages[keyOf(path)] = { path, group, scope, read: name, isList, type: answer, operations: [], pages: [] };
  }
  for (const { path, isMutation } of all) if (isMutation) addFound(pages, operations, types, path);
  for (const { name, path, isMutation, method } of all) {
    if (!isMutation) continue;
    const key = keyOf(path);
    ancestor(pages, key).operations.push(name);
    // What is set by its name is new where the list does not have the name yet.
    if (method === 'PUT' && pages[key]?.finds) pages[parentOf(key)].operations.push(name);
  }
  for (const key of Object.keys(pages)) {
    const above = parentOf(key) && ancestor(pages, parentOf(key));
    if (above) above.pages.push(key);
  }
  return pages;
}

/** An item that is written but has no GET: its page finds it in the list above. */
function addFound(pages, operations, types, path) {
  const parts = path.split('/');
  const last = parts.findLastIndex((part) => part.startsWith('{'));
  const own = parts.slice(0, last + 1).join('/');
  const key = keyOf(own);
  const above = pages[parentOf(key)];
  if (last < 0 || pages[key] || !above?.isList) return;
  const argument = parts[last].slice(1, -1);
  const names = types[above.type].map(({ name }) => name);
  const finds = names.find((name) => name === 'id') ?? names.find((name) => argument.endsWith(name));
  pages[key] = { ...above, path: own, isList: false, finds, operations: [], pages: [] };
}

function ancestor(pages, key) {
  for (let place = key; place; place = parentOf(place)) if (pages[place]) return pages[place];
  return undefined;
}
