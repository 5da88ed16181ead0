// Credentials of a database and their rotation (docs/contract/resources.md §9.2).
import { database, describeHost, setStatus } from '../support/databases/databases';
import { startService, type Answer, type TestService } from '../support/service';
import { withConfig } from '../support/config';

const PASSWORD = /^[A-Za-z0-9_-]{32}$/;
let service: TestService;

beforeAll(async () => {
  service = await startService({
    settings: {
      QUOTAS: '{"databases": null, "database_storage_gb": null}',
      ...withConfig({ operationWaitSeconds: 5 }),
    },
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

describe('credentials', () => {
  it.each([
    [
      'postgresql',
      { database_name: 'shop' },
      /^postgresql:\/\/app:([\w-]{32})@127\.0\.0\.1:(\d+)\/shop\?sslmode=require$/,
    ],
    ['mariadb', {}, /^mysql:\/\/app:([\w-]{32})@127\.0\.0\.1:(\d+)\/app$/],
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
        previous_password_valid_until: null,
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
