// Queries as typed text: gql.tada derives the types of variables and answers from the SDL, and nothing of it is loaded
// by the page.
import type { initGraphQLTada, ResultOf, TadaDocumentNode, VariablesOf } from 'gql.tada';
import type { introspection } from './schema.d.ts';

type Tada = initGraphQLTada<{
  introspection: introspection;
  scalars: { DateTime: string; ByteCount: number };
  disableMasking: true;
}>;

/** The fields of a fragment stand where it is spread: pages show a query as it is sent, and read its root fields. */
export const graphql = ((text: string, fragments: readonly string[] = []) =>
  fragments.reduce(withFields, text)) as unknown as Tada;

function withFields(text: string, fragment: string): string {
  const [, name = '', depth = '', fields = ''] = /fragment (\w+) on \w+ \{\n( *)(.*\S)\s*\}/s.exec(fragment) ?? [];
  return text.replace(
    new RegExp(`^( *)\\.\\.\\.${name}$`, 'gm'),
    (_, indent: string) => `${indent}${fields.replaceAll(`\n${depth}`, `\n${indent}`)}`,
  );
}

/** A query that `graphql` has typed. */
export type Query<Data, Variables> = TadaDocumentNode<Data, Variables>;
export type { ResultOf, VariablesOf };
