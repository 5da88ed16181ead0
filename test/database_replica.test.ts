// Read replicas: what they may be, what goes with them, and how one becomes a database (docs/contract/resources.md
// §9.3).
import type { ManagedDatabase } from '../models/database';
import { openAdminPassword } from '../models/database/credentials';
import { application, childrenOf, endpoint, replica, type Children } from './support/database_children';
import { backup, database, describeHost, setStatus } from './support/databases';
import { startService, type Answer, type TestService } from './support/service';

const MISSING = 'rep_01h455vb4pex5vsknk084sn02q';
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": 60, "database_storage_gb": 100000}' } });
  await describeHost(service);
});

afterAll(() => service?.close());

async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string }> {
  const { id } = await database(service, body);
  return { ...childrenOf(service, id), id };
}

function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

const rowOf = async (table: string, id: string): Promise<Record<string, unknown>> =>
  (await service.sql(`select * from ${table} where id = $1`, [id]))[0];

describe('creation', () => {
  it('answers everything that is promised; a server of its own stands behind it', async () => {
    const { id, post, get } = await fresh({ database_package: 's-1vcpu-1gb' });
    const made = await post('replicas', { name: 'reader' });
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      `${service.url}/v2/databases/${id}/replicas/${made.body.id}`,
    ]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^rep_[0-9a-hjkmnp-tv-z]{26}$/),
      database_id: id,
      name: 'reader',
      region: 'local',
      database_package: 's-1vcpu-1gb',
      replication_lag_seconds: null,
      status: 'provisioning',
      status_reason: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: made.body.created_at,
    });
    expect((await get('replicas', made.body.id)).body).toEqual(made.body);
    const [mine, primary] = [await rowOf('database_replicas', made.body.id), await rowOf('databases', id)];
    expect([mine.server_id, mine.nodes]).toEqual([made.body.id, 1]);
    for (const column of ['port', 'tenant'])
      expect([column, mine[column] === primary[column]]).toEqual([column, false]);
    const spans = await service.sql('select price_id, ended_at from usage_spans where resource_id = $1', [
      made.body.id,
    ]);
    expect(spans).toEqual([{ price_id: 's-1vcpu-1gb', ended_at: null }]);
  });

  it('may be larger than its database, not smaller', async () => {
    const { post } = await fresh({ database_package: 's-1vcpu-2gb' });
    expect(
      (await post('replicas', { name: 'larger', database_package: 'm-2vcpu-4gb', region: 'local' })).body
        .database_package,
    ).toBe('m-2vcpu-4gb');
    expect(errorsOf(await post('replicas', { name: 'smaller', database_package: 's-1vcpu-1gb' }))).toEqual([
      ['database_package', 'too_small'],
    ]);
    const { post: full } = await fresh({ database_package: 's-1vcpu-1gb', storage_gb: 100 });
    expect((await full('replicas', { name: 'same' })).status).toBe(201);
  });

  it('refuses what does not fit or is not there', async () => {
    const { post } = await fresh();
    expect(errorsOf(await post('replicas', {}))).toEqual([['name', 'required']]);
    expect(errorsOf(await post('replicas', { name: 'reader', region: null, database_package: null })).sort()).toEqual([
      ['database_package', 'required'],
      ['region', 'required'],
    ]);
    expect(errorsOf(await post('replicas', { name: 'reader', replication_lag_seconds: 0, port: 1 })).sort()).toEqual([
      ['port', 'unknown_field'],
      ['replication_lag_seconds', 'immutable'],
    ]);
    expect(await post('replicas', { name: 'reader', region: 'mars' })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'region' },
    });
    expect(await post('replicas', { name: 'reader', database_package: 'xxl' })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'database_package' },
    });
    expect(await post('replicas', { name: 'reader', database_package: 'kv-2vcpu-4gb' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', feature: 'kv-2vcpu-4gb' },
    });
    const { post: without } = await fresh({ engine_version: '18' });
    expect(await without('replicas', { name: 'reader' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'replicas' },
    });
  });

  it('needs an available database', async () => {
    const { id, post } = await fresh();
    for (const [status, code] of [
      ['provisioning', 'resource_busy'],
      ['restoring', 'resource_busy'],
      ['stopped', 'invalid_state'],
      ['failed', 'invalid_state'],
    ] as const) {
      await setStatus(service, id, status);
      expect(await post('replicas', { name: 'reader' })).toMatchObject({
        status: 409,
        body: { code, resource_status: status },
      });
    }
  });

  it('stops at five, also for those who come at once; names are free in other databases', async () => {
    const { post, remove, get } = await fresh();
    expect((await (await fresh()).post('replicas', { name: 'reader-0' })).status).toBe(201);
    const answers = await Promise.all(
      Array.from({ length: 7 }, (_, index) => post('replicas', { name: `reader-${index}` })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    expect(answers.find(({ status }) => status !== 201)).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', resource: 'replicas', used: 5, limit: 5 },
    });
    const [{ id, name }] = (await get('replicas')).body.data;
    expect((await remove('replicas', id)).status).toBe(204);
    expect((await post('replicas', { name })).status).toBe(201);
    await remove('replicas', (await get('replicas')).body.data[0].id);
    const other = (await get('replicas')).body.data[0].name;
    expect(await post('replicas', { name: other })).toMatchObject({
      status: 409,
      body: { code: 'name_taken', field: 'name' },
    });
  });

  it('is made once where the request comes twice', async () => {
    const { post, get } = await fresh();
    const headers = { 'Idempotency-Key': 'replica-1' };
    const [first, second] = [
      await post('replicas', { name: 'reader' }, headers),
      await post('replicas', { name: 'reader' }, headers),
    ];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect((await get('replicas')).body.data).toHaveLength(1);
  });
});

describe('changes', () => {
  it('a name at any time, a package when it is available', async () => {
    const { id, patch } = await fresh();
    const made = await replica(service, id);
    const resized = await patch('replicas', made.id, { name: 'bigger', database_package: 's-1vcpu-1gb' });
    expect(resized.body).toMatchObject({ name: 'bigger', database_package: 's-1vcpu-1gb', status: 'updating' });
    expect((await patch('replicas', made.id, { name: 'renamed', database_package: 's-1vcpu-1gb' })).body).toMatchObject(
      { name: 'renamed', status: 'updating' },
    );
    expect(await patch('replicas', made.id, { database_package: 'm-2vcpu-4gb' })).toMatchObject({
      status: 409,
      body: { code: 'resource_busy', resource_status: 'updating' },
    });
    await service.sql(`update database_replicas set status = 'failed' where id = $1`, [made.id]);
    expect(await patch('replicas', made.id, { database_package: 'm-2vcpu-4gb' })).toMatchObject({
      status: 409,
      body: { code: 'invalid_state', allowed_statuses: ['available'] },
    });
    const spans = await service.sql(
      'select price_id, ended_at is null as open from usage_spans where resource_id = $1 order by id',
      [made.id],
    );
    expect(spans).toEqual([
      { price_id: 'dev-1vcpu-256mb', open: false },
      { price_id: 's-1vcpu-1gb', open: true },
    ]);
  });

  it('refuses what does not fit', async () => {
    const { id, patch } = await fresh({ database_package: 's-1vcpu-1gb' });
    const made = await replica(service, id);
    await replica(service, id, { name: 'taken' });
    expect(errorsOf(await patch('replicas', made.id, {}))).toEqual([['', 'required']]);
    expect(errorsOf(await patch('replicas', made.id, { region: 'local', status: 'available' })).sort()).toEqual([
      ['region', 'immutable'],
      ['status', 'immutable'],
    ]);
    expect(errorsOf(await patch('replicas', made.id, { database_package: 'dev-1vcpu-256mb' }))).toEqual([
      ['database_package', 'too_small'],
    ]);
    expect(await patch('replicas', made.id, { name: 'taken' })).toMatchObject({
      status: 409,
      body: { code: 'name_taken' },
    });
    expect(await patch('replicas', made.id, { name: 'late' }, { 'If-Match': '"9"' })).toMatchObject({ status: 412 });
    expect((await patch('replicas', made.id, { name: 'in-time' }, { 'If-Match': '"1"' })).status).toBe(200);
  });
});

describe('deletion', () => {
  it('takes the endpoints along that lead to it alone, in any state but one', async () => {
    const { id, remove, get } = await fresh();
    const [gone, stays] = [
      await replica(service, id, { name: 'gone' }, 'failed'),
      await replica(service, id, { name: 'stays' }),
    ];
    const only = await endpoint(service, id, { name: 'only', target: 'replicas', replica_id: gone.id });
    await endpoint(service, id, { name: 'all', target: 'replicas' });
    await endpoint(service, id, { name: 'other', target: 'replicas', replica_id: stays.id });
    expect((await remove('replicas', gone.id)).status).toBe(204);
    expect([(await get('replicas', gone.id)).status, (await get('endpoints', only.id)).status]).toEqual([404, 404]);
    expect((await get('endpoints', '?sort=name')).body.data.map(({ name }: { name: string }) => name)).toEqual([
      'all',
      'default',
      'other',
    ]);
    await service.sql(`update database_replicas set status = 'promoting' where id = $1`, [stays.id]);
    expect(await remove('replicas', stays.id)).toMatchObject({
      status: 409,
      body: { code: 'resource_busy', resource_status: 'promoting' },
    });
  });

  it('is refused while an attachment uses one of these', async () => {
    const { id, post, remove } = await fresh();
    const made = await replica(service, id);
    const reads = await endpoint(service, id, { target: 'replicas', replica_id: made.id });
    const attached = (
      await post('attachments', { application_id: await application(service, 'reader'), endpoint_id: reads.id })
    ).body;
    expect(await remove('replicas', made.id)).toMatchObject({
      status: 409,
      body: { code: 'resource_in_use', dependents: [{ type: 'database_attachment', id: attached.id }] },
    });
    expect(await post(`replicas/${made.id}/promote`)).toMatchObject({ status: 409, body: { code: 'resource_in_use' } });
    await remove('attachments', attached.id);
    expect((await remove('replicas', made.id)).status).toBe(204);
  });
});

describe('promotion', () => {
  it('answers a database with the server, the users and the passwords of the replica', async () => {
    const { id, post, get } = await fresh({ name: 'sales', storage_gb: 3, backup_schedule: { hour_utc: 5 } });
    await post('users', { username: 'reports', access: 'read_only' });
    const made = await replica(service, id, { name: 'heir', database_package: 's-1vcpu-1gb' });
    await endpoint(service, id, { target: 'replicas', replica_id: made.id });
    const server = await rowOf('database_replicas', made.id);
    const promoted = await post(`replicas/${made.id}/promote`);
    expect([promoted.status, promoted.headers.get('location')]).toEqual([
      201,
      `${service.url}/v2/databases/${promoted.body.id}`,
    ]);
    expect(promoted.body).toMatchObject({
      name: 'heir',
      status: 'provisioning',
      database_package: 's-1vcpu-1gb',
      storage_gb: 3,
      database_name: 'app',
      username: 'app',
      restore_from: null,
      backup_schedule: { hour_utc: 5 },
    });
    expect((await get('replicas', made.id)).body.status).toBe('promoting');
    const spans = await service.sql(
      'select resource_id from usage_spans where ended_at is null and resource_id = any($1)',
      [[made.id, promoted.body.id]],
    );
    expect(spans).toEqual([{ resource_id: promoted.body.id }]);

    const row = await rowOf('databases', promoted.body.id);
    for (const column of ['server_id', 'port', 'tenant'])
      expect([column, row[column]]).toEqual([column, server[column]]);
    expect(await service.sql('select owner_id from database_ports where port = $1', [server.port])).toEqual([
      { owner_id: promoted.body.id },
    ]);
    const [mine, theirs] = await Promise.all(
      [id, promoted.body.id].map(async (one) => (await service.call('GET', `/v2/databases/${one}/credentials`)).body),
    );
    expect([theirs.username, theirs.password]).toEqual([mine.username, mine.password]);
    expect(theirs.endpoints).toEqual([
      expect.objectContaining({ name: 'default', access: 'private', host: '127.0.0.1', port: server.port }),
    ]);
    const users = (await childrenOf(service, promoted.body.id).get('users', '?sort=username')).body.data;
    expect(users.map(({ username, access }: { username: string; access: string }) => [username, access])).toEqual([
      ['app', 'admin'],
      ['reports', 'read_only'],
    ]);
    expect((await get('endpoints')).body.data.map(({ name }: { name: string }) => name)).toEqual(['default']);
  });

  it('the job can open what the platform keeps of it', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'opened' });
    const promoted = (await post(`replicas/${made.id}/promote`)).body;
    const [before, after] = [await rowOf('databases', id), await rowOf('databases', promoted.id)] as unknown as [
      ManagedDatabase,
      ManagedDatabase,
    ];
    expect(openAdminPassword(service.platform.secrets, after)).toBe(
      openAdminPassword(service.platform.secrets, before),
    );
  });

  it('has another name where that of the replica is taken', async () => {
    const { id, post } = await fresh();
    const long = 'a-name-that-has-as-many-letters-as-can-b';
    for (const name of ['fallback', long]) {
      await database(service, { name });
      const made = await replica(service, id, { name });
      const { status, body } = await post(`replicas/${made.id}/promote`);
      expect([status, body.name]).toEqual([
        201,
        expect.stringMatching(new RegExp(`^${name.slice(0, 25)}[a-z-]*-[0-9a-z]{8}$`)),
      ]);
      expect(body.name.length).toBeLessThanOrEqual(40);
    }
  });

  it('works when the database itself is lost', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'survivor' });
    await setStatus(service, id, 'failed');
    expect((await post(`replicas/${made.id}/promote`)).status).toBe(201);
  });

  it('needs an available replica and room for a database', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'candidate' });
    for (const [status, code] of [
      ['provisioning', 'resource_busy'],
      ['updating', 'resource_busy'],
      ['promoting', 'resource_busy'],
      ['failed', 'invalid_state'],
    ] as const) {
      await service.sql('update database_replicas set status = $2 where id = $1', [made.id, status]);
      expect(await post(`replicas/${made.id}/promote`)).toMatchObject({
        status: 409,
        body: { code, resource_status: status },
      });
    }
    await service.sql(`update database_replicas set status = 'available' where id = $1`, [made.id]);
    const [{ count }] = (await service.sql(
      'select count(*) as count from databases where project_id = $1 and deleted_at is null',
      [service.project],
    )) as [{ count: number }];
    await Promise.all(Array.from({ length: 60 - count }, () => database(service, { engine: 'redis' })));
    expect(await post(`replicas/${made.id}/promote`)).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', resource: 'databases' },
    });
    await service.sql(`update databases set deleted_at = now() where engine = 'redis'`);
    const answers = await Promise.all([post(`replicas/${made.id}/promote`), post(`replicas/${made.id}/promote`)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
  });

  it('happens once where the request comes twice', async () => {
    const { id, post } = await fresh();
    const made = await replica(service, id, { name: 'twice' });
    const headers = { 'Idempotency-Key': 'promotion-1' };
    const [first, second] = [
      await post(`replicas/${made.id}/promote`, undefined, headers),
      await post(`replicas/${made.id}/promote`, undefined, headers),
    ];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
  });

  it('leaves backups with their database', async () => {
    const { id, post, get } = await fresh();
    const kept = await backup(service, id);
    const made = await replica(service, id, { name: 'without-backups' });
    const promoted = (await post(`replicas/${made.id}/promote`)).body;
    expect((await childrenOf(service, promoted.id).get('backups')).body.data).toEqual([]);
    expect((await get('backups')).body.data.map((one: { id: string }) => one.id)).toEqual([kept]);
  });
});

test('lists have filters, sorts and pages', async () => {
  const { id, get } = await fresh();
  for (const [name, status] of [
    ['aaa', 'available'],
    ['ccc', 'failed'],
    ['bbb', 'available'],
  ] as const)
    await replica(service, id, { name }, status);
  const names = async (query: string): Promise<string[]> =>
    (await get('replicas', `?${query}`)).body.data.map(({ name }: { name: string }) => name);
  expect(await names('')).toEqual(['bbb', 'ccc', 'aaa']);
  expect(await names('sort=name')).toEqual(['aaa', 'bbb', 'ccc']);
  expect(await names('status=failed')).toEqual(['ccc']);
  expect(await names('region=local&sort=-name&limit=1')).toEqual(['ccc']);
  expect(await names('region=mars')).toEqual([]);
  const { next_cursor } = (await get('replicas', '?limit=2')).body;
  expect(await names(`limit=2&cursor=${next_cursor}`)).toEqual(['aaa']);
});

test('nothing of it is for other projects or other databases', async () => {
  const { id } = await fresh();
  const made = await replica(service, id);
  const other = await service.newProject();
  const beside = await fresh();
  const cases = [
    ['GET', '', undefined],
    ['PATCH', '', { name: 'mine' }],
    ['DELETE', '', undefined],
    ['POST', '/promote', undefined],
  ] as const;
  for (const [method, action, body] of cases) {
    expect(
      (
        await service.call(method, `/v2/databases/${id}/replicas/${made.id}${action}`, {
          body,
          key: other.key,
          project: other.id,
        })
      ).status,
    ).toBe(404);
    expect(
      (await service.call(method, `/v2/databases/${beside.id}/replicas/${made.id}${action}`, { body })).status,
    ).toBe(404);
    expect((await service.call(method, `/v2/databases/${id}/replicas/${MISSING}${action}`, { body })).status).toBe(404);
  }
});
