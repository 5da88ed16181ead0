// What stands around every answer: the request id everywhere, the rate limit on what a key was used for.
import { sharedLimiter } from '../../rest/rate_limit';
import { startService, type Answer, type TestService } from '../support/service';
import { kindOfParam, operations } from '../support/world';
import { withinOneMinute } from '../support/processes/within_one_minute';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const BUDGETS = { RATE_LIMIT_READ: '40', RATE_LIMIT_WRITE: '30', RATE_LIMIT_DEPLOY: '20' };

/** A service of its own whose budgets are small, at a time when the window does not end soon. */
async function limited(settings: Record<string, string>, run: (service: TestService) => Promise<void>): Promise<void> {
  const own = await startService({ settings });
  await withinOneMinute(8_000);
  await run(own).finally(() => own.close());
}

const number = (answer: { headers: Headers }, name: string): number => Number(answer.headers.get(name) ?? NaN);

describe('X-Request-Id', () => {
  const places: [string, string, number][] = [
    ['GET', '/', 302],
    ['GET', '/healthz', 200],
    ['GET', '/readyz', 200],
    ['GET', '/nowhere', 404],
    ['POST', '/nowhere', 404],
    ['GET', '/v2', 404],
    ['GET', '/v2/nowhere', 404],
    ['DELETE', '/v2/me', 405],
    ['GET', '/v2/me', 401],
    ['OPTIONS', '/v2/me', 204],
    ['GET', '/v2/errors', 200],
    ['HEAD', '/v2/errors', 200],
    ['GET', '/v2/docs', 200],
    ['GET', '/v2/docs/nothing.js', 404],
    ['GET', '/v2/openapi.json', 200],
    ['GET', '/v2/openapi.yaml', 200],
    ['POST', '/v2/openapi.yaml', 405],
    ['GET', '/graphql', 400],
    ['POST', '/graphql', 415],
    ['PUT', '/graphql', 405],
  ];

  it.each(places)('is on %s %s (%i)', async (method, place, status) => {
    const answer = await fetch(service.url + place, { method, redirect: 'manual' });
    await answer.arrayBuffer();
    expect([answer.status, answer.headers.get('x-request-id')]).toEqual([
      status,
      expect.stringMatching(/^req_[0-9a-hjkmnp-tv-z]{26}$/),
    ]);
  });

  it('differs every time and is never the one of the client', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => service.call('GET', '/v2/me', { headers: { 'X-Request-Id': 'req_mine' } })),
    );
    const ids = answers.map(({ headers }) => headers.get('x-request-id'));
    expect(new Set(ids).size).toBe(20);
    expect(ids).not.toContain('req_mine');
  });

  it('is the one in the problem, in GraphQL errors and in the activity log', async () => {
    const missing = await service.call('GET', '/v2/volumes/x');
    expect(missing.body.request_id).toBe(missing.headers.get('x-request-id'));
    const made = await service.call('POST', '/v2/volumes', { body: { name: 'logged', size_gb: 1 } });
    const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${made.body.id}`);
    expect(body.data[0].request_id).toBe(made.headers.get('x-request-id'));
    const refused = await service.graphql('{ nothing }', {}, { key: 'svc_wrong' });
    expect(refused.errors?.[0].extensions.request_id).toBe(refused.headers.get('x-request-id'));
  });
});

describe('RateLimit', () => {
  const shape = { limit: /^\d+$/, remaining: /^\d+$/, reset: /^([1-9]|[1-5]\d|60)$/ };

  function expectHeaders(answer: Answer, budget: string): void {
    for (const [name, pattern] of Object.entries(shape))
      expect([name, answer.headers.get(`ratelimit-${name}`)]).toEqual([name, expect.stringMatching(pattern)]);
    expect(answer.headers.get('ratelimit-policy')).toMatch(new RegExp(`^"${budget}";q=\\d+;w=60$`));
  }

  it.each(operations.map((operation) => [operation.id, operation] as const))(
    'is on what %s answers to a key, and not to strangers',
    async (_, operation) => {
      const place = operation.path.replace(/\{(\w+)\}/g, (_match, name: string) =>
        kindOfParam(operation, name) === 'project' ? 'prj_01h455vb4pex5vsknk084sn02q' : 'nobody',
      );
      const body = operation.field.body ? { surprise: 1 } : undefined;
      const known = await service.call(operation.method, place, { body });
      if (operation.field.scope === 'none') return expect(known.headers.get('ratelimit-limit')).toBeNull();
      expectHeaders(known, operation.field.budget);
      const scopeless = await service.call(operation.method, place, {
        body,
        key: await service.mintKey({ scopes: [] }),
      });
      expectHeaders(scopeless, operation.field.budget);
      const stranger = await service.call(operation.method, place, { body, key: null });
      expect([stranger.status, stranger.headers.get('ratelimit-limit')]).toEqual([401, null]);
    },
  );

  it('counts exactly under 50 calls at once, in every budget apart', async () => {
    await limited(BUDGETS, async (own) => {
      const reads = await Promise.all(Array.from({ length: 50 }, () => own.call('GET', '/v2/me')));
      expect(reads.filter(({ status }) => status === 200)).toHaveLength(40);
      const refused = reads.filter(({ status }) => status === 429);
      expect(refused).toHaveLength(10);
      for (const answer of refused) {
        expect(answer.body).toMatchObject({ code: 'rate_limited', retryable: true });
        expect([number(answer, 'ratelimit-remaining'), answer.headers.get('retry-after')]).toEqual([
          0,
          answer.headers.get('ratelimit-reset'),
        ]);
      }
      expect(
        reads
          .filter(({ status }) => status === 200)
          .map((answer) => number(answer, 'ratelimit-remaining'))
          .sort((a, b) => a - b),
      ).toEqual(Array.from({ length: 40 }, (_, index) => index));
      const writes = await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          own.call('POST', '/v2/volumes', { body: { name: `many-${index}`, size_gb: 1 } }),
        ),
      );
      expect(writes.filter(({ status }) => status === 201)).toHaveLength(30);
      expect(await own.sql('select count(*) from volumes')).toEqual([{ count: 30 }]);
    });
  });

  it('belongs to the account: its keys share it, other accounts have their own', async () => {
    await limited(BUDGETS, async (own) => {
      const keys = [own.key, await own.mintKey(), await own.mintKey({ kind: 'project' })];
      const remaining: number[] = [];
      for (const key of keys) remaining.push(number(await own.call('GET', '/v2/me', { key }), 'ratelimit-remaining'));
      expect(remaining).toEqual([39, 38, 37]);
      const stranger = await own.newProject({ stranger: true });
      expect(number(await own.call('GET', '/v2/me', { key: stranger.key }), 'ratelimit-remaining')).toBe(39);
    });
  });

  it('a 304 costs nothing, an answer in full does', async () => {
    await limited(BUDGETS, async (own) => {
      const first = await own.call('GET', '/v2/regions');
      const tag = { 'If-None-Match': first.headers.get('etag') as string };
      for (let turn = 0; turn < 5; turn += 1)
        expect((await own.call('GET', '/v2/regions', { headers: tag })).status).toBe(304);
      expect(number(await own.call('GET', '/v2/regions'), 'ratelimit-remaining')).toBe(
        number(first, 'ratelimit-remaining') - 1,
      );
    });
  });

  it('GraphQL costs a point for each root field', async () => {
    await limited(BUDGETS, async (own) => {
      const three = await own.graphql(
        '{ a: getMe { token { id } } b: getMe { token { id } } listVolumes { next_cursor } }',
      );
      expect([three.errors, number(three, 'ratelimit-remaining')]).toEqual([undefined, 37]);
      const eleven = Array.from({ length: 15 }, (_, index) => `f${index}: getMe { token { id } }`).join(' ');
      for (let turn = 0; turn < 2; turn += 1) await own.graphql(`{ ${eleven} }`);
      const over = await own.graphql(`{ ${eleven} }`);
      expect(over.errors?.[0].extensions).toMatchObject({ code: 'rate_limited', status: 429 });
    });
  });

  it('processes that share a counter never pass the limit and leave at most a slice each', async () => {
    let sum = 0;
    const counter = { add: async (_bucket: string, _start: number, points: number) => (sum += points) };
    const budgets = { read: 100, write: 100, deploy: 100 };
    const processes = [
      sharedLimiter(budgets, counter),
      sharedLimiter(budgets, counter),
      sharedLimiter(budgets, counter),
    ];
    const turns = await Promise.all(
      Array.from({ length: 300 }, (_, index) => processes[index % 3]?.take('acc_1', 'read', 1)),
    );
    const allowed = turns.filter((turn) => turn?.allowed).length;
    expect(allowed).toBeLessThanOrEqual(100);
    expect(allowed).toBeGreaterThanOrEqual(85);
  });
});

describe('failed authentications', () => {
  it('are limited per address, while good keys from there go on', async () => {
    await limited({ RATE_LIMIT_FAILED_AUTH: '5' }, async (own) => {
      const attempt = (key: string | null): Promise<Answer> => own.call('GET', '/v2/me', { key });
      for (let turn = 0; turn < 5; turn += 1) expect((await attempt('svc_guess')).status).toBe(401);
      const refused = await attempt('svc_guess');
      expect([refused.status, refused.body.code, Number(refused.headers.get('retry-after')) > 0]).toEqual([
        429,
        'rate_limited',
        true,
      ]);
      expect((await attempt(own.key)).status).toBe(200);
      expect((await attempt(null)).status).toBe(401);
      expect(
        (await own.graphql('{ getMe { token { id } } }', {}, { key: 'svc_guess' })).errors?.[0].extensions.code,
      ).toBe('rate_limited');
    });
  });
});
