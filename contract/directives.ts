// Directives of the SDL. `getDirective` of @graphql-tools/utils evaluates all directives of a node at each call, and
// compares them as JSON: 0.1 s of a start.
import { getArgumentValues, type ConstDirectiveNode, type GraphQLSchema } from 'graphql';

/** What a directive may stand on: a type, field, argument or input field of a schema made from SDL. */
interface Marked {
  astNode?: { readonly directives?: readonly ConstDirectiveNode[] } | null;
  extensionASTNodes?: readonly { readonly directives?: readonly ConstDirectiveNode[] }[];
}

/** The arguments of each use of a directive on a node, with default values; empty where it has none. */
export function directivesOf(schema: GraphQLSchema, node: Marked, name: string): Record<string, unknown>[] {
  const definition = schema.getDirective(name);
  if (!definition) return [];
  return usesOf(node, name).map((use) => getArgumentValues(definition, use));
}

/** The arguments of the first use of a directive on a node; undefined where it has none. */
export function directiveOf(schema: GraphQLSchema, node: Marked, name: string): Record<string, unknown> | undefined {
  return directivesOf(schema, node, name)[0];
}

/** Whether a node has the directive. */
export function hasDirective(node: Marked, name: string): boolean {
  return usesOf(node, name).length > 0;
}

function usesOf({ astNode, extensionASTNodes = [] }: Marked, name: string): ConstDirectiveNode[] {
  return [astNode, ...extensionASTNodes].flatMap(
    (node) => node?.directives?.filter((directive) => directive.name.value === name) ?? [],
  );
}
