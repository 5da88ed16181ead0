// Runs queries that select only the schema. The schema is constant, so each type or field is evaluated once per
// document: the query of the common tools takes 10 to 20 ms, and 40 to 60 with the executor of graphql-js, which
// resolves each field of each row anew. The fields of a selection, and their results, are left to graphql-js.
import {
  getArgumentValues,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isLeafType,
  isListType,
  Kind,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
} from 'graphql';
import { collectFields, collectSubfields } from 'graphql/execution/collectFields';

type Fields = ReadonlyMap<string, readonly FieldNode[]>;
type Answer = Record<string, unknown>;

interface Query {
  schema: GraphQLSchema;
  fragments: Record<string, FragmentDefinitionNode>;
  variables: Record<string, unknown>;
}

interface Step {
  name: string;
  read(source: unknown): unknown;
}

/**
 * The result of a valid operation; null where it selects more than the schema, or where its variables are invalid:
 * graphql-js runs those.
 */
export function querySchema(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | undefined,
  given: Record<string, unknown> = {},
): ExecutionResult | null {
  const root = schema.getQueryType();
  const operation = getOperationAST(document, operationName);
  if (!root || operation?.operation !== 'query') return null;
  const fragments: Query['fragments'] = {};
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments[node.name.value] = node;
  const definitions = operation.variableDefinitions ?? [];
  const { coerced: variables } = getVariableValues(schema, definitions, given, { maxErrors: 0 });
  if (!variables) return null;
  const fields: Fields = collectFields(schema, fragments, variables, root, operation.selectionSet);
  if (![...fields.values()].every(([node]) => definitionOf(root, node as FieldNode))) return null;
  const data = reader({ schema, fragments, variables }, root, fields)(undefined);
  return { data };
}

/** On the root only the fields of the schema, and `__typename`. */
function definitionOf(parent: GraphQLObjectType, { name }: FieldNode): GraphQLField<unknown, unknown> | undefined {
  const meta = [SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef].find((one) => one.name === name.value);
  return meta ?? (parent.name.startsWith('__') ? parent.getFields()[name.value] : undefined);
}

/** Reads the fields of one selection of any source; of the same source once. */
function reader(query: Query, parent: GraphQLObjectType, fields: Fields): (source: unknown) => Answer {
  const steps = [...fields].map(([name, nodes]) => ({ name, read: stepOf(query, parent, nodes).read }));
  // Plain objects are written as JSON twice as fast, but take `__proto__` for another thing than a name.
  const isPlain = !fields.has('__proto__');
  const known = new Map<unknown, Answer>();
  return (source) => {
    const before = known.get(source);
    if (before) return before;
    const answer: Answer = isPlain ? {} : Object.create(null);
    for (const { name, read } of steps) answer[name] = read(source);
    known.set(source, answer);
    return answer;
  };
}

function stepOf(query: Query, parent: GraphQLObjectType, nodes: readonly FieldNode[]): Pick<Step, 'read'> {
  const [node] = nodes as [FieldNode];
  const definition = definitionOf(parent, node);
  if (!definition?.resolve) throw new Error(`${parent.name}.${node.name.value} is no field of the schema`);
  const args = getArgumentValues(definition, node, query.variables);
  const info = { schema: query.schema, parentType: parent } as GraphQLResolveInfo;
  const resolve = definition.resolve;
  const complete = completion(query, definition.type, nodes);
  return { read: (source) => complete(resolve(source, args, undefined, info)) };
}

function completion(query: Query, type: GraphQLOutputType, nodes: readonly FieldNode[]): (value: unknown) => unknown {
  const inner = getNullableType(type);
  if (isListType(inner)) {
    const item = completion(query, inner.ofType as GraphQLOutputType, nodes);
    return (value) => (value == null ? null : Array.from(value as Iterable<unknown>, item));
  }
  if (isLeafType(inner)) return (value) => (value == null ? null : inner.serialize(value));
  const object = inner as GraphQLObjectType;
  const { schema, fragments, variables } = query;
  const fields: Fields = collectSubfields(schema, fragments, variables, object, nodes as FieldNode[]);
  const read = reader(query, object, fields);
  return (value) => (value == null ? null : read(value));
}
