// Hostile queries: refused before anything runs. What runs costs a point, so a refusal must cost none.
import { getIntrospectionQuery } from 'graphql';
import { limits } from '../../core/limits';
import { requireFlat } from '../../server/graphql/query_text';
import { startService, type TestService } from '../support/service';
import { withinOneMinute } from '../support/processes/within_one_minute';

let service: TestService;
const BUDGET = 1000;

beforeAll(async () => {
  service = await startService({ settings: { RATE_LIMIT_READ: String(BUDGET) } });
});
afterAll(() => service.close());

async function pointsLeft(): Promise<number> {
  const { headers } = await service.graphql('{ getMe { token { id } } }');
  const left = Number(headers.get('ratelimit-remaining'));
  expect(left).toBeGreaterThan(0);
  return left;
}

/** Status and code of a refusal; fails where a resolver ran. */
async function refusal(query: string, variables?: Record<string, unknown>): Promise<[number, string, string]> {
  const before = await pointsLeft();
  const { status, data, errors } = await service.graphql(query, variables);
  const after = await pointsLeft();
  // A window of a minute may have begun in between.
  if (after < before) expect(before - after).toBe(1);
  expect(data).toBeUndefined();
  const [first] = errors as { message: string; extensions: { code: string; status: number; request_id: string } }[];
  expect(first?.extensions).toMatchObject({ status, request_id: expect.stringMatching(/^req_/) });
  return [status, first?.extensions.code ?? '', first?.message ?? ''];
}

const repeat = (count: number, make: (index: number) => string, between = ' '): string =>
  Array.from({ length: count }, (_, index) => make(index)).join(between);
const nest = (levels: number, open: string, core: string): string =>
  `${repeat(levels, () => `${open} {`)} ${core} ${repeat(levels, () => '}')}`;

const TYPES_OF_TYPES = 'types { fields { type { fields { args { type { name kind description } } } } } }';
const hostile: [string, string, RegExp][] = [
  [
    'too deep by relations',
    `{ listVolumes { data { ${nest(7, 'application { volumes(limit: 1)', 'id')} ${'}'.repeat(7)} } } }`,
    /levels/,
  ],
  ['deep and cheap', `{ ${nest(limits.graphqlDepthMax, 'getMe', 'id')} }`, /levels/],
  ['many aliases', `{ getMe { token { ${repeat(limits.graphqlAliasesMax + 1, (n) => `a${n}: kind`)} } } }`, /aliases/],
  ['many root fields', `{ ${repeat(limits.graphqlRootFieldsMax + 1, () => 'getMe { token { id } }')} }`, /root fields/],
  [
    'many root fields in a fragment',
    `{ ...all } fragment all on Query { ${repeat(limits.graphqlRootFieldsMax + 1, () => 'getMe { token { id } }')} }`,
    /root fields/,
  ],
  [
    'many root fields in an inline fragment',
    `{ ... { ${repeat(limits.graphqlRootFieldsMax + 1, () => 'getMe { token { id } }')} } }`,
    /root fields/,
  ],
  ['many fields', `{ getMe { token { ${repeat(limits.graphqlFieldsMax, () => 'kind')} } } }`, /fields/],
  [
    'many fields in a fragment that nobody spreads',
    `{ getMe { token { id } } } fragment idle on Query { ${repeat(limits.graphqlFieldsMax + 1, () => '__typename')} }`,
    /fields/,
  ],
  ['lists in lists', '{ listApplications(limit: 100) { data { volumes(limit: 100) { id } } } }', /cost/],
  [
    'lists in lists by the default page',
    `{ ${repeat(8, (n) => `a${n}: listApplications { data { volumes(limit: 31) { id } } }`)} }`,
    /cost/,
  ],
  [
    'a limit in a variable that was not sent',
    'query ($n: Int) { listApplications(limit: $n) { data { volumes(limit: 50) { id } } } }',
    /cost/,
  ],
  ['tokens', `{ getMe { token { id } } ${repeat(limits.graphqlTokensMax, () => '#\n,a')} }`, /tokens/],
  ['deep values', `{ listVolumes(name: ${'['.repeat(3000)}${']'.repeat(3000)}) { next_cursor } }`, /tokens|deep/],
  ['levels beyond all reading', `${'{a'.repeat(5_000)}${'}'.repeat(5_000)}`, /deep/],
  ['selections beyond all reading', `{ ${repeat(2_000, (n) => `a${n}: getMe { kind }`)} }`, /selections/],
  [
    'introspection that multiplies',
    `{ ${repeat(15, (n) => `a${n}: __schema { ${TYPES_OF_TYPES} }`)} }`,
    /introspection/,
  ],
];

test.each(hostile)('%s', async (_, query, what) => {
  const [status, code, message] = await refusal(query);
  expect([status, code, message]).toEqual([400, 'query_too_complex', expect.stringMatching(what)]);
});

const BRACES = '{'.repeat(2_000);

test.each([
  ['a comment', `{ getMe { kind } } # ${BRACES}\n`],
  ['a comment that ends with the text', `{ getMe { kind } } # ${BRACES}`],
  ['a string', `{ a(b: "${BRACES} \\" ${BRACES}", c: "") }`],
  ['a block string', `{ a(b: """${BRACES} \\""" " ${BRACES}\n ${BRACES}""") }`],
  ['a string without an end', `{ a(b: "${BRACES}`],
  ['a block string without an end', `{ a(b: """${BRACES}`],
])('braces in %s are no selections', (_, text) => expect(() => requireFlat(text)).not.toThrow());

test.each([
  ['a string', `{ a(b: "x\\"") ${BRACES}`],
  ['a block string', `{ a(b: """x""") ${BRACES}`],
  ['a comment', `# x\n${BRACES}`],
  ['a line that a string does not leave', `{ a(b: "x\n${BRACES}`],
])('braces behind %s are', (_, text) => expect(() => requireFlat(text)).toThrow(/deep/));

test('fragments that spread each other double at each step and are refused at once', async () => {
  const bomb =
    `{ ...f0 } ${repeat(60, (n) => `fragment f${n} on Query { ...f${n + 1} ...f${n + 1} }`)} fragment f60 on Query ` +
    '{ getMe { token { id } } }';
  expect((await refusal(bomb)).slice(0, 2)).toEqual([400, 'query_too_complex']);
});

test('fragments in a circle are refused', async () => {
  expect((await refusal('{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }')).slice(0, 2)).toEqual([
    400,
    'graphql_invalid',
  ]);
  expect((await refusal('{ getMe { token { id } } } fragment a on Query { ...a }')).slice(0, 2)).toEqual([
    400,
    'graphql_invalid',
  ]);
});

test('the heaviest query that passes the limits is validated in moderate time', async () => {
  const conflicts = `{ ${repeat(7, (n) => `...f${n}`)} }
    ${repeat(7, (n) => `fragment f${n} on Query { ${repeat(480, () => '__typename')} }`)}`;
  const begun = process.cpuUsage();
  expect((await service.graphql(conflicts)).status).toBe(400);
  const alone = `{ getMe { token { id } } }
    ${repeat(7, (n) => `fragment f${n} on Query { ${repeat(480, () => '__typename')} }`)}`;
  expect((await service.graphql(alone)).status).toBe(400);
  expect(process.cpuUsage(begun).user).toBeLessThan(2_000_000);
});

test('lists count by their limit, in the query or in a variable', async () => {
  const query = 'query ($n: Int) { listApplications(limit: $n) { data { volumes(limit: 50) { id } } } }';
  expect((await service.graphql(query, { n: 20 })).errors).toBeUndefined();
  expect((await service.graphql('{ listApplications { data { volumes(limit: 50) { id } } } }')).errors).toBeUndefined();
  expect(
    (await service.graphql('{ listApplications(limit: null) { data { volumes(limit: 50) { id } } } }')).errors,
  ).toBeUndefined();
  expect(
    (
      await service.graphql(
        '{ listVolumes(limit: 100) { data { id name size_gb application { id name } } next_cursor } }',
      )
    ).errors,
  ).toBeUndefined();
});

test('a body over the limit is refused', async () => {
  const { status, body } = await service.graphql(
    `{ getMe { token { id } } } # ${'x'.repeat(limits.graphqlBodyBytesMax)}`,
  );
  expect([status, body.errors[0].extensions]).toMatchObject([
    413,
    { code: 'payload_too_large', limit_bytes: limits.graphqlBodyBytesMax },
  ]);
});

test('the introspection of the usual tools passes, without a key', async () => {
  for (const options of [
    {},
    {
      specifiedByUrl: true,
      directiveIsRepeatable: true,
      schemaDescription: true,
      inputValueDeprecation: true,
      oneOf: true,
    },
  ]) {
    const { status, data, errors } = await service.graphql(
      getIntrospectionQuery(options),
      {},
      { key: null, project: null },
    );
    expect([status, errors]).toEqual([200, undefined]);
    expect(data.__schema.queryType.name).toBe('Query');
  }
});

test('each root field costs a point, also where it fails, and no more', async () => {
  await withinOneMinute(3_000);
  const before = await pointsLeft();
  const both = await service.graphql(
    '{ a: getMe { token { id } } b: getMe { token { id } } c: listVolumes { data { id application { id } } } }',
  );
  expect(Number(both.headers.get('ratelimit-remaining'))).toBe(before - 3);
  await service.graphql('{ a: getMe { token { id } } getVolume(id: "vol_nobody") { id } }');
  expect(await pointsLeft()).toBe(before - 6);
  await service.graphql('{ __typename __schema { queryType { name } } }');
  // And one for the reading before.
  expect(await pointsLeft()).toBe(before - 7 - limits.introspectionPoints);
});

test('a used-up budget is 429, with Retry-After', async () => {
  await withinOneMinute(3_000);
  const account = `select account_id as id from users limit 1`;
  const [owner] = await service.sql<{ id: string }>(account);
  await service.platform.limiter.take(owner?.id ?? '', 'read', (await pointsLeft()) - 1);
  expect((await service.graphql('{ getMe { token { id } } }')).status).toBe(200);
  const { status, headers, errors, data } = await service.graphql('{ listVolumes { data { id } } }');
  expect([status, data, errors?.[0].extensions]).toMatchObject([
    429,
    null,
    { code: 'rate_limited', status: 429, retryable: true },
  ]);
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  expect([headers.get('ratelimit-limit'), headers.get('ratelimit-remaining')]).toEqual([String(BUDGET), '0']);
  const rest = await service.call('GET', '/v2/volumes');
  expect([rest.status, rest.headers.get('ratelimit-remaining')]).toEqual([429, '0']);
});
