// Endpoints of databases: who may come, what stands behind them, which port they have (docs/contract/resources.md
// §9.4).
import { application, childrenOf, endpoint, environment, replica, type Children } from './support/database_children';
import { database, describeHost } from './support/databases';
import { startService, type Answer, type TestService } from './support/service';

const MISSING = 'dbe_01h455vb4pex5vsknk084sn02q';
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
  await describeHost(service);
});

afterAll(() => service?.close());

async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string; port: number }> {
  const { id } = await database(service, body);
  const [{ port }] = (await service.sql('select port from databases where id = $1', [id])) as [{ port: number }];
  return { ...childrenOf(service, id), id, port };
}

function errorsOf(answer: Answer): [string, string][] {
  expect([answer.status, answer.body.code]).toEqual([422, 'validation_failed']);
  return answer.body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
}

const dueOf = async (id: string): Promise<number> =>
  ((await service.sql('select generation from databases where id = $1', [id])) as [{ generation: number }])[0]
    .generation;

describe('creation', () => {
  it('answers everything that is promised, and wakes the database', async () => {
    const { id, post, get, port } = await fresh();
    const before = await dueOf(id);
    const made = await post('endpoints', {
      name: 'office',
      access: 'public',
      allowed_sources: ['203.0.113.0/24', '198.51.100.7', '2001:DB8::/32'],
    });
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      `${service.url}/v2/databases/${id}/endpoints/${made.body.id}`,
    ]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^dbe_[0-9a-hjkmnp-tv-z]{26}$/),
      database_id: id,
      name: 'office',
      access: 'public',
      target: 'primary',
      replica_id: null,
      allowed_sources: ['203.0.113.0/24', '198.51.100.7/32', '2001:db8::/32'],
      pool_mode: null,
      pool_size: null,
      host: 'ingress.localhost',
      port,
      is_default: false,
      status: 'provisioning',
      status_reason: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: made.body.created_at,
    });
    expect((await get('endpoints', made.body.id)).body).toEqual(made.body);
    expect(await dueOf(id)).toBe(before + 1);
  });

  it('each database begins with a private one', async () => {
    const { get, port } = await fresh();
    const { data } = (await get('endpoints')).body;
    expect(data).toEqual([
      expect.objectContaining({
        name: 'default',
        access: 'private',
        target: 'primary',
        host: '127.0.0.1',
        port,
        is_default: true,
        allowed_sources: [],
      }),
    ]);
  });

  it('nobody comes to a public one unless it is said', async () => {
    const { post } = await fresh();
    expect((await post('endpoints', { name: 'open', access: 'public' })).body.allowed_sources).toEqual([]);
  });

  it('a pool has a port of its own and 20 connections, or what the package has', async () => {
    const { post, port } = await fresh({ database_package: 's-1vcpu-1gb' });
    const pooled = (await post('endpoints', { name: 'pooled', pool_mode: 'transaction' })).body;
    expect(pooled).toMatchObject({ pool_mode: 'transaction', pool_size: 20 });
    expect(pooled.port).not.toBe(port);
    expect((await post('endpoints', { name: 'exact', pool_mode: 'session', pool_size: 50 })).body).toMatchObject({
      pool_mode: 'session',
      pool_size: 50,
    });
    expect(errorsOf(await post('endpoints', { name: 'wide', pool_mode: 'session', pool_size: 51 }))).toEqual([
      ['pool_size', 'too_large'],
    ]);
    const [{ owner_id }] = (await service.sql('select owner_id from database_ports where port = $1', [
      pooled.port,
    ])) as [{ owner_id: string }];
    expect(owner_id).toBe(pooled.id);
  });

  it('leads to one replica at its port, to all of them at one of its own', async () => {
    const { id, post, port } = await fresh();
    const { id: replica_id } = await replica(service, id);
    const [{ port: theirs }] = (await service.sql('select port from database_replicas where id = $1', [
      replica_id,
    ])) as [{ port: number }];
    const one = (await post('endpoints', { name: 'one', target: 'replicas', replica_id })).body;
    expect([one.replica_id, one.port]).toEqual([replica_id, theirs]);
    const all = (await post('endpoints', { name: 'all', target: 'replicas' })).body;
    expect(all.replica_id).toBeNull();
    expect([port, theirs]).not.toContain(all.port);
  });

  const mistakes: [Record<string, unknown>, [string, string][]][] = [
    [{ name: 'No' }, [['name', 'too_short']]],
    [{ access: 'secret' }, [['access', 'not_in_enum']]],
    [{ allowed_sources: ['203.0.113.0/24'] }, [['allowed_sources', 'depends_on']]],
    [{ access: 'private', allowed_sources: [] }, [['allowed_sources', 'depends_on']]],
    [
      { access: 'public', allowed_sources: ['203.0.113.1/24', 'office'] },
      [
        ['allowed_sources.0', 'invalid_format'],
        ['allowed_sources.1', 'invalid_format'],
      ],
    ],
    [
      { access: 'public', allowed_sources: Array.from({ length: 101 }, (_, index) => `10.0.${index}.0/24`) },
      [['allowed_sources', 'too_many']],
    ],
    [{ replica_id: 'rep_01h455vb4pex5vsknk084sn02q' }, [['replica_id', 'depends_on']]],
    [{ target: 'primary', replica_id: 'rep_01h455vb4pex5vsknk084sn02q' }, [['replica_id', 'depends_on']]],
    [{ pool_size: 5 }, [['pool_size', 'depends_on']]],
    [{ pool_mode: 'session', pool_size: 0 }, [['pool_size', 'too_small']]],
    [{ pool_mode: 'statement' }, [['pool_mode', 'not_in_enum']]],
    [
      { access: null, target: null },
      [
        ['access', 'required'],
        ['target', 'required'],
      ],
    ],
    [
      { port: 5432, host: 'db.example.com', is_default: true },
      [
        ['port', 'immutable'],
        ['host', 'immutable'],
        ['is_default', 'immutable'],
      ],
    ],
  ];

  it.each(mistakes.map(([body, wanted]) => [Object.keys(body).join(', '), body, wanted] as const))(
    'refuses %s that does not fit (%#)',
    async (_, body, wanted) => {
      const { post } = await fresh();
      expect(errorsOf(await post('endpoints', { name: 'further', ...body })).sort()).toEqual([...wanted].sort());
    },
  );

  it('refuses what the engine can not do', async () => {
    const { post } = await fresh({ engine: 'redis' });
    expect(await post('endpoints', { name: 'pooled', pool_mode: 'session' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'redis', feature: 'pooling' },
    });
    const { post: without } = await fresh({ engine_version: '18' });
    expect(await without('endpoints', { name: 'readers', target: 'replicas' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'replicas' },
    });
  });

  it('refuses to lead to all replicas with a pool, and where nothing of the host can', async () => {
    const { id, post, patch } = await fresh();
    const { id: replica_id } = await replica(service, id);
    const all = { name: 'all', target: 'replicas' };
    expect(await post('endpoints', { ...all, pool_mode: 'session' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', feature: 'pooling' },
    });
    const made = (await post('endpoints', all)).body;
    expect(await patch('endpoints', made.id, { pool_mode: 'session' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', feature: 'pooling' },
    });
    const programs = { ...(await service.platform.facts()).programs };
    await describeHost(service, { programs: { ...programs, haproxy: undefined } });
    const refused = await post('endpoints', { ...all, name: 'more' });
    const one = await post('endpoints', { ...all, name: 'one', replica_id });
    await describeHost(service);
    expect(refused).toMatchObject({
      status: 422,
      body: {
        code: 'engine_feature_unsupported',
        feature: 'replicas',
        detail: expect.stringContaining('install the package haproxy'),
      },
    });
    expect(one.status).toBe(201);
  });

  it('refuses replicas where there are none, and those of others', async () => {
    const { id, post } = await fresh();
    expect(await post('endpoints', { name: 'readers', target: 'replicas' })).toMatchObject({
      status: 409,
      body: { code: 'invalid_state', resource_status: 'available' },
    });
    const { id: foreign } = await replica(service, (await fresh()).id);
    for (const replica_id of [foreign, 'rep_01h455vb4pex5vsknk084sn02q', id, 'x']) {
      expect(await post('endpoints', { name: 'readers', target: 'replicas', replica_id })).toMatchObject({
        status: 422,
        body: { code: 'reference_not_found', field: 'replica_id' },
      });
    }
  });

  it('refuses a replica that leaves', async () => {
    const { id, post } = await fresh();
    const { id: replica_id } = await replica(service, id, {}, 'promoting');
    expect(await post('endpoints', { name: 'readers', target: 'replicas', replica_id })).toMatchObject({
      status: 409,
      body: { code: 'resource_busy', resource_status: 'promoting' },
    });
    expect(await post('endpoints', { name: 'readers', target: 'replicas' })).toMatchObject({
      status: 409,
      body: { code: 'invalid_state' },
    });
  });

  it('has a name of its own in its database', async () => {
    const { post } = await fresh();
    expect(await post('endpoints', { name: 'default' })).toMatchObject({
      status: 409,
      body: { code: 'name_taken', field: 'name' },
    });
    const { post: elsewhere } = await fresh();
    for (const send of [post, elsewhere]) expect((await send('endpoints', { name: 'office' })).status).toBe(201);
  });

  it('stops at ten, also for those who come at once', async () => {
    const { post, get, remove } = await fresh();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => post('endpoints', { name: `point-${index}`, pool_mode: 'session' })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(9);
    expect(answers.find(({ status }) => status !== 201)).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', resource: 'endpoints', used: 10, limit: 10 },
    });
    const { data } = (await get('endpoints', '?limit=100')).body;
    expect(new Set(data.map(({ port }: { port: number }) => port)).size).toBe(10);
    expect((await remove('endpoints', data[0].id)).status).toBe(204);
    expect((await post('endpoints', { name: 'again' })).status).toBe(201);
  });

  it('is made once where the request comes twice', async () => {
    const { post, get } = await fresh();
    const headers = { 'Idempotency-Key': 'endpoint-1' };
    const [first, second] = [
      await post('endpoints', { name: 'office' }, headers),
      await post('endpoints', { name: 'office' }, headers),
    ];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect((await get('endpoints')).body.data).toHaveLength(2);
  });
});

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
