// Endpoints of databases: who may come, what stands behind them, which port they have (docs/contract/resources.md
// §9.4).
import { replica } from '../support/databases/database_children';
import { describeHost } from '../support/databases/databases';
import { dueOf, errorsOf, fresh, service, setUpEndpoints } from '../support/databases/database_endpoint_cases';

setUpEndpoints();

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
