// Databases attached to applications: variables that come, follow and go as a whole (docs/contract/resources.md §9.5).
import { endpoint, environment } from '../support/databases/database_children';
import { type Answer } from '../support/service';
import {
  fresh,
  MISSING,
  newApplication,
  rowsOf,
  service,
  setUpAttachments,
} from '../support/databases/database_attachment_cases';

setUpAttachments();

const credentials = async (id: string): Promise<Answer['body']> =>
  (await service.call('GET', `/v2/databases/${id}/credentials`)).body;

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
      body: { name: 'foreign', source: { type: 'preset', preset: 'static-site' } },
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
