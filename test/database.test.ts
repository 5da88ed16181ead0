// Databases as rows: fields, rules, references, room, prices, filters (docs/contract/resources.md §9.1). What moves
// them: database_actions.test.ts.
import { backup, database, describeHost, newName, setStatus, setWindow } from './support/databases';
import { startService, type Answer, type TestService } from './support/service';

const MISSING = 'db_01h455vb4pex5vsknk084sn02q';
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
  await describeHost(service);
});

afterAll(() => service?.close());

const post = (body: Record<string, unknown>): Promise<Answer> =>
  service.call('POST', '/v2/databases', { body: { name: newName(), engine: 'postgresql', ...body } });
const patch = (id: string, body: unknown, headers = {}): Promise<Answer> =>
  service.call('PATCH', `/v2/databases/${id}`, { body, headers });
const get = async (id: string): Promise<Answer['body']> => (await service.call('GET', `/v2/databases/${id}`)).body;

function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

describe('creation', () => {
  it('answers everything that is promised', async () => {
    const made = await post({ name: 'orders' });
    expect([made.status, made.headers.get('location')]).toEqual([201, `${service.url}/v2/databases/${made.body.id}`]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^db_[0-9a-hjkmnp-tv-z]{26}$/),
      project_id: service.project,
      name: 'orders',
      engine: 'postgresql',
      engine_version: '17',
      database_package: 'dev-1vcpu-256mb',
      storage_gb: 1,
      region: 'local',
      database_name: 'app',
      username: 'app',
      backup_schedule: { enabled: true, hour_utc: 3, retention_days: 7 },
      maintenance_window: { weekday: 'sunday', hour_utc: 4 },
      deletion_protection: false,
      restore_from: null,
      nodes: 1,
      point_in_time_window: null,
      status: 'provisioning',
      status_reason: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: made.body.created_at,
    });
    expect(await get(made.body.id)).toEqual(made.body);
  });

  it('takes what is chosen', async () => {
    const wanted = {
      engine: 'mariadb',
      engine_version: '10.6',
      database_package: 's-1vcpu-1gb',
      storage_gb: 25,
      region: 'local',
      database_name: 'shop_1',
      deletion_protection: true,
      backup_schedule: { enabled: false, hour_utc: 23, retention_days: 35 },
      maintenance_window: { weekday: 'monday', hour_utc: 0 },
    };
    expect((await post(wanted)).body).toMatchObject(wanted);
  });

  it('gives key-value engines no name of a database', async () => {
    expect((await post({ engine: 'redis' })).body).toMatchObject({
      engine_version: '7.0',
      database_package: 'kv-1vcpu-256mb',
      database_name: null,
      username: 'app',
    });
    expect((await post({ engine: 'valkey', database_name: null })).body).toMatchObject({
      engine_version: '8.1',
      database_name: null,
    });
    expect(errorsOf(await post({ engine: 'redis', database_name: 'app' }))).toEqual([['database_name', 'depends_on']]);
  });

  it('has backups on only where the version can make them', async () => {
    expect((await post({ engine_version: '18' })).body.backup_schedule).toEqual({
      enabled: false,
      hour_utc: 3,
      retention_days: 7,
    });
    expect((await post({ backup_schedule: { hour_utc: 5 } })).body.backup_schedule).toEqual({
      enabled: true,
      hour_utc: 5,
      retention_days: 7,
    });
    expect(await post({ engine_version: '18', backup_schedule: { enabled: true } })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'backups' },
    });
  });

  it('gives each its own port, user of the system and secrets, sealed', async () => {
    const made = await Promise.all(Array.from({ length: 6 }, () => post({})));
    expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201, 201]);
    const rows = await service.sql(
      'select d.*, u.password from databases d join database_users u on u.database_id = d.id where d.id = any($1)',
      [made.map(({ body }) => body.id)],
    );
    for (const column of ['port', 'tenant', 'admin_password', 'password', 'server_id'])
      expect([column, new Set(rows.map((row) => row[column])).size]).toEqual([column, 6]);
    for (const row of rows) {
      expect([row.port >= 30_000 && row.port <= 30_999, row.server_id]).toEqual([true, row.id]);
      for (const sealed of [row.admin_password, row.password]) expect(sealed).toMatch(/^v1\./);
    }
    expect(await service.sql('select 1 from applications a join databases d on d.tenant = a.tenant')).toEqual([]);
  });

  it('works in the project of the path, and on one name in each', async () => {
    const other = await service.newProject();
    const made = await service.call('POST', `/v2/projects/${other.id}/databases`, {
      body: { name: 'orders', engine: 'redis' },
    });
    expect([made.status, made.body.project_id]).toEqual([201, other.id]);
    expect((await service.call('GET', `/v2/projects/${other.id}/databases`)).body.data).toEqual([made.body]);
    expect((await service.call('GET', `/v2/databases/${made.body.id}`)).status).toBe(404);
    expect((await service.call('DELETE', `/v2/databases/${made.body.id}`)).status).toBe(404);
  });

  const mistakes: [Record<string, unknown>, [string, string][]][] = [
    [
      { name: undefined, engine: undefined },
      [
        ['name', 'required'],
        ['engine', 'required'],
      ],
    ],
    [{ name: 'Orders' }, [['name', 'invalid_format']]],
    [{ storage_gb: 0 }, [['storage_gb', 'too_small']]],
    [{ storage_gb: 1.5 }, [['storage_gb', 'invalid_type']]],
    [{ database_package: 's-1vcpu-1gb', storage_gb: 9 }, [['storage_gb', 'too_small']]],
    [{ storage_gb: 11 }, [['storage_gb', 'too_large']]],
    [{ database_name: 'App' }, [['database_name', 'invalid_format']]],
    [{ database_name: 'postgres' }, [['database_name', 'invalid_format']]],
    [{ database_name: 'pg_mine' }, [['database_name', 'invalid_format']]],
    [
      { backup_schedule: { hour_utc: 24, retention_days: 36, when: 1 } },
      [
        ['backup_schedule.hour_utc', 'too_large'],
        ['backup_schedule.retention_days', 'too_large'],
        ['backup_schedule.when', 'unknown_field'],
      ],
    ],
    [
      { maintenance_window: { weekday: 'someday', hour_utc: -1 } },
      [
        ['maintenance_window.weekday', 'not_in_enum'],
        ['maintenance_window.hour_utc', 'too_small'],
      ],
    ],
    [{ restore_from: { database_id: MISSING } }, [['restore_from.backup_id', 'required']]],
    [
      { username: 'me', nodes: 3, status: 'available' },
      [
        ['username', 'immutable'],
        ['nodes', 'immutable'],
        ['status', 'immutable'],
      ],
    ],
    [
      { region: null, deletion_protection: null },
      [
        ['region', 'required'],
        ['deletion_protection', 'required'],
      ],
    ],
  ];

  it.each(mistakes)('refuses %j', async (body, wanted) => {
    expect(errorsOf(await post(body)).sort()).toEqual([...wanted].sort());
  });

  it('refuses what its references do not lead to', async () => {
    for (const [field, body] of [
      ['engine', { engine: 'oracle' }],
      ['region', { region: 'mars' }],
      ['database_package', { database_package: 'xxl' }],
    ] as const) {
      expect(await post(body)).toMatchObject({ status: 422, body: { code: 'reference_not_found', field } });
    }
    expect(await post({ engine_version: '9' })).toMatchObject({
      status: 422,
      body: { code: 'engine_version_unsupported', available_versions: ['18', '17', '16'] },
    });
    expect(await post({ database_package: 'kv-1vcpu-1gb' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'kv-1vcpu-1gb' },
    });
  });

  it('has names once in a project, also under a race', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, () => post({ name: 'racing' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409]);
    for (const { status, body } of answers)
      if (status === 409) expect(body).toMatchObject({ code: 'name_taken', field: 'name' });
  });

  it('happens once for one Idempotency-Key', async () => {
    const send = (): Promise<Answer> =>
      service.call('POST', '/v2/databases', {
        body: { name: 'once', engine: 'redis' },
        headers: { 'Idempotency-Key': 'make-one' },
      });
    const [first, second] = [await send(), await send()];
    expect([first.status, second.status, second.headers.get('idempotent-replayed')]).toEqual([201, 201, 'true']);
    expect(second.body).toEqual(first.body);
  });
});

describe('a copy', () => {
  it('has engine, version, size and names of the original', async () => {
    const original = await database(service, {
      engine_version: '16',
      database_package: 's-1vcpu-1gb',
      storage_gb: 30,
      database_name: 'shop',
    });
    const backup_id = await backup(service, original.id);
    const made = await post({ restore_from: { database_id: original.id, backup_id } });
    expect(made.body).toMatchObject({
      engine_version: '16',
      database_package: 's-1vcpu-1gb',
      storage_gb: 30,
      database_name: 'shop',
      restore_from: { database_id: original.id, backup_id, point_in_time: null },
      status: 'provisioning',
    });
    expect(
      (
        await post({
          restore_from: { database_id: original.id, backup_id },
          database_package: 's-1vcpu-2gb',
          storage_gb: 40,
        })
      ).body,
    ).toMatchObject({ database_package: 's-1vcpu-2gb', storage_gb: 40 });
    expect(await post({ restore_from: { database_id: original.id, backup_id }, storage_gb: 29 })).toMatchObject({
      status: 422,
      body: { code: 'storage_must_increase' },
    });
    expect(await post({ restore_from: { database_id: original.id, backup_id }, engine_version: '17' })).toMatchObject({
      status: 422,
      body: { code: 'engine_version_unsupported', available_versions: ['16'] },
    });
    expect(await post({ restore_from: { database_id: original.id, backup_id }, engine: 'redis' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported' },
    });
    expect(
      errorsOf(await post({ restore_from: { database_id: original.id, backup_id }, database_name: 'other' })),
    ).toEqual([['database_name', 'depends_on']]);
  });

  it('needs a whole backup of that database', async () => {
    const [original, other] = [await database(service), await database(service)];
    for (const status of ['pending', 'running', 'failed']) {
      expect(
        await post({
          restore_from: { database_id: original.id, backup_id: await backup(service, original.id, status) },
        }),
      ).toMatchObject({ status: 409, body: { code: 'backup_not_ready' } });
    }
    const foreign = await backup(service, other.id);
    expect(await post({ restore_from: { database_id: original.id, backup_id: foreign } })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'restore_from.backup_id' },
    });
    expect(await post({ restore_from: { database_id: MISSING, backup_id: foreign } })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'restore_from.database_id' },
    });
  });

  it('of a moment needs one within the window', async () => {
    const { id } = await database(service);
    const at = (point_in_time: string): Promise<Answer> => post({ restore_from: { database_id: id, point_in_time } });
    expect(await at('2026-01-01T12:00:00Z')).toMatchObject({
      status: 422,
      body: { code: 'point_in_time_unavailable' },
    });
    await setWindow(service, id, '2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z');
    expect(await at('2025-12-31T23:59:59.999Z')).toMatchObject({
      status: 422,
      body: {
        code: 'point_in_time_unavailable',
        earliest: '2026-01-01T00:00:00.000Z',
        latest: '2026-01-02T00:00:00.000Z',
      },
    });
    expect(await at('2026-01-02T00:00:00.001Z')).toMatchObject({ status: 422 });
    expect((await at('2026-01-02T01:00:00+01:00')).body).toMatchObject({
      restore_from: { database_id: id, backup_id: null, point_in_time: '2026-01-02T00:00:00.000Z' },
    });
    const { id: redis } = await database(service, { engine: 'redis' });
    expect(
      await post({ engine: 'redis', restore_from: { database_id: redis, point_in_time: '2026-01-01T12:00:00Z' } }),
    ).toMatchObject({ status: 422, body: { code: 'engine_feature_unsupported', feature: 'point_in_time' } });
  });

  it('can be made of the last backup of a deleted database', async () => {
    const { id } = await database(service, { storage_gb: 2 });
    const [older, last] = [await backup(service, id), await backup(service, id)].sort() as [string, string];
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
    expect((await post({ restore_from: { database_id: id, backup_id: last } })).body).toMatchObject({
      storage_gb: 2,
      database_name: 'app',
    });
    expect(await post({ restore_from: { database_id: id, backup_id: older } })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found' },
    });
    const [row] = await service.sql(
      "select expires_at > now() + interval '6 days' as kept from database_backups where id = $1",
      [last],
    );
    expect(row).toEqual({ kept: true });
  });
});

describe('change', () => {
  it('of name, schedules and protection holds at once in every settled state', async () => {
    for (const status of ['available', 'stopped', 'failed']) {
      const { id } = await database(service, {}, status);
      const name = newName();
      const changed = await patch(id, {
        name,
        deletion_protection: true,
        backup_schedule: { retention_days: 30 },
        maintenance_window: { weekday: 'friday' },
      });
      expect([changed.status, changed.body]).toEqual([
        200,
        expect.objectContaining({
          name,
          status,
          deletion_protection: true,
          backup_schedule: { enabled: true, hour_utc: 3, retention_days: 30 },
          maintenance_window: { weekday: 'friday', hour_utc: 4 },
        }),
      ]);
    }
  });

  it.each(['provisioning', 'updating', 'upgrading', 'restoring', 'restarting', 'stopping', 'starting'])(
    'waits while it is %s',
    async (status) => {
      const { id } = await database(service, {}, status);
      for (const body of [{ name: newName() }, { storage_gb: 2 }])
        expect(await patch(id, body)).toMatchObject({
          status: 409,
          body: { code: 'resource_busy', resource_status: status },
        });
    },
  );

  it('of the size needs an available one', async () => {
    const { id } = await database(service);
    expect((await patch(id, { storage_gb: 1, database_package: 'dev-1vcpu-256mb' })).body).toMatchObject({
      status: 'available',
    });
    expect((await patch(id, { storage_gb: 3 })).body).toMatchObject({ status: 'updating', storage_gb: 3 });
    await setStatus(service, id, 'available');
    expect(await patch(id, { storage_gb: 2 })).toMatchObject({ status: 422, body: { code: 'storage_must_increase' } });
    expect(errorsOf(await patch(id, { storage_gb: 11 }))).toEqual([['storage_gb', 'too_large']]);
    expect((await patch(id, { database_package: 's-1vcpu-1gb' })).body).toMatchObject({
      status: 'updating',
      database_package: 's-1vcpu-1gb',
      storage_gb: 10,
    });
    await setStatus(service, id, 'available');
    expect((await patch(id, { database_package: 'dev-1vcpu-256mb' })).body).toMatchObject({
      database_package: 'dev-1vcpu-256mb',
      storage_gb: 10,
    });
    for (const status of ['stopped', 'failed']) {
      await setStatus(service, id, status);
      expect(await patch(id, { database_package: 's-1vcpu-1gb' })).toMatchObject({
        status: 409,
        body: { code: 'invalid_state', resource_status: status, allowed_statuses: ['available'] },
      });
    }
  });

  it('refuses what does not fit, fixed fields, nothing, and a row that is another by now', async () => {
    const made = await database(service);
    expect(await patch(made.id, { database_package: 'xxl' })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'database_package' },
    });
    expect(await patch(made.id, { database_package: 'kv-1vcpu-1gb' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported' },
    });
    expect(errorsOf(await patch(made.id, {}))).toEqual([['', 'required']]);
    expect(
      errorsOf(await patch(made.id, { engine: 'redis', engine_version: '16', database_name: 'x' })).map(
        ([, code]) => code,
      ),
    ).toEqual(['immutable', 'immutable', 'immutable']);
    const { headers } = await service.call('GET', `/v2/databases/${made.id}`);
    const etag = headers.get('etag') as string;
    expect((await patch(made.id, { name: newName() }, { 'If-Match': etag })).status).toBe(200);
    expect(await patch(made.id, { name: newName() }, { 'If-Match': etag })).toMatchObject({
      status: 412,
      body: { code: 'precondition_failed' },
    });
    expect(await patch(made.id, { name: 'orders' })).toMatchObject({ status: 409, body: { code: 'name_taken' } });
  });
});

describe('deletion', () => {
  it('is refused while protected, then complete, from any state', async () => {
    const { id, name } = await database(service, { deletion_protection: true });
    expect(await service.call('DELETE', `/v2/databases/${id}`)).toMatchObject({
      status: 409,
      body: { code: 'deletion_protected' },
    });
    await patch(id, { deletion_protection: false });
    await setStatus(service, id, 'upgrading');
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
    for (const place of ['', '/credentials', '/users'])
      expect((await service.call('GET', `/v2/databases/${id}${place}`)).status).toBe(404);
    expect((await post({ name })).status).toBe(201);
    const [{ pending }] = await service.sql(
      'select count(*)::int as pending from database_endpoints where database_id = $1 and deleted_at is null',
      [id],
    );
    expect(pending).toBe(0);
  });
});
