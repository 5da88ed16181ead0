// Refuses a hostile GraphQL query before anything is validated or executed: one walk over the parsed text.
import { GraphQLError, Kind, parse, type DocumentNode, type FragmentDefinitionNode, type SelectionSetNode, type ValueNode } from 'graphql';
import { problem } from '../core/errors';
import { limits } from '../core/limits';

interface Weight {
  depth: number;
  fields: number;
  aliases: number;
  cost: number;
}

/**
 * Parses a query and weighs it; fragments count as often as they are spread.
 * @throws graphql_invalid for text that is not GraphQL, query_too_complex above a limit of core/limits.ts
 */
export function parseLimited(query: string): DocumentNode {
  const document = parseText(query);
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const node of document.definitions) if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node);
  const weigh = scale(fragments);
  for (const node of document.definitions) {
    if (node.kind !== Kind.OPERATION_DEFINITION) continue;
    requireWithin('root fields', node.selectionSet.selections.length, limits.graphqlRootFieldsMax);
    check(weigh(node.selectionSet));
  }
  return document;
}

function parseText(query: string): DocumentNode {
  try {
    return parse(query, { maxTokens: limits.graphqlTokensMax });
  } catch (error) {
    const message = error instanceof GraphQLError ? error.message : 'The query can not be read.';
    throw problem(message.includes('token') && message.includes('limit') ? 'query_too_complex' : 'graphql_invalid', message);
  }
}

function check(weight: Weight): void {
  requireWithin('levels', weight.depth, limits.graphqlDepthMax);
  requireWithin('fields', weight.fields, limits.graphqlFieldsMax);
  requireWithin('aliases', weight.aliases, limits.graphqlAliasesMax);
  requireWithin('points of cost', weight.cost, limits.graphqlCostMax);
}

function requireWithin(what: string, value: number, limit: number): void {
  if (value > limit) throw problem('query_too_complex', `The query has ${value} ${what}, at most ${limit} are allowed.`, { limit });
}

type Weigh = (set: SelectionSetNode) => Weight;

// A fragment's weight is computed once: a query of fragments that spread each other can't make this walk long.
function scale(fragments: Map<string, FragmentDefinitionNode>): Weigh {
  const known = new Map<string, Weight>();
  const open = new Set<string>();
  const spread = (name: string): Weight => {
    const fragment = fragments.get(name);
    if (!fragment) return NOTHING;
    if (open.has(name)) throw problem('graphql_invalid', `The fragment ${name} spreads itself.`);
    let weight = known.get(name);
    if (!weight) {
      open.add(name);
      known.set(name, (weight = weigh(fragment.selectionSet)));
      open.delete(name);
    }
    return weight;
  };
  const weigh: Weigh = (set) => set.selections.reduce((sum, node) => {
    if (node.kind === Kind.FRAGMENT_SPREAD) return add(sum, spread(node.name.value));
    if (node.kind === Kind.INLINE_FRAGMENT) return add(sum, weigh(node.selectionSet));
    const inner = node.selectionSet ? weigh(node.selectionSet) : NOTHING;
    const rows = node.selectionSet ? pageOf(node.arguments?.find((argument) => argument.name.value === 'limit')?.value) : 1;
    return add(sum, { depth: inner.depth + 1, fields: inner.fields + 1, aliases: inner.aliases + (node.alias ? 1 : 0), cost: 1 + rows * inner.cost });
  }, NOTHING);
  return weigh;
}

const NOTHING: Weight = { depth: 0, fields: 0, aliases: 0, cost: 0 };

function add(a: Weight, b: Weight): Weight {
  return { depth: Math.max(a.depth, b.depth), fields: a.fields + b.fields, aliases: a.aliases + b.aliases, cost: a.cost + b.cost };
}

// A page counts its rows; a limit in a variable counts as the largest page.
function pageOf(value: ValueNode | undefined): number {
  if (!value) return 1;
  if (value.kind !== Kind.INT) return limits.pageSizeMax;
  return Math.min(Math.max(Number(value.value), 1), limits.pageSizeMax);
}
