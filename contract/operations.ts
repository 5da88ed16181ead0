// The operation table, read from the SDL: every root field with its rules, every @rest binding of it.
// Both faces work from it, so REST and GraphQL can't differ.
import {
  isInputObjectType,
  isListType,
  getNullableType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputObjectType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { isExtensionGroup, isGroup } from '../core/groups';
import { directiveOf, directivesOf } from './directives';
import { readDestroyingInputs, type DestroyingInput } from './destroying';
import { readRunningInputs, type InputPath } from './running_inputs';
import { unguardedSecret } from './secret_answers';
import { budgetOf, defaultScope, isScopeRule, type ScopeRule } from '../core/accounts/scopes';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Where what an operation destroyed is brought back. */
export type Reversal = 'bin' | 'activity';

/** One root field of the core schema: what both faces check before its resolver runs. */
export interface RootField {
  name: string;
  kind: 'query' | 'mutation';
  scope: ScopeRule;
  /** Scopes that a key needs beside it. */
  alsoScopes: readonly ScopeRule[];
  budget: 'read' | 'write' | 'deploy';
  /** Acts on no project. */
  global: boolean;
  /** Rules beyond scope and membership. */
  access: { role: string | null; personalKey: boolean; unrestricted: boolean };
  /** Dashboard function; `signedOut` ones work before login. */
  session: false | 'signedIn' | 'signedOut';
  /** Has no REST operation but the rules of one: keys may call it, over GraphQL. */
  graphqlOnly: boolean;
  /** Argument that names the project (`project_id`, or `id` of a project), null where the header alone selects. */
  projectArgument: string | null;
  /** Activity entry of a success, `volume.created`; mutations only. */
  action: string | null;
  /** The one input-object argument, which travels as the flat JSON body. */
  body: { argument: string; type: GraphQLInputObjectType; required: boolean } | null;
  /** Inputs of the body that become a command or code, and need the scope `deploy` too. */
  runs: InputPath[];
  /** Removes or overwrites what cannot be made again, or ends access. */
  destroys: boolean;
  /** How what it destroyed is brought back; null where that is not possible, or nothing is destroyed. */
  reversibleBy: Reversal | null;
  /** Inputs of the body with which it does. */
  destroyingInputs: DestroyingInput[];
  /** Answers with a {data, next_cursor} envelope. */
  list: boolean;
  /** Can be followed as a stream of events. */
  live: boolean;
  errors: string[];
  definition: GraphQLField<unknown, unknown>;
  operations: Operation[];
}

/** One REST binding of a root field. */
export interface Operation {
  id: string;
  field: RootField;
  /** Name of the root field in the facade schema (one per binding). */
  key: string;
  method: Method;
  /** Public path with plain parameter names: /v2/volumes/{id}. */
  path: string;
  params: { name: string; argument: string }[];
  /** Arguments that travel in the query string. */
  query: GraphQLArgument[];
  status: number;
  statuses: number[];
  group: string;
  /** Beyond the specification: by its group, or by its own mark. */
  extension: boolean;
  summary: string;
}

export interface OperationTable {
  fields: Map<string, RootField>;
  operations: Operation[];
}

/**
 * Reads the table from the schema.
 * @throws Error with one clear line on an unbound argument, two operations at one path, a duplicate operation id,
 * an unknown scope or group, a mutation without @audit, a field with neither @rest nor @graphqlOnly nor @session.
 */
export function readOperations(schema: GraphQLSchema): OperationTable {
  const fields = new Map<string, RootField>();
  for (const type of [schema.getQueryType(), schema.getMutationType()]) {
    for (const definition of Object.values(type?.getFields() ?? {})) {
      fields.set(definition.name, readField(schema, type as GraphQLObjectType, definition));
    }
  }
  const operations = [...fields.values()].flatMap((field) => field.operations);
  requireUnique(operations);
  return { fields, operations };
}

/** Whether If-Match holds for a field: for changes of what is there, on both faces. */
export function takesIfMatch({ operations }: Pick<RootField, 'operations'>): boolean {
  return operations.some(({ method }) => method !== 'GET' && method !== 'POST');
}

interface RestArguments {
  method: Method;
  path: string;
  id?: string;
  status: number;
  also: number[];
  group: string;
  extension: boolean;
  summary: string;
}

function readField(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  definition: GraphQLField<unknown, unknown>,
): RootField {
  const one = (name: string): Record<string, unknown> | undefined => directiveOf(schema, definition, name);
  const kind = type === schema.getQueryType() ? 'query' : 'mutation';
  const bindings = directivesOf(schema, definition, 'rest') as unknown as RestArguments[];
  const scope = (one('scope')?.needs ?? defaultScope(kind)) as string;
  if (!isScopeRule(scope)) fail(definition.name, `unknown scope "${scope}"`);
  const session = one('session');
  const body = definition.args.find((argument) => isInputObjectType(getNullableType(argument.type)));
  const field: RootField = {
    name: definition.name,
    kind,
    scope: scope as ScopeRule,
    alsoScopes: readAlsoScopes(definition.name, one('scope')?.also),
    budget: budgetOf(kind, scope as ScopeRule),
    global: Boolean(one('global')),
    access: { role: null, personalKey: false, unrestricted: false, ...one('access') },
    session: session ? (session.signedOut ? 'signedOut' : 'signedIn') : false,
    graphqlOnly: Boolean(one('graphqlOnly')),
    projectArgument: projectArgument(definition, bindings),
    action: (one('audit')?.action as string) ?? null,
    body: body ? bodyOf(body) : null,
    runs: body ? readRunningInputs(schema, getNullableType(body.type) as GraphQLInputObjectType) : [],
    destroys: Boolean(one('destroys')) || bindings.some(({ method }) => method === 'DELETE'),
    reversibleBy: (one('reversible')?.by as Reversal | undefined) ?? null,
    destroyingInputs: body && changesWhatIsThere(definition) ? destroyingInputsOf(schema, body) : [],
    list: isEnvelope(definition),
    live: Boolean(one('live')),
    errors: (one('errors')?.codes as string[]) ?? [],
    definition,
    operations: [],
  };
  field.operations = bindings.map((binding, index) => readOperation(field, binding, index));
  checkField(field);
  const secret = unguardedSecret(schema, field);
  if (secret) fail(field.name, `answers the secret ${secret}, so it needs @scope(also: ["env:read"])`);
  return field;
}

/** An operation that makes something has no id. */
function changesWhatIsThere({ args }: GraphQLField<unknown, unknown>): boolean {
  return args.some(({ name }) => name === 'id');
}

function destroyingInputsOf(schema: GraphQLSchema, { type }: GraphQLArgument): DestroyingInput[] {
  return readDestroyingInputs(schema, getNullableType(type) as GraphQLInputObjectType);
}

function readAlsoScopes(name: string, scopes: unknown): ScopeRule[] {
  const found = (scopes ?? []) as string[];
  for (const scope of found) if (!isScopeRule(scope)) fail(name, `unknown scope "${scope}"`);
  return found as ScopeRule[];
}

function bodyOf(argument: GraphQLArgument): RootField['body'] {
  const type = getNullableType(argument.type) as GraphQLInputObjectType;
  return { argument: argument.name, type, required: type !== argument.type };
}

function projectArgument(definition: GraphQLField<unknown, unknown>, bindings: RestArguments[]): string | null {
  if (definition.args.some((argument) => argument.name === 'project_id')) return 'project_id';
  const named = bindings.map((binding) => /^\/v2\/projects\/\{(?:\w+:)?(\w+)\}/.exec(binding.path)).find(Boolean);
  return named?.[1] ?? null;
}

function isEnvelope(definition: GraphQLField<unknown, unknown>): boolean {
  const type = getNullableType(definition.type);
  if (!isObjectType(type)) return false;
  const { data, next_cursor } = type.getFields();
  return Boolean(data && next_cursor && isListType(getNullableType(data.type)));
}

function readOperation(field: RootField, binding: RestArguments, index: number): Operation {
  if (!isGroup(binding.group)) fail(field.name, `unknown group "${binding.group}"`);
  const params: Operation['params'] = [];
  const path = binding.path.replace(/\{(\w+)(?::(\w+))?\}/g, (_, name: string, argument: string | undefined) => {
    params.push({ name, argument: argument ?? name });
    return `{${name}}`;
  });
  const known = new Set(field.definition.args.map((argument) => argument.name));
  for (const { argument } of params)
    if (!known.has(argument)) fail(field.name, `path ${path} names no argument "${argument}"`);
  const bound = new Set([...params.map((param) => param.argument), field.body?.argument, 'project_id']);
  const query = field.definition.args.filter((argument) => !bound.has(argument.name));
  if (binding.method !== 'GET' && query.length)
    fail(field.name, `argument "${query[0]?.name}" of ${binding.method} is neither in the path nor in the body`);
  if (binding.method === 'GET' && field.body) fail(field.name, 'a GET has no body');
  return {
    id: binding.id ?? (index === 0 ? field.name : fail(field.name, 'a further @rest needs an id')),
    field,
    key: index === 0 ? field.name : `${field.name}__${index + 1}`,
    method: binding.method,
    path,
    params,
    query,
    status: binding.status,
    statuses: [binding.status, ...binding.also],
    group: binding.group,
    extension: isExtensionGroup(binding.group) || binding.extension,
    summary: binding.summary,
  };
}

function checkField(field: RootField): void {
  if (!field.operations.length && !field.graphqlOnly && !field.session)
    fail(field.name, 'needs @rest, @graphqlOnly or @session');
  if (field.session && field.operations.length) fail(field.name, 'a dashboard function has no REST operation');
  if (field.graphqlOnly && field.operations.length) fail(field.name, 'a GraphQL-only field has no REST operation');
  if (field.kind === 'mutation' && !field.action) fail(field.name, 'a mutation needs @audit(action:)');
  if (!field.definition.description) fail(field.name, 'needs a description');
  const verbs = field.operations.map((operation) => operation.method === 'GET');
  if (verbs.some((get) => get !== (field.kind === 'query'))) fail(field.name, 'queries are GET, mutations are not');
}

function requireUnique(operations: Operation[]): void {
  const ids = new Set<string>();
  const routes = new Set<string>();
  for (const { id, method, path, field } of operations) {
    const route = `${method} ${path.replace(/\{\w+\}/g, '{}')}`;
    if (ids.has(id)) fail(field.name, `operation id "${id}" is taken`);
    if (routes.has(route)) fail(field.name, `another operation is at ${route}`);
    ids.add(id);
    routes.add(route);
  }
}

function fail(field: string, message: string): never {
  throw new Error(`schema: ${field}: ${message}`);
}
