// Databases as rows: fields, rules, references, room, prices, filters (docs/contract/resources.md §9.1). What moves
// them: database_actions.test.ts.
import { type Answer } from '../support/service';
import { errorsOf, MISSING, post, service, setUpDatabases } from '../support/databases/database_cases';

setUpDatabases();

const get = async (id: string): Promise<Answer['body']> => (await service.call('GET', `/v2/databases/${id}`)).body;

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
      ...{ proof_assertion: null, recovery_seconds: null, mask: null, unmasked_columns: [], preview_id: null },
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
