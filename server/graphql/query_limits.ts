// Refuses a hostile GraphQL query before anything is validated or executed: one walk over the parsed text.
import {
  getNamedType,
  getNullableType,
  getOperationAST,
  GraphQLError,
  introspectionTypes,
  isInterfaceType,
  isListType,
  isObjectType,
  Kind,
  OperationTypeNode,
  parse,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  valueFromASTUntyped,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { requireFlat } from './query_text';

type Maybe<T> = T | undefined;
type Variables = Record<string, unknown>;

/** Of a selection with its fragments expanded. `width` is the number of fields on its first level. */
interface Weight {
  width: number;
  depth: number;
  fields: number;
  aliases: number;
  cost: number;
  /** Cost of introspection fields, which have a separate limit. */
  introspection: number;
}

/** Properties of a query beside its rows. */
export interface QueryNature {
  introspects: boolean;
  /** Selects only the schema. */
  isSchemaOnly: boolean;
  /** Selects only the schema, without variables: the response is constant. */
  isConstant: boolean;
  /** Root fields of the widest operation. */
  rootFields: number;
  /** The operation that is to run is a subscription. */
  subscribes: boolean;
  /** The operation that is to run is a mutation. */
  mutates: boolean;
}

interface AskedQuery {
  query: string;
  variables: Variables;
  operationName?: string;
  tokensMax: number;
}

export type QueryLimits = (query: AskedQuery) => QueryNature;

/**
 * Prepares the cost analysis for a schema. A list counts as many rows as its `limit`, or its default page without one.
 * Introspection may cost twice the query of the common tools, which is measured here.
 * @throws (the analysis) graphql_invalid for text that is not GraphQL, query_too_complex above a limit of
 * core/limits.ts
 */
export function queryLimits(schema: GraphQLSchema, usualIntrospection: string): QueryLimits {
  const usual = weightsOf(schema, parse(usualIntrospection), {});
  const introspectionMax = 2 * Math.max(...usual.map(({ introspection }) => introspection));
  return ({ query, variables, operationName, tokensMax }) => {
    const document = parseText(query, tokensMax);
    const weights = weightsOf(schema, document, variables);
    for (const weight of weights) requireWithinLimits(weight, introspectionMax);
    const kind = getOperationAST(document, operationName)?.operation;
    const [subscribes, mutates] = [kind === OperationTypeNode.SUBSCRIPTION, kind === OperationTypeNode.MUTATION];
    return { ...natureOf(weights, variables), subscribes, mutates };
  };
}

function natureOf(weights: Weight[], variables: Variables): Omit<QueryNature, 'subscribes' | 'mutates'> {
  const introspects = weights.some(({ introspection }) => introspection > 0);
  const isSchemaOnly = introspects && weights.every(({ cost }) => cost === 0);
  const isConstant = isSchemaOnly && Object.keys(variables).length === 0;
  return { introspects, isSchemaOnly, isConstant, rootFields: Math.max(...weights.map(({ width }) => width)) };
}

function parseText(query: string, tokensMax: number): DocumentNode {
  requireFlat(query);
  try {
    return parse(query, { maxTokens: tokensMax });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw problem('query_too_complex', 'The query is nested too deeply.');
    if (/ tokens\. Parsing aborted/.test(error.message))
      throw problem('query_too_complex', `The query has more than ${tokensMax} tokens.`, { limit: tokensMax });
    throw problem('graphql_invalid', error.message);
  }
}

function requireWithinLimits(weight: Weight, introspectionMax: number): void {
  requireWithin('root fields', weight.width, limits.graphqlRootFieldsMax);
  requireWithin('levels', weight.depth, limits.graphqlDepthMax);
  requireWithin('fields', weight.fields, limits.graphqlFieldsMax);
  requireWithin('aliases', weight.aliases, limits.graphqlAliasesMax);
  requireWithin('points of cost', weight.cost, limits.graphqlCostMax);
  requireWithin('points of introspection cost', weight.introspection, introspectionMax);
}

function requireWithin(what: string, value: number, limit: number): void {
  if (value > limit)
    throw problem(
      'query_too_complex',
      `The query has ${value > 1e9 ? 'far too many' : value} ${what}, at most ${limit} are allowed.`,
      { limit },
    );
}

/**
 * One weight for each operation and each fragment: validation compares the fields of a fragment pair by pair even where
 * no operation uses it. The first level of an unused fragment does not count as root fields.
 */
function weightsOf(schema: GraphQLSchema, document: DocumentNode, variables: Variables): Weight[] {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  const scale = openScale({ schema, fragments, variables });
  return document.definitions.flatMap((node) => {
    if (node.kind === Kind.FRAGMENT_DEFINITION) return [{ ...scale.fragment(node.name.value), width: 0 }];
    return node.kind === Kind.OPERATION_DEFINITION
      ? [scale.set(node.selectionSet, rootOf(schema, node.operation))]
      : [];
  });
}

function rootOf(schema: GraphQLSchema, operation: OperationTypeNode): GraphQLNamedType {
  const root = schema.getRootType(operation);
  if (!root) throw problem('graphql_invalid', `There is no ${operation} here.`);
  return root;
}

interface Subject {
  schema: GraphQLSchema;
  fragments: Map<string, FragmentDefinitionNode>;
  variables: Variables;
}

interface Scale {
  set(set: SelectionSetNode, parent: Maybe<GraphQLNamedType>): Weight;
  fragment(name: string): Weight;
}

// A fragment is weighed once: a query of fragments that spread each other can't make this walk long.
function openScale(subject: Subject): Scale {
  const known = new Map<string, Weight>();
  const open = new Set<string>();
  const scale: Scale = {
    set: (set, parent) =>
      set.selections.reduce((sum, node) => add(sum, weightOf(node, parent, subject, scale)), NOTHING),
    fragment(name) {
      const fragment = subject.fragments.get(name);
      if (!fragment) return NOTHING;
      if (open.has(name)) throw problem('graphql_invalid', `The fragment ${name} spreads itself.`);
      open.add(name);
      const weight =
        known.get(name) ?? scale.set(fragment.selectionSet, subject.schema.getType(fragment.typeCondition.name.value));
      open.delete(name);
      known.set(name, weight);
      return weight;
    },
  };
  return scale;
}

function weightOf(node: SelectionNode, parent: Maybe<GraphQLNamedType>, subject: Subject, scale: Scale): Weight {
  if (node.kind === Kind.FRAGMENT_SPREAD) return scale.fragment(node.name.value);
  if (node.kind === Kind.INLINE_FRAGMENT) {
    const condition = node.typeCondition;
    return scale.set(node.selectionSet, condition ? subject.schema.getType(condition.name.value) : parent);
  }
  const definition = definitionOf(parent, node.name.value);
  const inner = node.selectionSet ? scale.set(node.selectionSet, definition && getNamedType(definition.type)) : NOTHING;
  const cost = 1 + rowsOf(node, parent, definition, subject) * (inner.cost + inner.introspection);
  const ofSchema = definition === SchemaMetaFieldDef || definition === TypeMetaFieldDef || isOfIntrospection(parent);
  return {
    width: 1,
    depth: inner.depth + 1,
    fields: inner.fields + 1,
    aliases: inner.aliases + (node.alias ? 1 : 0),
    ...(ofSchema ? { cost: 0, introspection: cost } : { cost, introspection: 0 }),
  };
}

function definitionOf(parent: Maybe<GraphQLNamedType>, name: string): Maybe<GraphQLField<unknown, unknown>> {
  if (name === SchemaMetaFieldDef.name) return SchemaMetaFieldDef;
  if (name === TypeMetaFieldDef.name) return TypeMetaFieldDef;
  return isObjectType(parent) || isInterfaceType(parent) ? parent.getFields()[name] : undefined;
}

/** Rows of a list of a type's or a field's parts, about as many as they have. */
const SCHEMA_ROWS = 8;

function rowsOf(
  node: FieldNode,
  parent: Maybe<GraphQLNamedType>,
  definition: Maybe<GraphQLField<unknown, unknown>>,
  { schema, variables }: Subject,
): number {
  if (!definition) return 1;
  if (isOfIntrospection(parent) && isListType(getNullableType(definition.type)))
    return parent?.name === '__Schema' ? Object.keys(schema.getTypeMap()).length : SCHEMA_ROWS;
  const argument = definition.args.find(({ name }) => name === 'limit');
  if (!argument) return 1;
  const given = node.arguments?.find(({ name }) => name.value === 'limit')?.value;
  const value =
    (given && valueFromASTUntyped(given, variables)) ??
    (given?.kind === Kind.VARIABLE ? undefined : argument.defaultValue);
  // A value that is not a number, such as a variable that was not sent, counts as the largest page.
  return typeof value === 'number' ? Math.min(Math.max(value, 1), limits.pageSizeMax) : limits.pageSizeMax;
}

function isOfIntrospection(type: Maybe<GraphQLNamedType>): boolean {
  return introspectionTypes.some((one) => one === type);
}

const NOTHING: Weight = { width: 0, depth: 0, fields: 0, aliases: 0, cost: 0, introspection: 0 };

function add(a: Weight, b: Weight): Weight {
  return {
    width: a.width + b.width,
    depth: Math.max(a.depth, b.depth),
    fields: a.fields + b.fields,
    aliases: a.aliases + b.aliases,
    cost: a.cost + b.cost,
    introspection: a.introspection + b.introspection,
  };
}
