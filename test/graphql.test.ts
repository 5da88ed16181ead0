// The GraphQL face beside REST: the same keys, rules, headers and codes, and nothing of the inside.
import { mintRequestId } from '../core/ids';
import { rawRequest } from './support/raw_http';
import { startService, type CallOptions, type TestService } from './support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const LIST = '{ listVolumes { data { id name } next_cursor } }';
const CREATE = `mutation ($input: CreateVolumeInput!, $project: ID) {
  createVolume(project_id: $project, input: $input) { id project_id name size_gb mount_path } }`;

async function post(
  body: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; text: string; code: string | undefined }> {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${service.key}`, ...headers },
    body,
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    code: JSON.parse(text).errors?.[0].extensions.code,
  };
}

describe('the same rules', () => {
  it('keeps the connection of a refused caller, unless much of the body is left', async () => {
    const stranger = { Authorization: 'Bearer svc_nobody' };
    const small = await post(JSON.stringify({ query: LIST }), stranger);
    const large = await post(JSON.stringify({ query: LIST, variables: { filler: 'x'.repeat(32 << 10) } }), stranger);
    expect([small.status, small.headers.get('connection')]).toEqual([401, 'keep-alive']);
    expect([large.status, large.headers.get('connection')]).toEqual([401, 'close']);
  });

  it('refuses as REST refuses', async () => {
    const other = await service.newProject();
    const stranger = await service.newProject({ stranger: true });
    const cases: [string, CallOptions][] = [
      ['no key', { key: null }],
      ['no token at all', { key: '' }],
      ['an unknown key', { key: 'svc_nobody' }],
      ['an expired key', { key: await service.mintKey({ expires_at: '2020-01-01T00:00:00.000Z' }) }],
      ['no scope', { key: await service.mintKey({ scopes: ['write'] }) }],
      ['no project', { project: null }],
      ['a project that is not there', { project: 'prj_01h455vb4pex5vsknk084sn02q' }],
      ['a project of others', { project: stranger.id }],
      ['a restricted key', { key: await service.mintKey({ project_ids: [other.id] }) }],
      ['a project key elsewhere', { key: await service.mintKey({ kind: 'project' }), project: other.id }],
    ];
    for (const [name, options] of cases) {
      const rest = await service.call('GET', '/v2/volumes', options);
      const { errors, data, headers, status } = await service.graphql(LIST, {}, options);
      const extensions = errors?.[0].extensions;
      expect([name, data ?? null, extensions.code, extensions.status, errors?.[0].message]).toEqual([
        name,
        null,
        rest.body.code,
        rest.status,
        rest.body.detail,
      ]);
      expect([name, extensions.title, extensions.retryable, extensions.request_id]).toEqual([
        name,
        rest.body.title,
        rest.body.retryable,
        headers.get('x-request-id'),
      ]);
      expect([name, status]).toEqual([name, rest.status === 401 ? 401 : 200]);
      expect([name, headers.get('www-authenticate')?.slice(0, 6)]).toEqual([
        name,
        rest.headers.get('www-authenticate')?.slice(0, 6),
      ]);
      expect([name, headers.get('ratelimit-limit')]).toEqual([name, rest.headers.get('ratelimit-limit')]);
    }
  });

  it('lets nobody past in another spelling of the path', async () => {
    const body = JSON.stringify({ query: LIST });
    const spellings = [
      '/graphql/',
      '/GraphQL',
      '/graphql?x=1',
      '/graphql/?x',
      '//graphql',
      '/graphql//',
      '/graphql/.',
      '/x/../graphql',
      '/graph%71l',
      '/graphql%2f',
      '/graphql;x',
    ];
    for (const path of spellings) {
      const answer = await rawRequest(service.url, path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: 'Bearer svc_nobody' },
        body,
      });
      expect([path, answer.status]).toEqual([path, /^\/graphql\/?(?:\?|$)/i.test(path) ? 401 : 404]);
    }
  });

  it('carries the members of a problem', async () => {
    const fields = await service.graphql(CREATE, { input: { name: 'U', size_gb: 10 } });
    expect(fields.errors?.[0]).toMatchObject({
      path: ['createVolume'],
      extensions: {
        code: 'validation_failed',
        status: 422,
        errors: [{ field: 'name', code: expect.any(String), detail: expect.any(String) }],
      },
    });
    const scope = await service.graphql(
      CREATE,
      { input: { name: 'data', size_gb: 1 } },
      { key: await service.mintKey({ scopes: ['read'] }) },
    );
    expect(scope.errors?.[0].extensions).toMatchObject({
      code: 'insufficient_scope',
      required_scope: 'write',
      token_scopes: ['read'],
    });
  });

  it('sends the same headers, and an id of its own for each request', async () => {
    const sent = mintRequestId();
    const rest = await service.call('GET', '/v2/volumes');
    const { headers } = await service.graphql(LIST, {}, { headers: { 'X-Request-Id': sent } });
    for (const name of ['ratelimit-limit', 'ratelimit-policy']) expect(headers.get(name)).toBe(rest.headers.get(name));
    expect(Number(headers.get('ratelimit-remaining'))).toBeGreaterThan(0);
    expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThan(0);
    expect(headers.get('x-request-id')).toMatch(/^req_/);
    expect(headers.get('x-request-id')).not.toBe(sent);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    const write = await service.graphql(CREATE, { input: { name: 'headers', size_gb: 1 } });
    expect(write.headers.get('ratelimit-policy')).toMatch(/^"write"/);
  });

  it('lets the argument project_id win over the header', async () => {
    const other = await service.newProject();
    const made = await service.graphql(CREATE, { input: { name: 'elsewhere', size_gb: 1 }, project: other.id });
    expect(made.data.createVolume.project_id).toBe(other.id);
    const both = await service.graphql(
      `query ($id: ID) { here: listVolumes(name: "elsewhere") { data { id } } there:
        listVolumes(project_id: $id, name: "elsewhere") { data { id } } }`,
      { id: other.id },
    );
    expect([both.data.here.data, both.data.there.data]).toEqual([[], [{ id: made.data.createVolume.id }]]);
  });

  it('takes no project that has not the form of an id', async () => {
    for (const id of ['\u0000', 'x'.repeat(10_000), '\ud800', '']) {
      const { errors } = await service.graphql('query ($id: ID) { listVolumes(project_id: $id) { data { id } } }', {
        id,
      });
      expect([id.slice(0, 5), errors?.[0].extensions.code]).toEqual([id.slice(0, 5), 'project_not_found']);
    }
  });

  it('tells null from absent', async () => {
    const [app] = (await service.graphql('mutation { createApplication(input: {name: "shop"}) { id } }')).data
      ? [(await service.call('GET', '/v2/applications?name=shop')).body.data[0].id]
      : [];
    const made = await service.graphql(CREATE, {
      input: { name: 'pair', size_gb: 1, application_id: app, mount_path: '/data' },
    });
    const { id } = made.data.createVolume;
    await service.sql(`update volumes set status = 'in_use' where id = $1`, [id]);
    const change = `mutation ($id: ID!, $input: UpdateVolumeInput!) {
      updateVolume(id: $id, input: $input) { name application_id mount_path } }`;
    const renamed = await service.graphql(change, { id, input: { name: 'couple' } });
    expect(renamed.data.updateVolume).toEqual({ name: 'couple', application_id: app, mount_path: '/data' });
    const detached = await service.graphql(change, { id, input: { application_id: null } });
    expect(detached.data.updateVolume).toEqual({ name: 'couple', application_id: null, mount_path: null });
    // A variable that is not sent leaves its field out.
    const kept = await service.graphql(
      'mutation ($id: ID!, $path: String) { updateVolume(id: $id, input: {name: "trio", mount_path: $path}) { name } }',
      { id },
    );
    expect(kept.data.updateVolume).toEqual({ name: 'trio' });
    const refused = await service.graphql(change, { id, input: { name: null } });
    expect(refused.errors?.[0].extensions).toMatchObject({ code: 'validation_failed', errors: [{ field: 'name' }] });
  });

  it('sees in a later mutation what an earlier one of the same request changed', async () => {
    const app = (await service.call('POST', '/v2/applications', { body: { name: 'before' } })).body.id;
    const volume = (
      await service.call('POST', '/v2/volumes', {
        body: { name: 'late', size_gb: 1, application_id: app, mount_path: '/data' },
      })
    ).body.id;
    await service.sql(`update volumes set status = 'in_use' where id = $1`, [volume]);
    const { data } = await service.graphql(
      `mutation ($app: ID!, $volume: ID!) {
      one: updateVolume(id: $volume, input: {name: "later"}) { application { name } }
      updateApplication(id: $app, input: {name: "after"}) { name }
      two: updateVolume(id: $volume, input: {name: "latest"}) { application { name } }
    }`,
      { app, volume },
    );
    expect(data).toEqual({
      one: { application: { name: 'before' } },
      updateApplication: { name: 'after' },
      two: { application: { name: 'after' } },
    });
  });
});

test('its requests are counted like those of REST', async () => {
  await service.graphql(LIST);
  await service.graphql('{ nothing }');
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
  for (const status of [200, 400])
    expect(metrics).toMatch(new RegExp(`platform_requests_total\\{operation="graphql",status="${status}"\\} \\d+`));
});

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
    ['a subscription', 400, 'graphql_invalid', '{"query": "subscription { __typename }"}'],
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

  it('runs no query of an address', async () => {
    const query = encodeURIComponent('{ __typename }');
    for (const accept of ['application/json', '*/*']) {
      const { status, headers } = await fetch(`${service.url}/graphql?query=${query}`, { headers: { Accept: accept } });
      expect([status, headers.get('allow')]).toEqual([405, 'POST']);
    }
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
