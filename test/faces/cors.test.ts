// Pages of other origins: none may read an answer unless the operator lists its origin, and cookies never come along.
import { startService, type TestService } from '../support/service';

const CONSOLE = 'https://console.example.com';
let [open, closed] = [] as unknown as [TestService, TestService];
beforeAll(async () => {
  open = await startService({ settings: { CORS_ORIGINS: `${CONSOLE}, http://localhost:5173` } });
  closed = await startService();
});
afterAll(() => Promise.all([open?.close(), closed?.close()]));

const ask = (service: TestService, path: string, headers: Record<string, string>, method = 'GET'): Promise<Response> =>
  fetch(`${service.url}${path}`, { method, headers });
const preflight = (service: TestService, path: string, Origin: string): Promise<Response> =>
  ask(service, path, { Origin, 'Access-Control-Request-Method': 'POST' }, 'OPTIONS');

test('an allowed origin gets an answer to its preflight, and may read what follows', async () => {
  for (const path of ['/v2/volumes', '/v2/me?x=1', '/graphql']) {
    const answer = await preflight(open, path, CONSOLE);
    expect(answer.status).toBe(204);
    expect(answer.headers.get('access-control-allow-origin')).toBe(CONSOLE);
    expect(answer.headers.get('access-control-allow-headers')).toMatch(/Authorization/);
    expect(answer.headers.get('access-control-allow-methods')).toMatch(/PATCH/);
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
  }
  const bearer = { Authorization: `Bearer ${open.key}`, Origin: 'http://localhost:5173' };
  const answers = [await ask(open, '/v2/me', bearer), await ask(open, '/v2/none', bearer)];
  answers.push(await ask(open, '/v2/me', { Origin: 'http://localhost:5173' }));
  answers.push(
    await fetch(`${open.url}/graphql`, {
      method: 'POST',
      headers: { ...bearer, 'Content-Type': 'application/json' },
      body: '{"query":"{ __typename }"}',
    }),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 401, 200]);
  for (const { headers } of answers) {
    expect(headers.get('access-control-allow-origin')).toBe('http://localhost:5173');
    expect(headers.get('access-control-expose-headers')).toMatch(/ETag/);
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect(headers.get('vary')).toMatch(/Origin/);
  }
});

test.each([
  'https://evil.example.com',
  'https://console.example.com.evil.example.com',
  'null',
  'http://console.example.com',
])('the origin %s gets nothing', async (Origin) => {
  expect((await preflight(open, '/v2/volumes', Origin)).headers.get('access-control-allow-origin')).toBeNull();
  const answer = await ask(open, '/v2/me', { Authorization: `Bearer ${open.key}`, Origin });
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, null]);
  expect(answer.headers.get('vary')).toMatch(/Origin/);
});

test('without the setting, and for other paths, nothing is allowed', async () => {
  expect((await preflight(closed, '/v2/volumes', CONSOLE)).headers.get('access-control-allow-origin')).toBeNull();
  expect((await ask(closed, '/v2/errors', { Origin: CONSOLE })).headers.get('vary') ?? '').not.toMatch(/Origin/);
  for (const path of ['/healthz', '/oauth/token', '/v2x'])
    expect((await ask(open, path, { Origin: CONSOLE })).headers.get('access-control-allow-origin')).toBeNull();
});

test('a session of the dashboard is refused to them all the same', async () => {
  const answer = await fetch(`${open.url}/graphql`, {
    method: 'POST',
    headers: { Origin: CONSOLE, Cookie: 'platform_session=x', 'Content-Type': 'application/json' },
    body: '{"query":"{ __typename }"}',
  });
  expect(await answer.text()).toMatch(/csrf_rejected/);
});

test.each(['*', 'console.example.com', 'https://console.example.com/', 'https://a.example.com/path'])(
  'the setting does not take %s',
  async (given) => {
    await expect(startService({ settings: { CORS_ORIGINS: given } })).rejects.toThrow(/CORS_ORIGINS/);
  },
);
