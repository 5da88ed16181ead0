// Queries as typed text: gql.tada derives the types of variables and answers from the SDL, and nothing of it is loaded
// by the page.
import type { initGraphQLTada, ResultOf, TadaDocumentNode, VariablesOf } from 'gql.tada';
import type { introspection } from './schema.d.ts';

type Tada = initGraphQLTada<{
  introspection: introspection;
  scalars: { DateTime: string; ByteCount: number };
  disableMasking: true;
}>;

export const graphql = ((text: string) => text) as unknown as Tada;

/** A query that `graphql` has typed. */
export type Query<Data, Variables> = TadaDocumentNode<Data, Variables>;
export type { ResultOf, VariablesOf };
