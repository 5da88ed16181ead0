// Queries for the schema: cheap for the service, counted for strangers, paid for with a key.
import { getIntrospectionQuery } from 'graphql';
import { limits } from '../../core/limits';
import { startService, type TestService } from '../support/service';
import { withinOneMinute } from '../support/processes/within_one_minute';

const ALLOWED = 3;
const STRANGER = { key: null, project: null };
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { RATE_LIMIT_FAILED_AUTH: String(ALLOWED) } });
});
afterAll(() => service.close());

test('with a key it costs points, also where the answer is known', async () => {
  const remaining = async (query: string): Promise<number> =>
    Number((await service.graphql(query)).headers.get('ratelimit-remaining'));
  const query = getIntrospectionQuery();
  await withinOneMinute(10_000);
  const left = await remaining('{ getMe { token { id } } }');
  const first = await remaining(query);
  const again = await remaining(query);
  expect([left - first, first - again]).toEqual([limits.introspectionPoints, limits.introspectionPoints]);
});

test('strangers are counted by address, and see nothing of the budget of others', async () => {
  const ask = (): ReturnType<TestService['graphql']> => service.graphql(getIntrospectionQuery(), undefined, STRANGER);
  const answers = [];
  for (let turn = 0; turn < ALLOWED + 1; turn += 1) answers.push(await ask());
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  expect(answers[0]?.data.__schema.types.length).toBeGreaterThan(50);
  expect(answers[0]?.text).toBe(answers[2]?.text);
  expect(answers[0]?.headers.get('ratelimit-remaining')).toBeNull();
  const refused = answers[ALLOWED] as (typeof answers)[number];
  expect(refused.errors?.[0].extensions.code).toBe('rate_limited');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await service.graphql('{ __typename }', undefined, STRANGER)).status).toBe(200);
});

test('an answer with an error is not kept', async () => {
  const query = '{ __schema { nonsense } }';
  const [first, second] = [await service.graphql(query), await service.graphql(query)];
  expect(first.errors?.[0].extensions.code).toBe('graphql_invalid');
  expect(second.errors?.[0].extensions.request_id).not.toBe(first.errors?.[0].extensions.request_id);
});
