// What is asked without a key costs an address, not everybody: new texts, their fields, and the schema by any text.
import { executeSync, getIntrospectionQuery, parse, validate } from 'graphql';
import { limits } from '../../core/limits';
import { querySchema } from '../../server/graphql/schema_query';
import { buildFaces } from '../../server/service';
import { startService, type TestService } from '../support/service';
import { withinOneMinute } from '../support/processes/within_one_minute';

const TEXTS = 5;
const FIELDS = 200;

let service: TestService;
beforeAll(async () => {
  service = await startService({
    settings: { RATE_LIMIT_FAILED_AUTH: String(TEXTS), RATE_LIMIT_READ: String(FIELDS), TRUST_PROXY: '1' },
  });
});
afterAll(() => service.close());

/** Code of the answer for somebody without a key at an address. */
async function from(address: string, query: string): Promise<string | undefined> {
  const headers = { 'X-Forwarded-For': address };
  const { errors } = await service.graphql(query, {}, { key: null, project: null, headers });
  return errors?.[0]?.extensions.code as string | undefined;
}

const numbered = (make: (n: number) => string): string[] => Array.from({ length: TEXTS + 1 }, (_, n) => make(n));

describe('texts that were not answered before are counted', () => {
  let other = 0;
  /** Texts of these tests only: what one of them made known, the next one must not find. */
  const own = (): string => `q${(other += 1)}`;

  test.each<[string, string | undefined, (name: string, n: number) => string]>([
    ['valid ones', undefined, (name, n) => `query ${name}_${n} { __typename }`],
    ['with other aliases', undefined, (name, n) => `{ ${name}_${n}: __typename }`],
    ['in another form', undefined, (name, n) => `query ${name} {${' '.repeat(n + 1)}__typename }`],
    ['with a comment', undefined, (name, n) => `{ __typename } # ${name} ${n}`],
    ['of a type', undefined, (name, n) => `{ __type(name: "${name}${n}") { name } }`],
    ['of the schema', undefined, (name, n) => `query ${name}_${n} { __schema { queryType { name } } }`],
    ['not GraphQL', 'graphql_invalid', (name, n) => `{ ${name} ${n}`],
    ['with unknown fields', 'graphql_invalid', (name, n) => `{ ${name} f${n} }`],
    ['with many unknown directives', 'graphql_invalid', (name, n) => `{ __typename ${` @${name}${n}`.repeat(50)} }`],
    ['too deep', 'query_too_complex', (name, n) => `${`{${name}${n}`.repeat(40)}${'}'.repeat(40)}`],
    [
      'too long',
      'query_too_complex',
      (name, n) => `{ ${name}: __typename ${' __typename'.repeat(limits.graphqlStrangerTokensMax + n)} }`,
    ],
    ['that need a key', 'token_missing', (name, n) => `query ${name}_${n} { getMe { token { id } } }`],
  ])('%s', async (_, code, make) => {
    const address = `192.0.2.${(other += 1)}`;
    const name = own();
    await withinOneMinute(5_000);
    const answers = [];
    for (const query of numbered((n) => make(name, n))) answers.push(await from(address, query));
    expect(answers.slice(0, TEXTS)).toEqual(Array(TEXTS).fill(code));
    expect(answers[TEXTS]).toBe('rate_limited');
    // Others are not concerned, nor is who has a key.
    expect(await from(`198.51.100.${(other += 1)}`, `query ${own()} { __typename }`)).toBeUndefined();
    expect((await service.graphql(make(own(), 0))).errors?.[0]?.extensions.code).not.toBe('rate_limited');
  });

  test('and those that were are not, nor do they fail for the address that has used up its count', async () => {
    await withinOneMinute(5_000);
    const address = '203.0.113.1';
    const known = `query ${own()} { __typename }`;
    expect(await from('203.0.113.2', known)).toBeUndefined();
    for (const query of numbered((n) => `query used_up_${n} { __typename }`)) await from(address, query);
    expect(await from(address, `query ${own()} { __typename }`)).toBe('rate_limited');
    expect(await from(address, known)).toBeUndefined();
  });
});

test('fields are counted too, of texts that are known', async () => {
  await withinOneMinute(5_000);
  const query = `{ ${Array.from({ length: limits.graphqlRootFieldsMax }, (_, n) => `a${n}: __typename`).join(' ')} }`;
  const turns = FIELDS / limits.graphqlRootFieldsMax;
  const codes = [];
  for (let turn = 0; turn <= turns; turn += 1) codes.push(await from('203.0.113.3', query));
  expect(codes).toEqual([...Array(turns).fill(undefined), 'rate_limited']);
  expect(await from('203.0.113.4', query)).toBeUndefined();
});

describe('the schema is answered as graphql-js answers it', () => {
  const FULL = {
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  };
  const NAMED = '{ a: name b: name name kind __typename }';

  test.each<[string, string, Record<string, unknown>?]>([
    ['the usual query', getIntrospectionQuery()],
    ['without descriptions', getIntrospectionQuery({ descriptions: false })],
    ['with all that is known', getIntrospectionQuery(FULL)],
    ['nested types', '{ __schema { types { fields { type { ofType { name fields { name type { kind } } } } } } } }'],
    ['aliases', `{ a: __schema { types ${NAMED} } b: __schema { directives { x: name locations } } __typename }`],
    ['a type by its name', '{ __type(name: "Volume") { name fields { name args { name defaultValue } } } }'],
    ['types by their names', '{ a: __type(name: "Volume") { name } b: __type(name: "Project") { name } }'],
    ['no such type', '{ __type(name: "Nobody") { name } }'],
    ['a variable', 'query ($n: String!) { __type(name: $n) { name kind } }', { n: 'VolumeStatus' }],
    ['a variable with a default', 'query ($n: String = "Role") { __type(name: $n) { enumValues { name } } }'],
    ['deprecated fields', '{ __schema { types { fields(includeDeprecated: true) { name isDeprecated } } } }'],
    [
      'conditions',
      `query ($a: Boolean!, $b: Boolean!) { __schema { queryType @skip(if: $a) { name } types @include(if: $b) { name
        kind @include(if: $a) description @skip(if: $a) } } }`,
      { a: true, b: true },
    ],
    [
      'fragments of fragments, and fields that merge',
      `{ ...All __schema { types { kind } queryType { name } } }
       fragment All on Query {
         __schema { types { ...Type ... on __Type { fields { name } } } ... { mutationType { name } } }
       }
       fragment Type on __Type { name fields { type { ...Ref } } inputFields { name type { ...Ref ofType { kind } } } }
       fragment Ref on __Type { name ofType { name } }`,
    ],
    [
      'names that objects have',
      '{ constructor: __schema { __proto__: queryType { toString: name __proto__: kind } } }',
    ],
    ['one of two operations', 'query a { __typename } query b { __schema { queryType { name } } }'],
    ['possible types and interfaces', '{ __schema { types { possibleTypes { name } interfaces { name } } } }'],
  ])('%s', async (name, query, variables = {}) => {
    const { graphqlSchema: schema } = buildFaces().core;
    const document = parse(query);
    expect(validate(schema, document)).toEqual([]);
    const operationName = name.startsWith('one of') ? 'b' : undefined;
    const found = querySchema(schema, document, operationName, variables);
    const expected = executeSync({ schema, document, operationName, variableValues: variables });
    expect(found).not.toBeNull();
    expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
  });

  test.each([
    ['rows beside it', '{ __schema { queryType { name } } getMe { token { id } } }'],
    ['a mutation', 'mutation { __typename }'],
    ['wrong variables', 'query ($n: String!) { __type(name: $n) { name } }'],
  ])('%s is not', async (_, query) => {
    const { graphqlSchema: schema } = buildFaces().core;
    expect(querySchema(schema, parse(query), undefined, {})).toBeNull();
  });
});
