// Databases of which the operator has named an image: rows, catalogs and what is refused, without a cluster.
import { loadConfig } from '../../core/config';
import { startService, type TestService } from '../support/service';

const secret = { DATABASE_URL: 'postgres://localhost/x' };
const cluster = { WORKLOADS: 'kubernetes', REGISTRY_PORT: '5999' };

test.each([
  ['redis', /DATABASE_IMAGES/],
  ['redis:7.0', /DATABASE_IMAGES/],
  ['postgresql:15.8=registry.example.com/postgres:15', /DATABASE_IMAGES/],
  ['redis:7=registry.example.com/redis:7', /DATABASE_IMAGES/],
  ['redis:7.0=a,redis:7.0=b', /DATABASE_IMAGES/],
  ['redis:7.0=a b', /DATABASE_IMAGES/],
])('images as %s are refused at the start', (DATABASE_IMAGES, message) => {
  expect(() => loadConfig({ ...secret, ...cluster, DATABASE_IMAGES })).toThrow(message);
});

test('images without a cluster are refused at the start', () => {
  const DATABASE_IMAGES = 'redis:7.0=registry.example.com/redis:7.0';
  expect(() => loadConfig({ ...secret, DATABASE_IMAGES })).toThrow(/set WORKLOADS=kubernetes/);
  expect(loadConfig({ ...secret, ...cluster, DATABASE_IMAGES }).databaseImages).toEqual([
    { engine: 'redis', version: '7.0', image: 'registry.example.com/redis:7.0' },
  ]);
});

describe('with an image of Valkey', () => {
  let service: TestService;
  beforeAll(async () => {
    const DATABASE_IMAGES =
      'valkey:8.0=registry.example.com/valkey@sha256:00,valkey:8.1=registry.example.com/valkey:8.1,' +
      'mariadb:11.4=registry.example.com/mariadb:11.4';
    service = await startService({ settings: { ...cluster, DATABASE_IMAGES } });
  });
  afterAll(() => service.close());

  test('new databases are in the cluster, at the name of their Service, and take no room of this host', async () => {
    const { data } = (await service.call('GET', '/v2/databases/engines')).body;
    const valkey = data.find(({ id }: { id: string }) => id === 'valkey');
    expect(valkey.versions.map(({ version }: { version: string }) => version)).toEqual(
      expect.arrayContaining(['8.1', '8.0']),
    );
    expect(valkey.features).toEqual(['backups', 'users']);
    const made = await service.call('POST', '/v2/databases', {
      body: { name: 'cache', engine: 'valkey', engine_version: '8.0' },
    });
    expect([made.status, made.body.detail]).toEqual([201, undefined]);
    const { id } = made.body;
    const [row] = await service.sql('select on_cluster, port from databases where id = $1', [id]);
    expect(row).toEqual({ on_cluster: true, port: 6379 });
    expect(await service.sql('select 1 from database_ports where owner_id = $1', [id])).toEqual([]);
    const { body } = await service.call('GET', `/v2/databases/${id}/endpoints`);
    expect(body.data).toMatchObject([
      { host: `${id.replace('_', '-')}.platform-${made.body.project_id.replace('_', '-')}.svc`, port: 6379 },
    ]);
  });

  test('MariaDB is there with the port and the address that its clients know', async () => {
    const made = await service.call('POST', '/v2/databases', {
      body: { name: 'shop', engine: 'mariadb', engine_version: '11.4' },
    });
    expect([made.status, made.body.detail]).toEqual([201, undefined]);
    const { id, project_id: project } = made.body;
    const [row] = await service.sql('select on_cluster, port from databases where id = $1', [id]);
    expect(row).toEqual({ on_cluster: true, port: 3306 });
    const { body } = await service.call('GET', `/v2/databases/${id}/credentials`);
    const host = `${id.replace('_', '-')}.platform-${project.replace('_', '-')}.svc`;
    expect(body.endpoints[0].connection_string).toBe(`mysql://app:${body.password}@${host}:3306/app`);
  });

  test('what a server in a pod cannot do is refused by name', async () => {
    const [{ id } = { id: '' }] = await service.sql<{ id: string }>(`select id from databases where name = 'cache'`);
    await service.sql(`update databases set status = 'available', next_at = null`);
    const post = (place: string, body: object): ReturnType<TestService['call']> =>
      service.call('POST', `/v2/databases/${id}/${place}`, { body });
    for (const answer of [
      await post('replicas', { name: 'more' }),
      await post('endpoints', { name: 'world', access: 'public', allowed_sources: ['192.0.2.0/24'] }),
      await post('endpoints', { name: 'all', target: 'replicas' }),
      await post('endpoints', { name: 'pool', pool_mode: 'session' }),
    ])
      expect([answer.status, answer.body.code]).toEqual([422, 'engine_feature_unsupported']);
    const upgrade = await post('upgrade', { engine_version: '8.1' });
    expect(upgrade.body).toMatchObject({ code: 'engine_version_unsupported', available_versions: [] });
    expect((await post('endpoints', { name: 'second' })).body.host).toMatch(/\.svc$/);
  });
});
