// Databases copied, changed and deleted as rows (docs/contract/resources.md §9.1).
import { backup, database, newName, setStatus, setWindow } from '../support/databases/databases';
import { type Answer } from '../support/service';
import { errorsOf, MISSING, post, service, setUpDatabases } from '../support/databases/database_cases';

setUpDatabases();

const patch = (id: string, body: unknown, headers = {}): Promise<Answer> =>
  service.call('PATCH', `/v2/databases/${id}`, { body, headers });

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

  it('can be made of every backup of a deleted database that is kept', async () => {
    const { id } = await database(service, { storage_gb: 2 });
    const [older, last] = [await backup(service, id), await backup(service, id)].sort() as [string, string];
    expect((await service.call('DELETE', `/v2/databases/${id}`)).status).toBe(204);
    expect((await post({ restore_from: { database_id: id, backup_id: last } })).body).toMatchObject({
      storage_gb: 2,
      database_name: 'app',
    });
    expect((await post({ restore_from: { database_id: id, backup_id: older } })).status).toBe(201);
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
    const taken = (await post({})).body.name;
    expect(await patch(made.id, { name: taken })).toMatchObject({ status: 409, body: { code: 'name_taken' } });
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
