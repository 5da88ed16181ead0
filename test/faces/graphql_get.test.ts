// Queries in the URL, as GraphQL over HTTP has them: with the rights, limits and answers of a POST, and nothing else.
import { WebSocket } from 'ws';
import { newBrowser } from '../support/identity/browser';
import { startService, type KeyOptions, type TestService } from '../support/service';

let service: TestService;
let cookie: string;

beforeAll(async () => {
  service = await startService({ settings: { RATE_LIMIT_READ: '1000' } });
  cookie = (await newBrowser(service, 'ada@example.com', 'owner')).cookie();
});
afterAll(() => service.close());

const LIST = 'query List($limit: Int) { listVolumes(limit: $limit) { data { name } } }';
const MUTATION = 'mutation Make { createVolume(input: { name: "made-by-get", size_gb: 1 }) { id } }';
const GRAPHQL_TYPE = 'application/graphql-response+json';

interface Sent {
  key?: string | null;
  method?: string;
  headers?: Record<string, string>;
}

function get(
  parameters: Record<string, string> | string,
  { key, method = 'GET', headers }: Sent = {},
): Promise<Response> {
  const token = key === undefined ? service.key : key;
  return fetch(`${service.url}/graphql?${new URLSearchParams(parameters).toString()}`, {
    method,
    headers: {
      Accept: 'application/json',
      'X-Svc-Project': service.project,
      ...(token !== null && { Authorization: `Bearer ${token}` }),
      ...headers,
    },
  });
}

const codeOf = async (response: Response): Promise<string> => (await response.json()).errors?.[0].extensions.code;

it('answers what a POST is answered', async () => {
  for (const name of ['one', 'two'])
    await service.call('POST', '/v2/volumes', { body: { name: `vol-${name}`, size_gb: 1 } });
  const variables = { limit: 1 };
  const posted = await service.graphql(LIST, variables);
  const response = await get({
    query: `${LIST} query Other { __typename }`,
    variables: '{"limit":1}',
    operationName: 'List',
  });
  expect([response.status, await response.json()]).toEqual([200, { data: posted.data }]);
  expect(posted.data.listVolumes.data).toHaveLength(1);
  for (const name of ['content-type', 'cache-control', 'ratelimit-limit'])
    expect([name, response.headers.get(name)]).toEqual([name, posted.headers.get(name)]);
  expect(response.headers.get('cache-control')).toBe('no-store');
  const empty = await get({ query: '{ __typename }', variables: '', operationName: '', extensions: '' });
  expect(await empty.json()).toEqual({ data: { __typename: 'Query' } });
  const head = await get({ query: '{ __typename }' }, { method: 'HEAD' });
  expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', '31']);
});

it('costs as much', async () => {
  const left = async (): Promise<number> =>
    Number((await service.graphql('{ listVolumes { data { id } } }')).headers.get('ratelimit-remaining'));
  const first = await left();
  const second = await left();
  await get({ query: '{ listVolumes { data { id } } }' });
  expect((await left()) - second).toBe(2 * (second - first));
});

it('refuses as a POST is refused', async () => {
  const stranger = await service.newProject({ stranger: true });
  const cases: [string, string | KeyOptions | null, Record<string, string>][] = [
    ['no key', null, {}],
    ['an unknown key', 'svc_nobody', {}],
    ['no scope', { scopes: ['write'] }, {}],
    ['a project of others', service.key, { 'X-Svc-Project': stranger.id }],
  ];
  for (const [name, given, headers] of cases) {
    const key = given === null || typeof given === 'string' ? given : await service.mintKey(given);
    const posted = await service.graphql(
      LIST,
      {},
      { key, headers, project: headers['X-Svc-Project'] ?? service.project },
    );
    const response = await get({ query: LIST }, { key, headers });
    const seen = [response.status, response.headers.get('www-authenticate'), await codeOf(response)];
    expect([name, ...seen]).toEqual([
      name,
      posted.status,
      posted.headers.get('www-authenticate'),
      posted.errors?.[0].extensions.code,
    ]);
  }
});

it('runs no mutation, however it is named', async () => {
  const both = `${MUTATION} query Look { __typename }`;
  const requests: Record<string, string>[] = [
    { query: MUTATION },
    { query: both, operationName: 'Make' },
    { query: `fragment F on Mutation { __typename } mutation { ...F }` },
  ];
  for (const accept of ['application/json', GRAPHQL_TYPE, 'text/event-stream'])
    for (const request of requests)
      for (const method of ['GET', 'HEAD']) {
        const response = await get(request, { method, headers: { Accept: accept } });
        expect([request, response.status, response.headers.get('allow')]).toEqual([request, 405, 'POST']);
        expect(response.headers.get('cache-control')).toBe('no-store');
      }
  expect((await get({ query: both, operationName: 'Look' })).status).toBe(200);
  const open = await get({ query: both });
  expect((await open.json()).data ?? null).toBeNull();
  expect((await service.call('GET', '/v2/volumes?name=made-by-get')).body.data).toEqual([]);
});

it('says what is wrong with a URL', async () => {
  const query = '{ __typename }';
  const cases: [string, Record<string, string> | string][] = [
    ['no query', {}],
    ['an empty query', { query: '' }],
    ['a query twice', `query=${encodeURIComponent(query)}&query=${encodeURIComponent(MUTATION)}`],
    ['variables that are no JSON', { query, variables: '{' }],
    ['variables that are a list', { query, variables: '[]' }],
    ['variables that are a text', { query, variables: '"a"' }],
    ['extensions that are a number', { query, extensions: '7' }],
    ['no GraphQL', { query: '{ {' }],
  ];
  for (const [name, parameters] of cases) {
    const response = await get(parameters);
    expect([name, response.status, await codeOf(response)]).toEqual([name, 400, 'graphql_invalid']);
  }
  expect((await get({ query }, { headers: { Accept: 'image/png' } })).status).toBe(406);
});

it('answers in the type that the client accepts', async () => {
  const urql = `${GRAPHQL_TYPE}, application/graphql+json, application/json, text/event-stream, multipart/mixed`;
  for (const [accept, type] of [
    ['*/*', 'application/json'],
    [urql, GRAPHQL_TYPE],
    ['application/json, text/html', 'application/json'],
  ] as const) {
    const { status, headers } = await get({ query: '{ __typename }' }, { headers: { Accept: accept } });
    expect([accept, status, headers.get('content-type')]).toEqual([accept, 200, `${type}; charset=utf-8`]);
  }
});

it('takes the cookie of a session from pages of its own alone', async () => {
  const query = '{ viewer { user { email } } }';
  const as = (headers: Record<string, string>): Promise<Response> =>
    get({ query }, { key: null, headers: { Cookie: cookie, ...headers } });
  for (const headers of [
    {},
    { 'Sec-Fetch-Site': 'cross-site' },
    { 'Sec-Fetch-Site': 'same-site' },
    { 'Sec-Fetch-Site': 'none' },
    { Origin: 'https://evil.example.com' },
  ] as Record<string, string>[]) {
    const response = await as(headers);
    expect([headers, response.status, await codeOf(response)]).toEqual([headers, 403, 'csrf_rejected']);
  }
  const own = await as({ 'Sec-Fetch-Site': 'same-origin' });
  expect([own.status, (await own.json()).data.viewer.user.email]).toEqual([200, 'ada@example.com']);
  // A link from another site opens the explorer, and runs nothing.
  const link = await as({ Accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'Sec-Fetch-Site': 'cross-site' });
  expect([link.status, link.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
});

it('streams a subscription, as EventSource asks for it', async () => {
  const query = `subscription { followProjectActivity(id: "${service.project}") { action } }`;
  expect((await get({ query })).status).toBe(406);
  const leaving = new AbortController();
  const response = await fetch(`${service.url}/graphql?${new URLSearchParams({ query }).toString()}`, {
    headers: { Accept: 'text/event-stream', Authorization: `Bearer ${service.key}` },
    signal: leaving.signal,
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  leaving.abort();
});

describe('WebSockets', () => {
  it.each([[['graphql-transport-ws']], [['graphql-ws']], [['graphql-ws', 'graphql-transport-ws']], [[]]])(
    '%j is told of server-sent events',
    async (protocols: string[]) => {
      const socket = new WebSocket(`${service.url.replace('http', 'ws')}/graphql`, protocols);
      const [code, reason] = await new Promise<[number, string]>((resolve, reject) => {
        socket.once('close', (number, text) => resolve([number, text.toString()]));
        socket.once('error', reject);
      });
      expect([code, reason]).toEqual([4406, expect.stringContaining('server-sent events')]);
      expect(reason).toContain('text/event-stream');
    },
  );
});
