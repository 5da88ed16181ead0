// Users of a database: made, listed, rotated, removed (docs/contract/resources.md §9.7).
import { database, describeHost, setStatus } from '../support/databases/databases';
import { startService, type Answer, type TestService } from '../support/service';

const PASSWORD = /^[A-Za-z0-9_-]{32}$/;
let service: TestService;
let parent: string;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": null, "database_storage_gb": null}' } });
  await describeHost(service);
  parent = (await database(service)).id;
});

afterAll(() => service?.close());

const users = (id = parent): string => `/v2/databases/${id}/users`;
const post = (body: Record<string, unknown>, id = parent): Promise<Answer> => service.call('POST', users(id), { body });
const list = async (query = '', id = parent): Promise<Answer['body'][]> =>
  (await service.call('GET', `${users(id)}?${query}`)).body.data;
const generation = async (id = parent): Promise<number> =>
  (await service.sql('select generation from databases where id = $1', [id]))[0].generation;

it('every database has one that is an administrator', async () => {
  expect(await list()).toEqual([
    {
      id: expect.stringMatching(/^dbu_/),
      database_id: parent,
      username: 'app',
      access: 'admin',
      is_default: true,
      password: null,
      previous_password_valid_until: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    },
  ]);
});

it('is made with a password that only this answer shows, and the server is told', async () => {
  const before = await generation();
  const made = await post({ username: 'reports' });
  expect([made.status, made.headers.get('location')]).toEqual([201, `${service.url}${users()}/${made.body.id}`]);
  expect(made.body).toMatchObject({
    database_id: parent,
    username: 'reports',
    access: 'read_write',
    is_default: false,
    password: expect.stringMatching(PASSWORD),
  });
  expect(await generation()).toBe(before + 1);
  const { body } = await service.call('GET', `${users()}/${made.body.id}`);
  expect(body).toEqual({ ...made.body, password: null });
  const rows = await service.sql('select * from database_users where id = $1', [made.body.id]);
  expect([rows[0].password.startsWith('v1.'), JSON.stringify(rows).includes(made.body.password)]).toEqual([
    true,
    false,
  ]);
});

it('has names once in a database, also under a race', async () => {
  const answers = await Promise.all(Array.from({ length: 5 }, () => post({ username: 'racing' })));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
  for (const { status, body } of answers) if (status === 409) expect(body.code).toBe('already_exists');
  expect((await post({ username: 'racing' }, (await database(service)).id)).status).toBe(201);
});

it.each(['postgres', 'root', 'default', 'pg_monitor', 'platform_admin', 'Reports', '1st', 'a-b', 'x'.repeat(32), ''])(
  'refuses the name %j',
  async (username) => {
    const answer = await post({ username });
    expect([answer.status, answer.body.code, answer.body.errors[0].field]).toEqual([
      422,
      'validation_failed',
      'username',
    ]);
  },
);

it('refuses other fields and other kinds of access', async () => {
  expect((await post({ username: 'x', access: 'owner' })).body.errors).toEqual([
    expect.objectContaining({ field: 'access', code: 'not_in_enum' }),
  ]);
  expect((await post({ username: 'x', password: 'mine' })).body.errors).toEqual([
    expect.objectContaining({ field: 'password', code: 'immutable' }),
  ]);
  expect((await post({ username: 'x', is_default: true })).body.errors).toEqual([
    expect.objectContaining({ field: 'is_default', code: 'immutable' }),
  ]);
});

it('needs a database that has not failed', async () => {
  const { id } = await database(service, {}, 'failed');
  expect(await post({ username: 'x' }, id)).toMatchObject({
    status: 409,
    body: { code: 'invalid_state', resource_status: 'failed' },
  });
  await setStatus(service, id, 'stopped');
  expect((await post({ username: 'x' }, id)).status).toBe(201);
});

it('lists by name and access', async () => {
  const { id } = await database(service);
  for (const [username, access] of [
    ['zoe', 'read_only'],
    ['bob', 'admin'],
  ])
    await post({ username, access }, id);
  const names = async (query: string): Promise<string[]> => (await list(query, id)).map(({ username }) => username);
  expect(await names('')).toEqual(['bob', 'zoe', 'app']);
  expect(await names('sort=username')).toEqual(['app', 'bob', 'zoe']);
  expect(await names('sort=-username&limit=1')).toEqual(['zoe']);
  expect(await names('username=bob')).toEqual(['bob']);
  expect(await names('access=admin')).toEqual(['bob', 'app']);
});

it('is rotated on an available database only', async () => {
  const { id } = await database(service);
  const { body: made } = await post({ username: 'reports' }, id);
  const rotate = (): Promise<Answer> => service.call('POST', `${users(id)}/${made.id}/rotate`);
  const rotated = await rotate();
  expect([rotated.status, rotated.body]).toEqual([
    200,
    { ...made, password: expect.stringMatching(PASSWORD), updated_at: expect.any(String) },
  ]);
  expect(rotated.body.password).not.toBe(made.password);
  await setStatus(service, id, 'stopped');
  expect(await rotate()).toMatchObject({ status: 409, body: { code: 'invalid_state' } });
});

it('rotating the default user is rotating the credentials', async () => {
  const { id } = await database(service);
  const [user] = await list('', id);
  const { body } = await service.call('POST', `${users(id)}/${user.id}/rotate`);
  expect((await service.call('GET', `/v2/databases/${id}/credentials`)).body.password).toBe(body.password);
});

it('is removed, except for the default one', async () => {
  const { id } = await database(service);
  const { body: made } = await post({ username: 'reports' }, id);
  const [app] = await list('username=app', id);
  expect(await service.call('DELETE', `${users(id)}/${app.id}`)).toMatchObject({
    status: 409,
    body: { code: 'resource_protected' },
  });
  const before = await generation(id);
  expect((await service.call('DELETE', `${users(id)}/${made.id}`)).status).toBe(204);
  expect(await generation(id)).toBe(before + 1);
  for (const [method, place] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
  ])
    expect((await service.call(method as string, `${users(id)}/${made.id}${place}`)).status).toBe(404);
  expect((await post({ username: 'reports' }, id)).status).toBe(201);
});

it('is that of its database and its project', async () => {
  const { id } = await database(service);
  const [user] = await list('', id);
  expect((await service.call('GET', `${users()}/${user.id}`)).status).toBe(404);
  expect((await service.call('POST', `${users()}/${user.id}/rotate`)).status).toBe(404);
  const other = await service.newProject();
  for (const place of [users(id), `${users(id)}/${user.id}`])
    expect((await service.call('GET', place, { key: other.key, project: other.id })).status).toBe(404);
});

it('there are at most 50', async () => {
  const { id } = await database(service);
  await service.sql(
    `insert into database_users (id, project_id, database_id, username, access, password, created_at, updated_at)
      select 'dbu_' || lpad(n::text, 26, '0'), $2, $1, 'u' || n, 'read_only', '', now(), now()
        from generate_series(1, 48) as n`,
    [id, service.project],
  );
  const answers = await Promise.all([post({ username: 'one' }, id), post({ username: 'two' }, id)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 403]);
  expect(answers.find(({ status }) => status === 403)?.body).toMatchObject({
    code: 'quota_exceeded',
    resource: 'database_users',
    used: 50,
    limit: 50,
  });
});

it('GraphQL does the same, and leads to the database', async () => {
  const { data } = await service.graphql(
    `mutation ($id: ID!) { createDatabaseUser(id: $id, input: { username: "graph" }) {
      username password database { id name } } }`,
    { id: parent },
  );
  expect(data.createDatabaseUser).toMatchObject({
    username: 'graph',
    password: expect.stringMatching(PASSWORD),
    database: { id: parent },
  });
});
