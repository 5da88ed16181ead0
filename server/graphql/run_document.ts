// Runs one document for a caller that is no client of /graphql, with all the checks of the operations.
import { graphql, type GraphQLSchema } from 'graphql';
import type { Context } from '../../core/context';

/** @throws what the first of its operations throws */
export async function runDocument(
  schema: GraphQLSchema,
  ctx: Context,
  document: { query: string; variables: Record<string, unknown> },
): Promise<void> {
  const { errors } = await graphql({
    ...{ schema, source: document.query, variableValues: document.variables, contextValue: ctx },
  });
  const [first] = errors ?? [];
  if (first) throw first.originalError ?? first;
}
