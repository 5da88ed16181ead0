// What GraphQL makes of queries: bad ones, expensive ones, and those that fail inside.
import { LIST, post, service, setUpGraphql } from '../support/contract/graphql_cases';

setUpGraphql();

describe('what is no good query', () => {
  it.each<[string, number, string, string, Record<string, string>?]>([
    ['broken JSON', 400, 'malformed_json', '{"query": "'],
    ['JSON that is no object', 400, 'malformed_json', '"{ __typename }"'],
    ['nothing', 400, 'graphql_invalid', ''],
    ['no query', 400, 'graphql_invalid', '{}'],
    ['an empty query', 400, 'graphql_invalid', '{"query": "  "}'],
    ['a query that is no text', 400, 'graphql_invalid', '{"query": {"kind": "Document"}}'],
    ['a syntax error', 400, 'graphql_invalid', '{"query": "{ listVolumes {"}'],
    ['an unknown field', 400, 'graphql_invalid', '{"query": "{ nothing }"}'],
    ['an unknown operation name', 400, 'graphql_invalid', '{"query": "query a { __typename }", "operationName": "b"}'],
    [
      'two operations and no name',
      400,
      'graphql_invalid',
      '{"query": "query a { __typename } query b { __typename }"}',
    ],
    ['an operation name that is no text', 400, 'graphql_invalid', '{"query": "{ __typename }", "operationName": 7}'],
    [
      'variables of the wrong type',
      400,
      'graphql_invalid',
      '{"query": "query ($n: Int!) { listVolumes(limit: $n) { next_cursor } }", "variables": {"n": "many"}}',
    ],
    [
      'a variable that is missing',
      400,
      'graphql_invalid',
      '{"query": "query ($id: ID!) { getVolume(id: $id) { id } }"}',
    ],
    ['variables that are no object', 400, 'graphql_invalid', '{"query": "{ __typename }", "variables": "{}"}'],
    ['variables in a list', 400, 'graphql_invalid', '{"query": "{ __typename }", "variables": []}'],
    [
      'a subscription of a client that takes no events',
      406,
      'not_acceptable',
      '{"query": "subscription { __typename }"}',
      { Accept: 'application/json' },
    ],
    [
      'a hash instead of a query',
      400,
      'graphql_invalid',
      '{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "00"}}}',
    ],
    ['a batch', 400, 'malformed_json', '[{"query": "{ __typename }"}, {"query": "{ __typename }"}]'],
    [
      'a form',
      415,
      'unsupported_media_type',
      'query=%7B__typename%7D',
      { 'Content-Type': 'application/x-www-form-urlencoded' },
    ],
    ['text', 415, 'unsupported_media_type', '{"query": "{ __typename }"}', { 'Content-Type': 'text/plain' }],
    [
      'a form with a file',
      415,
      'unsupported_media_type',
      '--x--',
      { 'Content-Type': 'multipart/form-data; boundary=x' },
    ],
    [
      'an encoding that nobody knows',
      415,
      'unsupported_media_type',
      '{"query": "{ __typename }"}',
      { 'Content-Encoding': 'secret' },
    ],
    ['a client that takes no JSON', 406, 'not_acceptable', '{"query": "{ __typename }"}', { Accept: 'text/html' }],
  ])('%s', async (...[, status, code, body, headers]) => {
    const answer = await post(body, headers);
    expect([answer.status, answer.code]).toEqual([status, code]);
    const { errors, data } = JSON.parse(answer.text);
    expect(data).toBeUndefined();
    expect(errors[0]).toMatchObject({
      message: expect.stringMatching(/\w/),
      extensions: { status, code, request_id: answer.headers.get('x-request-id') },
    });
  });

  test.each([
    ['an unknown field', { query: '{ nothing }' }],
    ['an unknown operation name', { query: LIST, operationName: 'Other' }],
    ['a variable that is missing', { query: 'query ($id: ID!) { getVolume(id: $id) { id } }' }],
  ])('%s, asked for as a stream', async (_, body) => {
    const whole = await post(JSON.stringify(body));
    const response = await fetch(`${service.url}/graphql`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Authorization: `Bearer ${service.key}`,
        'X-Svc-Project': service.project,
        Accept: 'text/event-stream',
      },
      body: JSON.stringify(body),
    });
    const [, event, data] = /^event: (.*)\ndata: (.*)$/m.exec(await response.text()) as unknown as string[];
    const { errors } = JSON.parse(data as string);
    expect([whole.code, event, errors[0].extensions.code]).toEqual(['graphql_invalid', 'next', 'graphql_invalid']);
    expect({ ...errors[0], extensions: {} }).toEqual({ ...JSON.parse(whole.text).errors[0], extensions: {} });
  });

  it('knows no other methods than GET, HEAD and POST', async () => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS'])
      expect((await fetch(`${service.url}/graphql`, { method })).status).toBe(405);
  });

  it('answers in the media type of GraphQL where that is asked for', async () => {
    const own = 'application/graphql-response+json';
    for (const [accept, type] of [
      [own, own],
      [`${own}; charset=utf-8, application/json; charset=utf-8;q=0.9`, own],
      [`${own};q=0.4, application/json;q=0.5`, 'application/json'],
      ['application/json; charset=utf-8', 'application/json'],
    ] as const) {
      const { status, headers } = await post('{"query": "{ __typename }"}', { Accept: accept });
      expect([accept, status, headers.get('content-type')]).toEqual([accept, 200, `${type}; charset=utf-8`]);
    }
  });
});

test('a browser gets the explorer, which loads nothing from other hosts', async () => {
  const response = await fetch(`${service.url}/graphql`, {
    headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
  });
  const page = await response.text();
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(page).toContain('graphiql');
  const addresses = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address as string);
  expect(addresses.length).toBeGreaterThan(3);
  for (const address of addresses)
    expect([address, address.startsWith('/'), (await fetch(service.url + address)).status]).toEqual([
      address,
      true,
      200,
    ]);
});

test('a page of fifty with relations needs as many statements as a page of one', async () => {
  const apps = await Promise.all(
    [...Array(5).keys()].map(
      async (n) => (await service.call('POST', '/v2/applications', { body: { name: `many-${n}` } })).body.id as string,
    ),
  );
  await Promise.all(
    [...Array(50).keys()].map((n) =>
      service.call('POST', '/v2/volumes', {
        body: { name: `page-${n}`, size_gb: 1, application_id: apps[n % 5], mount_path: `/data/${n}` },
      }),
    ),
  );
  const statements = async (limit: number): Promise<number> => {
    let count = 0;
    const { database } = service.platform;
    const query = database.query.bind(database);
    const spy = jest
      .spyOn(database, 'query')
      .mockImplementation((statement, values) => ((count += 1), query(statement, values)) as never);
    const { data } = await service.graphql(
      `query ($n: Int) { listVolumes(limit: $n) { data { id application { name volumes(limit: 1) {
        id } domains(limit: 1) { id } } } } }`,
      { n: limit },
    );
    spy.mockRestore();
    expect(data.listVolumes.data).toHaveLength(limit);
    return count;
  };
  // Now and then the caller is looked up anew, which is no matter of the page.
  const fewest = async (limit: number): Promise<number> =>
    Math.min(await statements(limit), await statements(limit), await statements(limit));
  const one = await fewest(1);
  expect(one).toBeGreaterThanOrEqual(4);
  expect(await fewest(50)).toBe(one);
});

test('a relation reads the columns that name it, and the whole row where more is asked for', async () => {
  const { body: app } = await service.call('POST', '/v2/applications', {
    body: { name: 'whole', description: 'of many columns' },
  });
  const { body: volume } = await service.call('POST', '/v2/volumes', {
    body: { name: 'related', size_gb: 1, application_id: app.id, mount_path: '/related' },
  });
  const reads = async (selection: string, wanted: object, columns: string, fragments = ''): Promise<void> => {
    const { database } = service.platform;
    const query = database.query.bind(database);
    const texts: string[] = [];
    const spy = jest
      .spyOn(database, 'query')
      .mockImplementation((statement, values) => (texts.push(statement.text), query(statement, values)) as never);
    const { data, errors } = await service.graphql(
      `query ($id: ID!) { getVolume(id: $id) { ${selection} } } ${fragments}`,
      { id: volume.id },
    );
    spy.mockRestore();
    expect([errors, data?.getVolume]).toEqual([undefined, wanted]);
    const asked = texts
      .map((text) => /^select (.*) from applications/.exec(text)?.[1])
      .filter((found) => found !== undefined);
    expect(asked.map((found) => (found === BRIEF ? 'brief' : 'whole')).join()).toBe(columns);
  };
  const BRIEF = 'id, project_id, name, status';
  const { id, name, status, description } = app;
  for (let turn = 0; turn < 3; turn += 1) {
    await reads('application { name }', { application: { name } }, 'brief');
    await reads(
      'application { __typename called: name ...own ... on Application { status } }',
      { application: { __typename: 'Application', called: name, id, status } },
      'brief',
      'fragment own on Application { id }',
    );
    await reads('application { name description }', { application: { name, description } }, 'whole');
    await reads(
      'application { ...own }',
      { application: { id, description } },
      'whole',
      'fragment own on Application { id ... { description } }',
    );
    await reads('application { id } application { description }', { application: { id, description } }, 'whole');
    await reads(
      'a: application { id } b: application { description }',
      { a: { id }, b: { description } },
      'brief,whole',
    );
  }
});

// Last: it breaks the database.
test('an error of the inside stays inside, on both faces', async () => {
  await service.sql('alter table volumes rename to hidden_away');
  const rest = await service.call('GET', '/v2/volumes');
  expect([rest.status, rest.body.code]).toEqual([500, 'internal_error']);
  const { status, text, errors, headers } = await service.graphql(LIST);
  expect([status, errors?.[0].extensions.code, errors?.[0].extensions.request_id]).toEqual([
    500,
    'internal_error',
    headers.get('x-request-id'),
  ]);
  const some = await service.graphql(`{ getMe { token { id } } ${LIST.slice(1)}`);
  expect(some.errors?.[0].extensions).toMatchObject({ code: 'internal_error', status: 500 });
  for (const answer of [rest.text, text, some.text])
    expect(answer).not.toMatch(/select|volumes" does|relation|42P01|\.ts|node_modules|stack/i);
});
