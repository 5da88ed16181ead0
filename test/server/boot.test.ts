// A contradiction in the SDL stops the start with one clear line.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { makeExecutableSchema } from '@graphql-tools/schema';
import { readOperations } from '../../contract/operations';

const directives = readFileSync(path.resolve(__dirname, '../../schema/_directives.graphql'), 'utf8');

function read(fields: string, more = ''): () => unknown {
  const query =
    'extend type Query { "Gets." getThing(id: ID!): String @rest(path: "/v2/things/{id}", group: "Volumes", ' +
    'summary: "Get") }';
  return () => readOperations(makeExecutableSchema({ typeDefs: [directives, query, fields, more] }));
}

const rest = (more: string): string => `@rest(group: "Volumes", summary: "S" ${more})`;

test('a table without contradiction is read', () => {
  expect(
    read('extend type Query { "L." listThings: String @rest(path: "/v2/things", group: "Volumes", summary: "S") }'),
  ).not.toThrow();
});

test.each<[string, string, RegExp]>([
  [
    'a path that names no argument',
    `extend type Query { "A." a: String ${rest('path: "/v2/a/{id}"')} }`,
    /^schema: a: path \/v2\/a\/\{id\} names no argument "id"$/,
  ],
  [
    'an argument of a write that is bound nowhere',
    `extend type Mutation { "A." a(x: Int): String @audit(action: "a.b") ${rest('method: POST, path: "/v2/a"')} }`,
    /^schema: a: argument "x" of POST is neither in the path nor in the body$/,
  ],
  [
    'a GET with a body',
    `input I { x: Int } extend type Query { "A." a(input: I!): String ${rest('path: "/v2/a"')} }`,
    /^schema: a: a GET has no body$/,
  ],
  [
    'two operations at one path',
    `extend type Query { "A." a(x: ID!): String ${rest('path: "/v2/things/{x}"')} }`,
    /^schema: a: another operation is at GET \/v2\/things\/\{\}$/,
  ],
  [
    'an operation id twice',
    `extend type Query { "A." a: String ${rest('path: "/v2/a", id: "getThing"')} }`,
    /^schema: a: operation id "getThing" is taken$/,
  ],
  [
    'a further binding without an id',
    `extend type Query { "A." a: String ${rest('path: "/v2/a"')} ${rest('path: "/v2/b"')} }`,
    /^schema: a: a further @rest needs an id$/,
  ],
  [
    'an unknown scope',
    `extend type Query { "A." a: String @scope(needs: "root") ${rest('path: "/v2/a"')} }`,
    /^schema: a: unknown scope "root"$/,
  ],
  [
    'an unknown group',
    'extend type Query { "A." a: String @rest(path: "/v2/a", group: "Toys", summary: "S") }',
    /^schema: a: unknown group "Toys"$/,
  ],
  [
    'a mutation without an activity entry',
    `extend type Mutation { "A." a: String ${rest('method: POST, path: "/v2/a"')} }`,
    /^schema: a: a mutation needs @audit\(action:\)$/,
  ],
  [
    'a mutation that is a GET',
    `extend type Mutation { "A." a: String @audit(action: "a.b") ${rest('path: "/v2/a"')} }`,
    /^schema: a: queries are GET, mutations are not$/,
  ],
  [
    'a field that no face binds',
    'extend type Query { "A." a: String }',
    /^schema: a: needs @rest, @graphqlOnly or @session$/,
  ],
  [
    'a field without a description',
    `extend type Query { a: String ${rest('path: "/v2/a"')} }`,
    /^schema: a: needs a description$/,
  ],
  [
    'a dashboard function with a path',
    `extend type Query { "A." a: String @session ${rest('path: "/v2/a"')} }`,
    /^schema: a: a dashboard function has no REST operation$/,
  ],
  [
    'a GraphQL-only field with a path',
    `extend type Query { "A." a: String @graphqlOnly ${rest('path: "/v2/a"')} }`,
    /^schema: a: a GraphQL-only field has no REST operation$/,
  ],
])('%s is refused', (_, fields, message) => {
  expect(read(fields)).toThrow(message);
});
