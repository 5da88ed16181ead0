// What is asked without a key costs an address, not everybody: new texts, their fields, and the schema by any text.
import { limits } from '../../core/limits';
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
