// What a client gets where JSON and events are to be had: by its Accept header, as the usual clients send it.
import { startService, type TestService } from '../support/service';

const JSON_TYPE = 'application/json';
const GRAPHQL_TYPE = 'application/graphql-response+json';
const EVENTS = 'text/event-stream';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

interface Seen {
  status: number;
  type: string;
  code: string | null;
}

/** Status and type of an answer. A stream is left once it has begun. */
async function ask(path: string, init: RequestInit): Promise<Seen> {
  const leaving = new AbortController();
  const headers = { Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project, ...init.headers };
  const response = await fetch(service.url + path, { ...init, headers, signal: leaving.signal });
  const type = (response.headers.get('content-type') ?? '').split(';')[0] as string;
  const body = type === EVENTS || init.method === 'HEAD' ? '{}' : await response.text();
  leaving.abort();
  const { code = null, errors } = JSON.parse(body);
  return { status: response.status, type, code: code ?? errors?.[0].extensions.code ?? null };
}

const onGraphql = (query: string, accept: string, headers = {}): Promise<Seen> =>
  ask('/graphql', {
    method: 'POST',
    headers: { Accept: accept, 'Content-Type': JSON_TYPE, ...headers },
    body: JSON.stringify({ query }),
  });

const follow = (): string => `subscription { followProjectActivity(id: "${service.project}") { action } }`;

const URQL = `${GRAPHQL_TYPE}, application/graphql+json, ${JSON_TYPE}, ${EVENTS}, multipart/mixed`;

// What a query answers, and a subscription; null where the type is not acceptable.
test.each<[string, string, string | null, string | null]>([
  ['urql, a query', URQL, GRAPHQL_TYPE, EVENTS],
  ['urql, a subscription', `${EVENTS}, multipart/mixed`, EVENTS, EVENTS],
  ['Apollo Client, a query', `${GRAPHQL_TYPE},${JSON_TYPE};q=0.9`, GRAPHQL_TYPE, null],
  [
    'Apollo Client, a subscription',
    `multipart/mixed;boundary=graphql;subscriptionSpec=1.0,${GRAPHQL_TYPE},${JSON_TYPE};q=0.9`,
    GRAPHQL_TYPE,
    null,
  ],
  ['graphql-sse', EVENTS, EVENTS, EVENTS],
  ['Relay by fetch, curl', '*/*', JSON_TYPE, EVENTS],
  ['graphql-request', `${GRAPHQL_TYPE}, ${JSON_TYPE}`, GRAPHQL_TYPE, null],
  ['events first', `${EVENTS}, ${JSON_TYPE}`, JSON_TYPE, EVENTS],
  ['events by quality', `${EVENTS};q=1, ${JSON_TYPE};q=0.1`, JSON_TYPE, EVENTS],
  ['JSON by quality', `${EVENTS};q=0.1, ${JSON_TYPE}`, JSON_TYPE, EVENTS],
  ['no events', `${EVENTS};q=0, ${JSON_TYPE}`, JSON_TYPE, null],
  ['no JSON', `${JSON_TYPE};q=0, ${GRAPHQL_TYPE};q=0, */*`, EVENTS, EVENTS],
  ['a range of types', 'text/*', EVENTS, EVENTS],
  ['events with a charset', `${EVENTS}; charset=utf-8`, EVENTS, EVENTS],
  ['in capitals', 'TEXT/EVENT-STREAM', EVENTS, EVENTS],
  ['nothing that is to be had', 'image/png', null, null],
])('GraphQL, %s', async (_, accept, query, subscription) => {
  const expected = (type: string | null): Seen =>
    type ? { status: 200, type, code: null } : { status: 406, type: JSON_TYPE, code: 'not_acceptable' };
  expect(await onGraphql('{ __typename }', accept)).toEqual(expected(query));
  expect(await onGraphql(follow(), accept)).toEqual(expected(subscription));
});

test.each<[string, string, string | null]>([
  ['EventSource', EVENTS, EVENTS],
  ['fetch, curl', '*/*', JSON_TYPE],
  ['axios', `${JSON_TYPE}, text/plain, */*`, JSON_TYPE],
  ['JSON first', `${JSON_TYPE}, ${EVENTS}`, JSON_TYPE],
  ['events first', `${EVENTS}, ${JSON_TYPE}`, EVENTS],
  ['JSON by quality', `${EVENTS};q=0.1, ${JSON_TYPE}`, JSON_TYPE],
  ['events by quality', `${JSON_TYPE};q=0.4, ${EVENTS};q=0.5`, EVENTS],
  ['events, else anything', `${EVENTS}, */*;q=0.1`, EVENTS],
  ['no events', `${EVENTS};q=0, */*`, JSON_TYPE],
  ['only no events', `${EVENTS};q=0`, null],
  ['events with a charset', `${EVENTS};charset=utf-8`, EVENTS],
])('REST, %s', async (_, accept, type) => {
  const place = `/v2/projects/${service.project}/activity`;
  const expected = type
    ? { status: 200, type, code: null }
    : { status: 406, type: 'application/problem+json', code: 'not_acceptable' };
  expect(await ask(place, { headers: { Accept: accept } })).toEqual(expected);
  // Without a body, and at once.
  expect(await ask(place, { method: 'HEAD', headers: { Accept: accept } })).toEqual({ ...expected, code: null });
});

test('a list that can not be followed is no stream', async () => {
  expect(await ask('/v2/volumes', { headers: { Accept: EVENTS } })).toMatchObject({
    status: 406,
    code: 'not_acceptable',
  });
  expect(await ask('/v2/volumes', { headers: { Accept: `${EVENTS}, */*;q=0.1` } })).toMatchObject({ status: 200 });
});

test('the single connection mode of GraphQL over SSE is refused', async () => {
  const refused = { status: 400, type: JSON_TYPE, code: 'graphql_invalid' };
  expect(await onGraphql(follow(), EVENTS, { 'X-GraphQL-Event-Stream-Token': 'token' })).toEqual(refused);
  const post = { method: 'POST', headers: { 'Content-Type': JSON_TYPE }, body: JSON.stringify({ query: follow() }) };
  expect(await ask('/graphql?token=abc', post)).toEqual(refused);
  expect(await ask('/graphql', { headers: { Accept: EVENTS } })).toEqual(refused);
  expect(await ask('/graphql?token=abc&query=x', { headers: { Accept: EVENTS } })).toEqual(refused);
  for (const method of ['PUT', 'DELETE'])
    expect(await ask('/graphql', { method, headers: { Accept: EVENTS } })).toEqual({
      status: 405,
      type: JSON_TYPE,
      code: 'method_not_allowed',
    });
});
