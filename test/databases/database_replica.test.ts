// Read replicas: what they may be, what goes with them, and how one becomes a database (docs/contract/resources.md
// §9.3).
import { application, endpoint, replica } from '../support/databases/database_children';
import { setStatus } from '../support/databases/databases';
import { type Answer } from '../support/service';
import { fresh, rowOf, service, setUpReplicas } from '../support/databases/database_replica_cases';

setUpReplicas();

function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

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
