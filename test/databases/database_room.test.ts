// What databases take: quotas, memory and disk of the host, ports, money; and the list of them.
import { database, describeHost, newName } from '../support/databases/databases';
import { startService, type Answer, type TestService } from '../support/service';

const GIGABYTE = 2 ** 30;
let service: TestService;

beforeAll(async () => {
  service = await startService({
    settings: { QUOTAS: '{"databases": 4, "database_storage_gb": 20}', DATABASE_PORTS: '31000-31002' },
  });
});

beforeEach(async () => {
  for (const table of ['database_endpoints', 'databases', 'volumes']) await service.sql(`delete from ${table}`);
  await describeHost(service);
});

afterAll(() => service?.close());

const post = (body: Record<string, unknown> = {}): Promise<Answer> =>
  service.call('POST', '/v2/databases', { body: { name: newName(), engine: 'postgresql', ...body } });
const patch = (id: string, body: unknown): Promise<Answer> => service.call('PATCH', `/v2/databases/${id}`, { body });
const remove = (id: string): Promise<Answer> => service.call('DELETE', `/v2/databases/${id}`);
const offered = async (query = ''): Promise<string[]> => {
  const { body } = await service.call('GET', `/v2/database_packages/availability?${query}`);
  return body.data
    .filter(({ regions }: { regions: string[] }) => regions.length)
    .map(({ database_package }: { database_package: string }) => database_package);
};

it('quotas count gigabytes, at creation and growth, and are shown', async () => {
  const { id } = await database(service, { storage_gb: 10 });
  const other = await database(service, { storage_gb: 9 });
  expect(await post({ storage_gb: 2 })).toMatchObject({
    status: 403,
    body: { code: 'quota_exceeded', resource: 'database_storage_gb', used: 19, limit: 20 },
  });
  expect(await patch(other.id, { database_package: 's-1vcpu-1gb', storage_gb: 11 })).toMatchObject({
    status: 403,
    body: { code: 'quota_exceeded', resource: 'database_storage_gb' },
  });
  expect((await patch(other.id, { storage_gb: 10 })).status).toBe(200);
  const { body } = await service.call('GET', `/v2/projects/${service.project}/usage`);
  expect(body.quotas.filter(({ resource }: { resource: string }) => resource.startsWith('database'))).toEqual([
    { resource: 'databases', used: 2, limit: 4 },
    { resource: 'database_storage_gb', used: 20, limit: 20 },
  ]);
  await remove(id);
  expect((await post({ storage_gb: 10 })).status).toBe(201);
});

it('ports are given once, under a race too, until there is none', async () => {
  const answers = await Promise.all(Array.from({ length: 4 }, () => post()));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 409]);
  expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({
    code: 'capacity_unavailable',
    regions: [],
  });
  expect(await service.sql('select port from databases order by port')).toEqual([
    { port: 31_000 },
    { port: 31_001 },
    { port: 31_002 },
  ]);
  // One in tear-down keeps its port until its server is gone; the row stays for its last backup.
  const [gone] = answers.filter(({ status }) => status === 201).map(({ body }) => body.id);
  await remove(gone);
  expect((await post()).body).toMatchObject({ code: 'capacity_unavailable' });
  await service.sql('delete from database_ports where owner_id = $1', [gone]);
  expect((await post()).status).toBe(201);
  expect((await post()).body).toMatchObject({ code: 'capacity_unavailable' });
});

it('what is promised is not offered again', async () => {
  await describeHost(service, { memory_available_bytes: 1.5 * GIGABYTE, disk_free_bytes: 30 * GIGABYTE });
  expect(await offered()).toEqual(['dev-1vcpu-256mb', 'kv-1vcpu-1gb', 'kv-1vcpu-256mb', 's-1vcpu-1gb']);
  expect(await post({ database_package: 's-1vcpu-2gb', storage_gb: 20 })).toMatchObject({
    status: 409,
    body: { code: 'capacity_unavailable', regions: [], retryable: true },
  });
  const { id } = (await post({ engine: 'redis', database_package: 'kv-1vcpu-1gb', storage_gb: 2 })).body;
  expect(await offered()).toEqual(['dev-1vcpu-256mb', 'kv-1vcpu-256mb']);
  const second = await database(service, { storage_gb: 1 });
  expect(await patch(second.id, { database_package: 's-1vcpu-1gb' })).toMatchObject({
    status: 409,
    body: { code: 'capacity_unavailable' },
  });
  await remove(id);
  expect(await offered('engine=postgresql')).toEqual(['dev-1vcpu-256mb', 's-1vcpu-1gb']);
  expect((await patch(second.id, { database_package: 's-1vcpu-1gb' })).status).toBe(200);
});

it('disk is promised to volumes and databases alike', async () => {
  await describeHost(service, { disk_free_bytes: 12 * GIGABYTE });
  expect(await offered('database_package=s-1vcpu-1gb')).toEqual(['s-1vcpu-1gb']);
  await service.call('POST', '/v2/volumes', { body: { name: 'uploads', size_gb: 3 } });
  expect(await offered('database_package=s-1vcpu-1gb')).toEqual([]);
  expect((await post({ storage_gb: 10 })).body).toMatchObject({ code: 'capacity_unavailable' });
  expect((await post({ storage_gb: 9 })).status).toBe(201);
});

it('two that fit alone but not together: one of them is made', async () => {
  await describeHost(service, { memory_available_bytes: 0.4 * GIGABYTE });
  const answers = await Promise.all([post(), post()]);
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
});

it('is paid by its package, from the hour of each change on', async () => {
  const spans = (id: string): Promise<unknown[]> =>
    service.sql(
      `select price_id, quantity::int as quantity, ended_at is null as open from usage_spans where resource_id = $1
        order by started_at, ended_at`,
      [id],
    );
  const { id } = await database(service);
  expect(await spans(id)).toEqual([{ price_id: 'dev-1vcpu-256mb', quantity: 1, open: true }]);
  await patch(id, { storage_gb: 2 });
  await service.sql(`update databases set status = 'available' where id = $1`, [id]);
  await patch(id, { database_package: 's-1vcpu-1gb' });
  expect((await spans(id)).at(-1)).toEqual({ price_id: 's-1vcpu-1gb', quantity: 1, open: true });
  await remove(id);
  expect((await spans(id)).filter((span) => (span as { open: boolean }).open)).toEqual([]);
});

it('is listed by each filter and sort', async () => {
  const one = await database(service, { name: 'one' });
  const two = await database(service, { name: 'two', engine: 'redis' }, 'stopped');
  const names = async (query: string): Promise<string[]> =>
    (await service.call('GET', `/v2/databases?${query}`)).body.data.map(({ name }: { name: string }) => name);
  expect(await names('')).toEqual(['two', 'one']);
  expect(await names('sort=name')).toEqual(['one', 'two']);
  expect(await patch(one.id, { deletion_protection: true })).toMatchObject({ status: 200 });
  expect(await names('sort=-updated_at')).toEqual(['one', 'two']);
  for (const query of ['name=two', 'engine=redis', 'status=stopped', 'database_package=kv-1vcpu-256mb'])
    expect([query, await names(query)]).toEqual([query, ['two']]);
  expect(await names('region=local&engine=postgresql')).toEqual(['one']);
  expect(await names('region=mars')).toEqual([]);
  expect((await service.call('DELETE', `/v2/projects/${service.project}`)).body).toMatchObject({
    code: 'project_not_empty',
  });
  expect(two.project_id).toBe(service.project);
});

it('stands in no host without its engine', async () => {
  await describeHost(service, { redis: [], valkey: [], mariadb: [] });
  expect(await post({ engine: 'redis' })).toMatchObject({
    status: 422,
    body: {
      code: 'reference_not_found',
      field: 'engine',
      detail: expect.stringMatching(/is not installed.*`apt-get install redis-server`/),
    },
  });
  expect((await post()).status).toBe(201);
});
