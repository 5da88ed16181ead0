// Endpoints changed, deleted and listed (docs/contract/resources.md §9.4).
import { application, endpoint, environment, replica } from '../support/databases/database_children';
import { dueOf, errorsOf, fresh, service, setUpEndpoints } from '../support/databases/database_endpoint_cases';

setUpEndpoints();

const MISSING = 'dbe_01h455vb4pex5vsknk084sn02q';

describe('changes', () => {
  it('a name is only a name; sources are work', async () => {
    const { id, patch } = await fresh();
    const made = await endpoint(service, id, { access: 'public' });
    const before = await dueOf(id);
    expect((await patch('endpoints', made.id, { name: 'renamed' })).body).toMatchObject({
      name: 'renamed',
      status: 'active',
    });
    expect(await dueOf(id)).toBe(before);
    const changed = await patch('endpoints', made.id, { allowed_sources: ['192.0.2.0/24'] });
    expect(changed.body).toMatchObject({ status: 'updating', allowed_sources: ['192.0.2.0/24'] });
    expect(await dueOf(id)).toBe(before + 1);
  });

  it('what is on its way is made with the newest wishes, and a failed one is tried again', async () => {
    const { id, patch } = await fresh();
    const made = await endpoint(service, id, { access: 'public' }, 'provisioning');
    expect((await patch('endpoints', made.id, { allowed_sources: ['192.0.2.0/24'] })).body.status).toBe('provisioning');
    await service.sql(`update database_endpoints set status = 'failed', status_reason = 'No port.' where id = $1`, [
      made.id,
    ]);
    expect((await patch('endpoints', made.id, { allowed_sources: [] })).body).toMatchObject({
      status: 'updating',
      status_reason: null,
      allowed_sources: [],
    });
  });

  it('pooling comes and goes; the port of the pool is kept, and attachments follow', async () => {
    const { id, patch, post, port } = await fresh();
    const made = await endpoint(service, id);
    const app = await application(service, 'pooled');
    await post('attachments', { application_id: app, endpoint_id: made.id });
    const pooled = (await patch('endpoints', made.id, { pool_mode: 'session', pool_size: 7 })).body;
    expect([pooled.pool_mode, pooled.pool_size, pooled.status, pooled.port === port]).toEqual([
      'session',
      7,
      'updating',
      false,
    ]);
    expect(await environment(service, app)).toMatchObject({
      DATABASE_PORT: String(pooled.port),
      DATABASE_URL: expect.stringContaining(`:${pooled.port}/`),
    });
    expect((await patch('endpoints', made.id, { pool_mode: 'transaction' })).body).toMatchObject({
      pool_mode: 'transaction',
      pool_size: 7,
    });
    expect((await patch('endpoints', made.id, { pool_size: null })).body).toMatchObject({ pool_size: 20 });
    expect((await patch('endpoints', made.id, { pool_mode: null })).body).toMatchObject({
      pool_mode: null,
      pool_size: null,
      port,
    });
    expect(await environment(service, app)).toMatchObject({ DATABASE_PORT: String(port) });
    expect((await patch('endpoints', made.id, { pool_mode: 'session' })).body.port).toBe(pooled.port);
  });

  it('refuses what does not fit', async () => {
    const { id, patch } = await fresh();
    const made = await endpoint(service, id);
    expect(errorsOf(await patch('endpoints', made.id, {}))).toEqual([['', 'required']]);
    expect(errorsOf(await patch('endpoints', made.id, { allowed_sources: ['192.0.2.0/24'] }))).toEqual([
      ['allowed_sources', 'depends_on'],
    ]);
    expect(errorsOf(await patch('endpoints', made.id, { pool_size: 3 }))).toEqual([['pool_size', 'depends_on']]);
    expect(errorsOf(await patch('endpoints', made.id, { pool_mode: 'session', pool_size: 21 }))).toEqual([
      ['pool_size', 'too_large'],
    ]);
    expect(errorsOf(await patch('endpoints', made.id, { access: 'public', target: 'replicas' })).sort()).toEqual([
      ['access', 'immutable'],
      ['target', 'immutable'],
    ]);
    expect(await patch('endpoints', made.id, { name: 'default' })).toMatchObject({
      status: 409,
      body: { code: 'name_taken' },
    });
    expect(await patch('endpoints', made.id, { name: 'late' }, { 'If-Match': '"9"' })).toMatchObject({ status: 412 });
    expect((await patch('endpoints', made.id, { name: 'in-time' }, { 'If-Match': '"1-0"' })).status).toBe(200);
  });

  it('pools are for engines that have them', async () => {
    const { get, patch } = await fresh({ engine: 'redis' });
    const [{ id }] = (await get('endpoints')).body.data;
    expect(await patch('endpoints', id, { pool_mode: 'session' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported' },
    });
  });
});

describe('deletion', () => {
  it('takes it out of all reads and frees its name', async () => {
    const { id, get, remove, post } = await fresh();
    const made = await endpoint(service, id);
    const before = await dueOf(id);
    expect((await remove('endpoints', made.id)).status).toBe(204);
    expect((await get('endpoints', made.id)).status).toBe(404);
    expect((await remove('endpoints', made.id)).status).toBe(404);
    expect([(await get('endpoints')).body.data.length, await dueOf(id)]).toEqual([1, before + 1]);
    expect((await post('endpoints', { name: 'further' })).status).toBe(201);
  });

  it('is refused for the default one, and for one that an attachment uses', async () => {
    const { id, get, remove, post } = await fresh();
    const [{ id: own }] = (await get('endpoints')).body.data;
    expect(await remove('endpoints', own)).toMatchObject({ status: 409, body: { code: 'resource_protected' } });
    const made = await endpoint(service, id);
    const attachment = (
      await post('attachments', { application_id: await application(service, 'user'), endpoint_id: made.id })
    ).body;
    expect(await remove('endpoints', made.id)).toMatchObject({
      status: 409,
      body: { code: 'resource_in_use', dependents: [{ type: 'database_attachment', id: attachment.id }] },
    });
    await remove('attachments', attachment.id);
    expect((await remove('endpoints', made.id)).status).toBe(204);
  });

  it('never meets an attachment that comes at the same time', async () => {
    const { id, post, remove, get } = await fresh();
    const app = await application(service, 'racer');
    for (let round = 0; round < 5; round += 1) {
      const made = await endpoint(service, id, { name: `round-${round}` });
      const [attached, removed] = await Promise.all([
        post('attachments', { application_id: app, endpoint_id: made.id }),
        remove('endpoints', made.id),
      ]);
      expect([
        [201, 409],
        [422, 204],
      ]).toContainEqual([attached.status, removed.status]);
      if (attached.status === 201) await remove('attachments', attached.body.id);
    }
    expect((await get('attachments')).body.data).toEqual([]);
  });
});

test('lists have filters, sorts and pages', async () => {
  const { id, get } = await fresh();
  await replica(service, id);
  await endpoint(service, id, { name: 'aaa', access: 'public' });
  await endpoint(service, id, { name: 'zzz', target: 'replicas' });
  const names = async (query: string): Promise<string[]> =>
    (await get('endpoints', `?${query}`)).body.data.map(({ name }: { name: string }) => name);
  expect(await names('sort=name')).toEqual(['aaa', 'default', 'zzz']);
  expect(await names('sort=-name&limit=2')).toEqual(['zzz', 'default']);
  expect(await names('')).toEqual(['zzz', 'aaa', 'default']);
  expect(await names('access=public')).toEqual(['aaa']);
  expect(await names('target=replicas')).toEqual(['zzz']);
  expect((await names('status=active')).sort()).toEqual(['aaa', 'zzz']);
  const { next_cursor } = (await get('endpoints', '?limit=2')).body;
  expect(await names(`limit=2&cursor=${next_cursor}`)).toEqual(['default']);
  expect(await get('endpoints', '?access=secret')).toMatchObject({
    status: 400,
    body: { code: 'invalid_query_parameter' },
  });
});

test('nothing of it is for other projects, other databases or viewers', async () => {
  const { id } = await fresh();
  const made = await endpoint(service, id);
  const other = await service.newProject();
  const place = `/v2/databases/${id}/endpoints/${made.id}`;
  for (const [method, body] of [
    ['GET', undefined],
    ['PATCH', { name: 'mine' }],
    ['DELETE', undefined],
  ] as const) {
    expect((await service.call(method, place, { body, key: other.key, project: other.id })).status).toBe(404);
    expect(
      (await service.call(method, `/v2/databases/${(await fresh()).id}/endpoints/${made.id}`, { body })).status,
    ).toBe(404);
    expect((await service.call(method, `/v2/databases/${id}/endpoints/${MISSING}`, { body })).status).toBe(404);
  }
  const viewer = await service.mintKey({ role: 'viewer' });
  expect((await service.call('GET', place, { key: viewer })).status).toBe(200);
  expect(await service.call('PATCH', place, { body: { name: 'mine' }, key: viewer })).toMatchObject({
    status: 403,
    body: { code: 'role_not_permitted' },
  });
  const reader = await service.mintKey({ scopes: ['read'] });
  expect(await service.call('DELETE', place, { key: reader })).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope', required_scope: 'write' },
  });
});
