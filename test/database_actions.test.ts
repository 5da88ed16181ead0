// What moves a database: start, stop, restart, upgrade, restore; its credentials and their rotation
// (docs/contract/resources.md §9.1,
// 9.2).
import { backup, database, describeHost, setStatus, setWindow } from './support/databases';
import { replica } from './support/database_children';
import { startService, type Answer, type TestService } from './support/service';

const PASSWORD = /^[A-Za-z0-9_-]{32}$/;
const STATES = [
  'provisioning',
  'available',
  'updating',
  'upgrading',
  'restoring',
  'restarting',
  'stopping',
  'stopped',
  'starting',
  'failed',
];
const SETTLED = ['available', 'stopped', 'failed'];
let service: TestService;

beforeAll(async () => {
  service = await startService({
    settings: { QUOTAS: '{"databases": null, "database_storage_gb": null}', OPERATION_WAIT_SECONDS: '5' },
  });
  await describeHost(service);
});

afterAll(() => service?.close());

const act = (id: string, action: string, body?: unknown, options = {}): Promise<Answer> =>
  service.call('POST', `/v2/databases/${id}/${action}`, { body, ...options });
const row = async (id: string): Promise<Answer['body']> =>
  (await service.sql('select * from databases where id = $1', [id]))[0];
const credentials = (id: string, options = {}): Promise<Answer> =>
  service.call('GET', `/v2/databases/${id}/credentials`, options);

/** Stands in for the job: what it writes once the server has the passwords. */
const apply = (id: string): Promise<unknown> =>
  service.sql('update database_users set applied_version = version where database_id = $1', [id]);

describe('the actions', () => {
  const actions: [action: string, from: string, to: string, running: boolean][] = [
    ['start', 'stopped', 'starting', true],
    ['stop', 'available', 'stopping', false],
    ['restart', 'available', 'restarting', true],
  ];

  it.each(actions)('%s leads from %s to %s', async (action, from, to, running) => {
    const { id } = await database(service, {}, from);
    const answer = await act(id, action);
    expect([answer.status, answer.body]).toEqual([
      202,
      expect.objectContaining({ id, status: to, status_reason: null }),
    ]);
    expect(await row(id)).toMatchObject({ status: to, running });
    expect(await act(id, action)).toMatchObject({ status: 409, body: { code: 'resource_busy', resource_status: to } });
  });

  it.each(actions)('%s needs %s', async (action, from) => {
    const { id } = await database(service);
    for (const status of STATES.filter((state) => state !== from)) {
      await setStatus(service, id, status);
      const code = SETTLED.includes(status) ? 'invalid_state' : 'resource_busy';
      expect(await act(id, action)).toMatchObject({ status: 409, body: { code, resource_status: status } });
    }
  });

  it('take no body, and nothing that they do not know', async () => {
    const { id } = await database(service);
    for (const action of ['start', 'stop', 'restart'])
      expect(await act(id, action, { force: true })).toMatchObject({
        status: 422,
        body: { code: 'validation_failed' },
      });
    expect((await act('db_01h455vb4pex5vsknk084sn02q', 'stop')).body.code).toBe('not_found');
  });

  it('of two at once, one counts', async () => {
    const { id } = await database(service);
    const answers = await Promise.all([act(id, 'stop'), act(id, 'restart'), act(id, 'stop'), act(id, 'restart')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409]);
  });

  it('answer a repeated key with what they did', async () => {
    const { id } = await database(service);
    const first = await act(id, 'stop', undefined, { headers: { 'Idempotency-Key': 'stop-it' } });
    const again = await act(id, 'stop', undefined, { headers: { 'Idempotency-Key': 'stop-it' } });
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body]);
  });
});

describe('upgrade', () => {
  it('goes to a newer version of the engine', async () => {
    const { id } = await database(service, { engine_version: '16' });
    expect((await act(id, 'upgrade', { engine_version: '18' })).body).toMatchObject({
      status: 'upgrading',
      engine_version: '16',
    });
    expect(await row(id)).toMatchObject({ wanted_version: '18' });
    expect(await act(id, 'upgrade', { engine_version: '17' })).toMatchObject({
      status: 409,
      body: { code: 'resource_busy' },
    });
  });

  it.each([
    ['15', ['18']],
    ['17', ['18']],
    ['nonsense', ['18']],
  ])('refuses %s', async (engine_version, available_versions) => {
    const { id } = await database(service, { engine_version: '17' });
    expect(await act(id, 'upgrade', { engine_version })).toMatchObject({
      status: 422,
      body: { code: 'engine_version_unsupported', available_versions },
    });
  });

  it('refuses a version in which its replicas could not be made anew', async () => {
    const { id } = await database(service, { engine_version: '16' });
    await replica(service, id);
    expect(await act(id, 'upgrade', { engine_version: '18' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'replicas' },
    });
    expect((await act(id, 'upgrade', { engine_version: '17' })).status).toBe(202);
  });

  it('compares versions as numbers, and needs an available database', async () => {
    const { id } = await database(service, { engine: 'mariadb', engine_version: '10.6' }, 'stopped');
    expect(await act(id, 'upgrade', { engine_version: '10.11' })).toMatchObject({
      status: 409,
      body: { code: 'invalid_state' },
    });
    await setStatus(service, id, 'available');
    expect((await act(id, 'upgrade', { engine_version: '10.11' })).status).toBe(202);
  });
});

describe('restore', () => {
  it('takes a backup or a moment, not both and not neither', async () => {
    const { id } = await database(service);
    const backup_id = await backup(service, id);
    await setWindow(service, id, '2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z');
    for (const body of [{}, { backup_id, point_in_time: '2026-01-01T12:00:00Z' }])
      expect((await act(id, 'restore', body)).body).toMatchObject({ code: 'validation_failed' });
    expect((await act(id, 'restore', { backup_id })).body).toMatchObject({ status: 'restoring' });
    expect(await row(id)).toMatchObject({ restoring_from: { backup_id, point_in_time: null } });
    await setStatus(service, id, 'available');
    expect((await act(id, 'restore', { point_in_time: '2026-01-01T12:00:00Z' })).status).toBe(202);
    expect(await row(id)).toMatchObject({
      restoring_from: { backup_id: null, point_in_time: '2026-01-01T12:00:00.000Z' },
    });
    expect(await act(id, 'restore', { backup_id })).toMatchObject({ status: 409, body: { code: 'resource_busy' } });
  });

  it('needs a whole backup of the same database and of its version, and a moment that is kept', async () => {
    const [one, two] = [await database(service, { engine_version: '16' }), await database(service)];
    const [running, old, foreign] = [
      await backup(service, one.id, 'running'),
      await backup(service, one.id),
      await backup(service, two.id),
    ];
    expect(await act(one.id, 'restore', { backup_id: running })).toMatchObject({
      status: 409,
      body: { code: 'backup_not_ready' },
    });
    expect(await act(one.id, 'restore', { backup_id: foreign })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'backup_id' },
    });
    expect(await act(one.id, 'restore', { point_in_time: '2026-01-01T12:00:00Z' })).toMatchObject({
      status: 422,
      body: { code: 'point_in_time_unavailable' },
    });
    await service.sql(`update databases set engine_version = '17' where id = $1`, [one.id]);
    expect(await act(one.id, 'restore', { backup_id: old })).toMatchObject({
      status: 422,
      body: { code: 'engine_version_unsupported' },
    });
    const { id } = await database(service, { engine: 'mariadb' });
    expect(await act(id, 'restore', { point_in_time: '2026-01-01T12:00:00Z' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', feature: 'point_in_time' },
    });
  });
});

describe('credentials', () => {
  it.each([
    [
      'postgresql',
      { database_name: 'shop' },
      /^postgresql:\/\/app:([\w-]{32})@127\.0\.0\.1:(\d+)\/shop\?sslmode=require$/,
    ],
    [
      'mariadb',
      {},
      /^mysql:\/\/app:([\w-]{32})@127\.0\.0\.1:(\d+)\/app(?:[?&]ssl=%7B%22rejectUnauthorized%22%3Atrue%7D){2}$/,
    ],
    ['redis', {}, /^rediss:\/\/app:([\w-]{32})@127\.0\.0\.1:(\d+)$/],
  ])('of %s say how to connect', async (engine, body, form) => {
    const made = await database(service, { engine, ...body });
    const { status, body: shown } = await credentials(made.id);
    expect([status, shown]).toEqual([
      200,
      {
        username: 'app',
        password: expect.stringMatching(PASSWORD),
        database_name: made.database_name,
        endpoints: [
          {
            endpoint_id: expect.stringMatching(/^dbe_/),
            name: 'default',
            access: 'private',
            host: '127.0.0.1',
            port: expect.any(Number),
            connection_string: expect.stringMatching(form),
          },
        ],
      },
    ]);
    const [, password, port] = form.exec(shown.endpoints[0].connection_string) ?? [];
    expect([password, Number(port)]).toEqual([shown.password, shown.endpoints[0].port]);
  });

  it('need env:read, and stay in their project', async () => {
    const { id } = await database(service);
    expect((await credentials(id, { key: await service.mintKey({ scopes: ['read', 'write'] }) })).body.code).toBe(
      'insufficient_scope',
    );
    expect((await credentials(id, { key: await service.mintKey({ scopes: ['env:read'] }) })).status).toBe(200);
    const other = await service.newProject();
    expect((await credentials(id, { key: other.key, project: other.id })).status).toBe(404);
  });

  it('are rotated when the server has the new password', async () => {
    const { id } = await database(service);
    await apply(id);
    const before = (await credentials(id)).body;
    let applied = false;
    const rotating = act(id, 'credentials/rotate').then((answer) => [answer, applied] as const);
    while (
      !(await service.sql('select 1 from database_users where database_id = $1 and applied_version < version', [id]))
        .length
    );
    const { generation } = await row(id);
    expect(generation).toBeGreaterThan(1);
    applied = true;
    await apply(id);
    const [{ status, body }, waited] = await rotating;
    expect([status, waited]).toEqual([200, true]);
    expect(body.password).toMatch(PASSWORD);
    expect(body.password).not.toBe(before.password);
    expect((await credentials(id)).body).toEqual(body);
  });

  it('over GraphQL wait for the server too', async () => {
    const { id } = await database(service);
    await apply(id);
    const [answer] = await Promise.all([
      service.graphql('mutation ($id: ID!) { rotateDatabaseCredentials(id: $id) { password } }', { id }),
      new Promise((resolve) => setTimeout(resolve, 300)).then(() => apply(id)),
    ]);
    expect(answer.data.rotateDatabaseCredentials.password).toBe((await credentials(id)).body.password);
  });

  it('are rotated of an available database only, and by no reader', async () => {
    const { id } = await database(service, {}, 'stopped');
    expect(await act(id, 'credentials/rotate')).toMatchObject({
      status: 409,
      body: { code: 'invalid_state', allowed_statuses: ['available'] },
    });
    await setStatus(service, id, 'starting');
    expect(await act(id, 'credentials/rotate')).toMatchObject({ status: 409, body: { code: 'resource_busy' } });
    expect(
      (await act(id, 'credentials/rotate', undefined, { key: await service.mintKey({ scopes: ['read', 'env:read'] }) }))
        .body.code,
    ).toBe('insufficient_scope');
  });

  it('stand in no other answer, no activity and no table', async () => {
    const { id } = await database(service);
    const secret = (await credentials(id)).body.password;
    const texts = await Promise.all(
      [
        '/v2/databases?limit=100',
        `/v2/databases/${id}`,
        `/v2/databases/${id}/users`,
        `/v2/projects/${service.project}/activity?limit=100`,
      ].map((place) => service.call('GET', place)),
    );
    for (const { status, text } of texts) expect([status, text.includes(secret)]).toEqual([200, false]);
    expect(texts[3]?.text).toContain('database.created');
    for (const table of ['databases', 'database_users', 'activity', 'idempotency_records']) {
      expect(await service.sql(`select 1 from ${table} t where t::text like '%' || $1 || '%'`, [secret])).toEqual([]);
    }
  });
});
