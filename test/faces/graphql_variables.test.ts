// Variables that are wrong in many ways are mistakes of the request: told with a code, in few words, and not logged.
import { startService, type TestService } from '../support/service';

let service: TestService;
let logged: jest.SpyInstance;
beforeAll(async () => {
  service = await startService();
  logged = jest.spyOn(service.platform.log, 'error');
});
afterAll(() => service.close());

const members = (count: number): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`member_${n}`, n]));

const CREATE = 'mutation ($input: CreateVolumeInput!) { createVolume(input: $input) { id } }';
const GET = 'query ($id: ID!) { getVolume(id: $id) { id } }';
const LIST = 'query ($limit: Int, $name: String) { listVolumes(limit: $limit, name: $name) { next_cursor } }';
const LOGIN = 'mutation ($input: LoginInput!) { login(input: $input) { user { id } } }';

test.each<[string, string, unknown]>([
  ['49 wrong members', CREATE, { input: { name: 'a', size_gb: 1, ...members(49) } }],
  ['50 wrong members', CREATE, { input: { name: 'a', size_gb: 1, ...members(50) } }],
  ['500 wrong members', CREATE, { input: members(500) }],
  ['500 wrong members of a stranger', LOGIN, { input: members(500) }],
  ['no member at all', CREATE, { input: {} }],
  ['null', CREATE, { input: null }],
  ['a list for an object', CREATE, { input: [[[1]]] }],
  ['a text for an object', CREATE, { input: 'x' }],
  ['nothing', GET, {}],
  ['an object for an id', GET, { id: { a: 1 } }],
  ['a list for an id', GET, { id: ['x'] }],
  ['true for an id', GET, { id: true }],
  ['a text for a number', LIST, { limit: '1' }],
  ['a fraction', LIST, { limit: 1.5 }],
  ['a number beyond all integers', LIST, { limit: 1e300 }],
  ['a number for a text', LIST, { name: 1 }],
  ['a hundred wrong variables', `query (${many('Int')}) { __typename }`, Object.fromEntries(range('x'))],
  ['null for a variable with a default', 'query ($id: ID = "vol_1") { getVolume(id: $id) { id } }', { id: null }],
])('%s', async (_, query, variables) => {
  // The second time it is compiled, where it can be.
  for (let turn = 0; turn < 3; turn += 1) {
    const { errors, status } = await service.graphql(query, variables as Record<string, unknown>);
    expect([...new Set(errors?.map(({ extensions }) => extensions.code))]).toEqual(['graphql_invalid']);
    expect(status).toBeLessThan(500);
  }
  expect(logged.mock.calls).toEqual([]);
});

function range(value: unknown): [string, unknown][] {
  return Array.from({ length: 100 }, (_, n) => [`v${n}`, value]);
}

function many(type: string): string {
  return range(0)
    .map(([name]) => `$${name}: ${type}`)
    .join(' ');
}

test('as events too', async () => {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'text/event-stream',
      Authorization: `Bearer ${service.key}`,
    },
    body: JSON.stringify({
      query: 'subscription ($id: ID!) { followApplicationLogs(id: $id) { message } }',
      variables: { id: members(60) },
    }),
  });
  expect(await response.text()).toMatch(/"code":"graphql_invalid"/);
  expect(logged.mock.calls).toEqual([]);
});

test('an answer is not much longer than what was asked', async () => {
  const input = { email: 'x'.repeat(100_000), ...members(60) };
  const { text, errors } = await service.graphql(LOGIN, { input }, { key: null, project: null });
  expect(text.length).toBeLessThan(100_000);
  expect(errors?.[0]?.message).toMatch(
    /^Variable "\$input" got invalid value .* … .*(?:"LoginInput"|was not provided)/s,
  );
});
