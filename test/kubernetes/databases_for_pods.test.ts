// What attached databases are for applications that run on a cluster: another address, and servers that let pods in.
import { loadConfig } from '../../core/config';
import { withAddress } from '../../jobs/applications/workload/databases';
import { allowedSourcesOf, directEndpoints } from '../../models/databases/database/job_queries';
import { endpoint } from '../support/databases/database_children';
import { startService, type TestService } from '../support/service';
import { needs } from '../support/runner/programs';

describe('variables of a pod', () => {
  const hosts = new Map([['DATABASE', '127.0.0.1']]);
  const variables = {
    DATABASE_URL: 'postgresql://app:pass@127.0.0.1:10000/app?sslmode=require',
    DATABASE_HOST: '127.0.0.1',
    DATABASE_PORT: '10000',
    CACHE_HOST: '127.0.0.1',
  };

  test('name the address that pods reach, and leave what is not of an attachment', () => {
    expect(withAddress(variables, hosts, '192.0.2.7')).toEqual({
      ...variables,
      DATABASE_URL: 'postgresql://app:pass@192.0.2.7:10000/app?sslmode=require',
      DATABASE_HOST: '192.0.2.7',
    });
    expect(withAddress(variables, hosts, '2001:db8::7')).toMatchObject({
      DATABASE_URL: 'postgresql://app:pass@[2001:db8::7]:10000/app?sslmode=require',
      DATABASE_HOST: '2001:db8::7',
    });
  });

  test('a host that somebody named otherwise stays', () => {
    const own = { ...variables, DATABASE_HOST: 'db.example.com' };
    expect(withAddress(own, hosts, '192.0.2.7')).toEqual(own);
  });
});

test('the address and the sources of pods are set together', () => {
  const secret = { DATABASE_URL: 'postgres://localhost/x' };
  for (const one of [{ DATABASE_ADDRESS_FOR_PODS: '192.0.2.7' }, { DATABASE_SOURCES_OF_PODS: '10.0.0.0/8' }])
    expect(() => loadConfig({ ...secret, ...one })).toThrow(/DATABASE_SOURCES_OF_PODS are set together/);
  expect(() => loadConfig({ ...secret, DATABASE_ADDRESS_FOR_PODS: 'db.example.com' })).toThrow(/IP address/);
});

describe('sources that a server accepts', () => {
  let service: TestService;
  beforeAll(async () => {
    const pods = { DATABASE_ADDRESS_FOR_PODS: '192.0.2.7', DATABASE_SOURCES_OF_PODS: '10.1.0.0/16,192.0.2.8' };
    service = await startService({ settings: { WORKLOADS: 'kubernetes', REGISTRY_PORT: '5999', ...pods } });
  });
  afterAll(() => service.close());

  needs('pgbouncer').test('are those of pods while an application is attached, of its endpoint alone', async () => {
    const { id } = (await service.call('POST', '/v2/databases', { body: { name: 'main', engine: 'postgresql' } })).body;
    await service.sql(`update databases set status = 'available' where id = $1`, [id]);
    const pooled = await endpoint(service, id, { pool_mode: 'session' });
    const { body: app } = await service.call('POST', '/v2/applications', {
      body: { name: 'shop', source: { type: 'git', repository_url: 'https://git.example.com/shop' } },
    });
    const { database, config } = service.platform;
    const sourcesAt = async (port: number): Promise<string[]> =>
      allowedSourcesOf(await directEndpoints(database, id, port), config);
    const [{ port } = { port: 0 }] = await service.sql<{ port: number }>('select port from databases where id = $1', [
      id,
    ]);
    expect([await sourcesAt(port), await sourcesAt(pooled.port)]).toEqual([[], []]);
    await service.sql('update databases set next_at = null');
    const attached = await service.call('POST', `/v2/databases/${id}/attachments`, {
      body: { application_id: app.id, endpoint_id: pooled.id },
    });
    expect(attached.status).toBe(201);
    expect([await sourcesAt(port), await sourcesAt(pooled.port)]).toEqual([[], ['10.1.0.0/16', '192.0.2.8/32']]);
    expect(
      allowedSourcesOf(await directEndpoints(database, id, pooled.port), { ...config, workloads: 'host' }),
    ).toEqual([]);
    expect(await service.sql('select next_at is not null as due from databases')).toEqual([{ due: true }]);
    await service.call('DELETE', `/v2/databases/${id}/attachments/${attached.body.id}`);
    expect(await sourcesAt(pooled.port)).toEqual([]);
  });
});
