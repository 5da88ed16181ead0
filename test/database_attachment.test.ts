// Databases attached to applications: variables that come, follow and go as a whole (docs/contract/resources.md §9.5).
import { application, childrenOf, endpoint, environment, type Children } from './support/database_children';
import { database, describeHost } from './support/databases';
import { startService, type Answer, type TestService } from './support/service';

const MISSING = 'app_01h455vb4pex5vsknk084sn02q';
let service: TestService;

beforeAll(async () => {
  service = await startService({
    settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000, "applications": 1000}' },
  });
  await describeHost(service);
});

afterAll(() => service?.close());

async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string }> {
  const { id } = await database(service, body);
  return { ...childrenOf(service, id), id };
}

let serial = 0;
const newApplication = (): Promise<string> => application(service, `shop-${(serial += 1)}`);
const credentials = async (id: string): Promise<Answer['body']> =>
  (await service.call('GET', `/v2/databases/${id}/credentials`)).body;
const rowsOf = (app: string): Promise<{ key: string; value: string; managed_by: string | null }[]> =>
  service.sql('select key, value, managed_by from environment_variables where application_id = $1 order by key', [app]);

describe('attaching', () => {
  it('answers everything that is promised, and puts the variables into the environment', async () => {
    const { id, post, get } = await fresh();
    const app = await newApplication();
    const made = await post('attachments', { application_id: app });
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      `${service.url}/v2/databases/${id}/attachments/${made.body.id}`,
    ]);
    const { endpoints, password } = await credentials(id);
    const names = [
      'DATABASE_URL',
      'DATABASE_HOST',
      'DATABASE_PORT',
      'DATABASE_USER',
      'DATABASE_PASSWORD',
      'DATABASE_NAME',
    ];
    expect(made.body).toEqual({
      id: expect.stringMatching(/^att_[0-9a-hjkmnp-tv-z]{26}$/),
      database_id: id,
      application_id: app,
      env_prefix: 'DATABASE',
      endpoint_id: endpoints[0].endpoint_id,
      user_id: expect.stringMatching(/^dbu_/),
      variables: names,
      created_at: expect.stringMatching(/Z$/),
      updated_at: made.body.created_at,
    });
    expect((await get('attachments', made.body.id)).body).toEqual(made.body);
    const { connection_string, host, port } = endpoints[0];
    expect(await environment(service, app)).toEqual({
      DATABASE_URL: connection_string,
      DATABASE_HOST: host,
      DATABASE_PORT: String(port),
      DATABASE_USER: 'app',
      DATABASE_PASSWORD: password,
      DATABASE_NAME: 'app',
    });
    for (const { value, managed_by } of await rowsOf(app))
      expect([managed_by, value.startsWith('v1.')]).toEqual([made.body.id, true]);
    expect(made.text).not.toContain(password);
  });

  it('key-value engines have no name of a database', async () => {
    const { id, post } = await fresh({ engine: 'redis' });
    const app = await newApplication();
    const made = (await post('attachments', { application_id: app })).body;
    expect([made.env_prefix, made.variables]).toEqual([
      'REDIS',
      ['REDIS_URL', 'REDIS_HOST', 'REDIS_PORT', 'REDIS_USER', 'REDIS_PASSWORD'],
    ]);
    expect((await environment(service, app)).REDIS_URL).toBe((await credentials(id)).endpoints[0].connection_string);
  });

  it('takes a prefix, an endpoint and a user', async () => {
    const { id, post } = await fresh();
    const further = await endpoint(service, id, { pool_mode: 'session' });
    const user = (await post('users', { username: 'reports', access: 'read_only' })).body;
    const app = await newApplication();
    const made = await post('attachments', {
      application_id: app,
      env_prefix: 'REPORTS_DB',
      endpoint_id: further.id,
      user_id: user.id,
    });
    expect(made.body).toMatchObject({ env_prefix: 'REPORTS_DB', endpoint_id: further.id, user_id: user.id });
    const found = await environment(service, app);
    expect(found).toMatchObject({
      REPORTS_DB_USER: 'reports',
      REPORTS_DB_PASSWORD: user.password,
      REPORTS_DB_PORT: String(further.port),
    });
    expect(found.REPORTS_DB_URL).toBe(
      `postgresql://reports:${user.password}@127.0.0.1:${further.port}/app?sslmode=require`,
    );
  });

  it('nobody else changes the variables', async () => {
    const { post } = await fresh();
    const app = await newApplication();
    const { id } = (await post('attachments', { application_id: app })).body;
    const place = `/v2/applications/${app}/env/DATABASE_URL`;
    expect(await service.call('PUT', place, { body: { value: 'mine' } })).toMatchObject({
      status: 409,
      body: { code: 'env_key_managed', managed_by: id },
    });
    expect(await service.call('DELETE', place)).toMatchObject({
      status: 409,
      body: { code: 'env_key_managed', managed_by: id },
    });
  });

  const mistakes: [string, Record<string, unknown>, [string, string][]][] = [
    ['no application', { application_id: undefined }, [['application_id', 'required']]],
    ['a prefix in lower case', { env_prefix: 'database' }, [['env_prefix', 'invalid_format']]],
    ['a prefix that begins with a digit', { env_prefix: '1_DB' }, [['env_prefix', 'invalid_format']]],
    ['a long prefix', { env_prefix: 'A'.repeat(41) }, [['env_prefix', 'invalid_format']]],
    [
      'null',
      { env_prefix: null, endpoint_id: null, user_id: null },
      [
        ['env_prefix', 'required'],
        ['endpoint_id', 'required'],
        ['user_id', 'required'],
      ],
    ],
    ['its own variables', { variables: ['X'] }, [['variables', 'immutable']]],
  ];

  it.each(mistakes)('refuses %s', async (_, body, wanted) => {
    const { post } = await fresh();
    const answer = await post('attachments', { application_id: MISSING, ...body });
    expect([
      answer.status,
      answer.body.errors?.map(({ field, code }: { field: string; code: string }) => [field, code]).sort(),
    ]).toEqual([422, [...wanted].sort()]);
  });

  it('refuses what is not there, is of another database or of another project', async () => {
    const { id, post } = await fresh();
    const other = await fresh();
    const app = await newApplication();
    const stranger = await service.newProject();
    const foreign = await service.call('POST', '/v2/applications', {
      body: { name: 'foreign', source: { type: 'template', template: 'static-site' } },
      key: stranger.key,
      project: stranger.id,
    });
    const [theirs] = (await other.get('endpoints')).body.data;
    const [user] = (await other.get('users')).body.data;
    const bodies: [string, Record<string, unknown>][] = [
      ['application_id', { application_id: MISSING }],
      ['application_id', { application_id: foreign.body.id }],
      ['application_id', { application_id: id }],
      ['endpoint_id', { endpoint_id: theirs.id }],
      ['endpoint_id', { endpoint_id: 'x' }],
      ['user_id', { user_id: user.id }],
      ['user_id', { user_id: theirs.id }],
    ];
    for (const [field, body] of bodies) {
      expect(await post('attachments', { application_id: app, ...body })).toMatchObject({
        status: 422,
        body: { code: 'reference_not_found', field },
      });
    }
    expect(await rowsOf(app)).toEqual([]);
  });

  it('refuses names that belong to the platform', async () => {
    const { post } = await fresh();
    expect(await post('attachments', { application_id: await newApplication(), env_prefix: 'SVC' })).toMatchObject({
      status: 422,
      body: { code: 'env_key_reserved' },
    });
  });

  it('refuses what would overwrite a variable, and writes none then', async () => {
    const { post } = await fresh();
    const app = await newApplication();
    await service.call('PUT', `/v2/applications/${app}/env/DATABASE_PORT`, { body: { value: '1' } });
    await service.call('PUT', `/v2/applications/${app}/env/DATABASE_HOST`, { body: { value: 'x' } });
    expect(await post('attachments', { application_id: app })).toMatchObject({
      status: 409,
      body: { code: 'env_key_conflict', keys: ['DATABASE_HOST', 'DATABASE_PORT'] },
    });
    expect((await rowsOf(app)).map(({ key }) => key)).toEqual(['DATABASE_HOST', 'DATABASE_PORT']);
    expect((await post('attachments', { application_id: app, env_prefix: 'MAIN_DATABASE' })).status).toBe(201);
  });

  it('two databases need two prefixes', async () => {
    const [one, two] = [await fresh(), await fresh()];
    const app = await newApplication();
    await one.post('attachments', { application_id: app });
    expect(await two.post('attachments', { application_id: app })).toMatchObject({
      status: 409,
      body: { code: 'env_key_conflict' },
    });
    expect((await two.post('attachments', { application_id: app, env_prefix: 'SECOND' })).status).toBe(201);
    expect(Object.keys(await environment(service, app))).toHaveLength(12);
  });

  it('is possible once', async () => {
    const { post } = await fresh();
    const app = await newApplication();
    const { id } = (await post('attachments', { application_id: app })).body;
    expect(await post('attachments', { application_id: app, env_prefix: 'OTHER' })).toMatchObject({
      status: 409,
      body: { code: 'already_exists', resource_id: id },
    });
  });

  it('is refused where the environment has no room', async () => {
    const { post } = await fresh();
    const app = await newApplication();
    await service.sql(
      `insert into environment_variables (id, project_id, application_id, key, value, value_hash, created_at,
        updated_at)
        select 'env_' || substr(md5(n || $1), 1, 26), $2, $1, 'KEY_' || n, '', '', now(), now()
          from generate_series(1, 495) as n`,
      [app, service.project],
    );
    expect(await post('attachments', { application_id: app })).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', used: 495, limit: 500 },
    });
    expect((await rowsOf(app)).length).toBe(495);
  });

  it('is whole or nothing among those who come at once', async () => {
    const one = await fresh();
    const two = await fresh();
    const app = await newApplication();
    const put = service.call('PUT', `/v2/applications/${app}/env/DATABASE_NAME`, { body: { value: 'mine' } });
    const answers = await Promise.all([
      one.post('attachments', { application_id: app }),
      one.post('attachments', { application_id: app }),
      two.post('attachments', { application_id: app }),
      put,
    ]);
    const made = answers.slice(0, 3).filter(({ status }) => status === 201);
    expect(
      answers
        .slice(0, 3)
        .map(({ status }) => status)
        .every((status) => [201, 409].includes(status)),
    ).toBe(true);
    const rows = await rowsOf(app);
    expect([rows.length, new Set(rows.map(({ managed_by }) => managed_by)).size]).toEqual([made.length ? 6 : 1, 1]);
  });

  it('is made once where the request comes twice', async () => {
    const { post, get } = await fresh();
    const headers = { 'Idempotency-Key': 'attachment-1' };
    const body = { application_id: await newApplication() };
    const [first, second] = [await post('attachments', body, headers), await post('attachments', body, headers)];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect((await get('attachments')).body.data).toHaveLength(1);
  });
});

describe('following', () => {
  it('a new password of the default user comes into the variables, and into no others', async () => {
    const { id, post } = await fresh();
    const [app, beside] = [await newApplication(), await newApplication()];
    await post('attachments', { application_id: app });
    const user = (await post('users', { username: 'other' })).body;
    await post('attachments', { application_id: beside, user_id: user.id });
    const before = await rowsOf(beside);
    const { password } = (await service.call('POST', `/v2/databases/${id}/credentials/rotate`)).body;
    expect(await environment(service, app)).toMatchObject({
      DATABASE_PASSWORD: password,
      DATABASE_URL: expect.stringContaining(`:${password}@`),
    });
    expect(await rowsOf(beside)).toEqual(before);
    const rotated = (await post(`users/${user.id}/rotate`)).body;
    expect((await environment(service, beside)).DATABASE_PASSWORD).toBe(rotated.password);
  });
});

describe('detaching', () => {
  it('takes its variables along, and nothing else', async () => {
    const { post, remove, get } = await fresh();
    const app = await newApplication();
    await service.call('PUT', `/v2/applications/${app}/env/DATABASE_POOL`, { body: { value: '5' } });
    const { id } = (await post('attachments', { application_id: app })).body;
    expect((await remove('attachments', id)).status).toBe(204);
    expect(await environment(service, app)).toEqual({ DATABASE_POOL: '5' });
    expect([(await get('attachments', id)).status, (await remove('attachments', id)).status]).toEqual([404, 404]);
    expect((await post('attachments', { application_id: app })).status).toBe(201);
  });

  it('a database can be deleted when nothing is attached any more', async () => {
    const { id, post, remove } = await fresh();
    const made = (await post('attachments', { application_id: await newApplication() })).body;
    expect(await service.call('DELETE', `/v2/databases/${id}`)).toMatchObject({
      status: 409,
      body: { code: 'resource_in_use', dependents: [{ type: 'database_attachment', id: made.id }] },
    });
    await remove('attachments', made.id);
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
  });

  it('an application takes its attachments along', async () => {
    const { id, post, get } = await fresh();
    const app = await newApplication();
    await post('attachments', { application_id: app });
    expect((await service.call('DELETE', `/v2/applications/${app}`)).status).toBe(204);
    expect([(await get('attachments')).body.data, await rowsOf(app)]).toEqual([[], []]);
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
  });

  it('an application that goes meanwhile gets nothing', async () => {
    const { id, post, get } = await fresh();
    for (let round = 0; round < 5; round += 1) {
      const app = await newApplication();
      const [attached, deleted] = await Promise.all([
        post('attachments', { application_id: app }),
        service.call('DELETE', `/v2/applications/${app}`),
      ]);
      expect([
        [201, 204],
        [422, 204],
      ]).toContainEqual([attached.status, deleted.status]);
      expect([await rowsOf(app), (await get('attachments')).body.data]).toEqual([[], []]);
    }
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
  });
});

describe('lists', () => {
  it('of a database and of an application have filters, sorts and pages', async () => {
    const [one, two] = [await fresh(), await fresh()];
    const [app, beside] = [await newApplication(), await newApplication()];
    await one.post('attachments', { application_id: app, env_prefix: 'BBB' });
    await two.post('attachments', { application_id: app, env_prefix: 'AAA' });
    await one.post('attachments', { application_id: beside, env_prefix: 'CCC' });
    const prefixes = async (place: string): Promise<string[]> => {
      const { status, body } = await service.call('GET', place);
      expect([status, body.code]).toEqual([200, undefined]);
      return body.data.map(({ env_prefix }: { env_prefix: string }) => env_prefix);
    };
    expect(await prefixes(`/v2/databases/${one.id}/attachments`)).toEqual(['CCC', 'BBB']);
    expect(await prefixes(`/v2/databases/${one.id}/attachments?application_id=${app}`)).toEqual(['BBB']);
    expect(await prefixes(`/v2/applications/${app}/attachments?sort=env_prefix`)).toEqual(['AAA', 'BBB']);
    expect(await prefixes(`/v2/applications/${app}/attachments?database_id=${two.id}`)).toEqual(['AAA']);
    const { next_cursor } = (await service.call('GET', `/v2/applications/${app}/attachments?limit=1`)).body;
    expect(await prefixes(`/v2/applications/${app}/attachments?limit=1&cursor=${next_cursor}`)).toEqual(['BBB']);
    expect((await service.call('GET', `/v2/applications/${MISSING}/attachments`)).status).toBe(404);
  });

  it('are relations on the other face', async () => {
    const { id, post } = await fresh();
    const app = await newApplication();
    await post('attachments', { application_id: app });
    const answer = await service.graphql(
      `query ($id: ID!) { getApplication(id: $id) { attachments {
        env_prefix variables database { id } application { id } } } }`,
      { id: app },
    );
    expect([answer.errors, answer.data.getApplication.attachments]).toEqual([
      undefined,
      [expect.objectContaining({ env_prefix: 'DATABASE', database: { id }, application: { id: app } })],
    ]);
  });
});

test('nothing of it is for other projects, other databases or keys that may only read', async () => {
  const { id, post, get } = await fresh();
  const made = (await post('attachments', { application_id: await newApplication() })).body;
  const other = await service.newProject();
  const beside = await fresh();
  const place = `/v2/databases/${id}/attachments/${made.id}`;
  for (const method of ['GET', 'DELETE']) {
    expect((await service.call(method, place, { key: other.key, project: other.id })).status).toBe(404);
    expect((await service.call(method, `/v2/databases/${beside.id}/attachments/${made.id}`)).status).toBe(404);
  }
  const reader = await service.mintKey({ scopes: ['read'] });
  expect((await service.call('GET', place, { key: reader })).status).toBe(200);
  expect(await service.call('DELETE', place, { key: reader })).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope' },
  });
  expect((await get('attachments')).body.data).toHaveLength(1);
});
