// The catalogs of databases: packages, where they fit, and engines. What all catalogs have in common: catalog.test.ts.
import * as catalogs from '../../core/catalog/catalogs';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let facts: catalogs.HostFacts;

beforeAll(async () => {
  service = await startService({ settings: { REGION_ID: 'fra1' } });
  facts = await service.platform.facts();
});

afterAll(() => service?.close());

const get = (place: string, options = {}): Promise<Answer> =>
  service.call('GET', `/v2/${place}`, { project: null, ...options });
const rows = async (place: string): Promise<Answer['body'][]> => (await get(place)).body.data;
const ids = async (place: string): Promise<string[]> =>
  (await rows(place)).map((row) => row.id ?? row.database_package);

test('packages are filtered by engine, package and region', async () => {
  const relational = await ids('database_packages?engine=postgresql');
  expect(relational).toContain('s-1vcpu-1gb');
  expect(relational).not.toContain('kv-1vcpu-1gb');
  expect(await ids('database_packages?engine=nonsense')).toEqual([]);
  expect(await ids('database_packages/availability?engine=postgresql')).toEqual(relational);
  expect(await ids('database_packages/availability?engine=postgresql&database_package=s-1vcpu-1gb')).toEqual([
    's-1vcpu-1gb',
  ]);
  expect(await ids('database_packages/availability?region=nowhere')).toEqual([]);
});

test('the engines are those of the host', async () => {
  const engines = await rows('databases/engines');
  const found = (['mariadb', 'postgresql', 'redis', 'valkey'] as const).filter((engine) => facts[engine].length > 0);
  expect(engines.map(({ id }) => id)).toEqual(found);
  for (const { id, versions } of engines) {
    expect(versions.map(({ version }: { version: string }) => version).sort()).toEqual(
      facts[id as 'redis'].map(({ series }) => series).sort(),
    );
    expect(versions.filter((one: { default: boolean }) => one.default)).toHaveLength(1);
  }
});

test('what volumes are promised is no longer free for databases', async () => {
  const before = await rows('database_packages/availability?database_package=dev-1vcpu-256mb');
  expect(before).toEqual(
    catalogs
      .availabilityOfPackages(facts, { memory_mb: 0, storage_gb: 0 }, 'fra1')
      .filter((row) => row.database_package === 'dev-1vcpu-256mb'),
  );
  await service.sql(
    `insert into volumes (id, project_id, name, size_gb, region, created_at, updated_at)
      values ('vol_00000000000000000000000001', $1, 'huge', $2, 'fra1', now(), now())`,
    [service.project, Math.ceil(facts.disk_free_bytes / 2 ** 30)],
  );
  expect(await rows('database_packages/availability?database_package=dev-1vcpu-256mb')).toEqual([
    { database_package: 'dev-1vcpu-256mb', regions: [] },
  ]);
  expect(await ids('database_packages/availability?region=fra1')).toEqual([]);
  // One in the bin, or that is being removed, is still on the disk.
  await service.sql('update volumes set deleted_at = now()');
  expect(await ids('database_packages/availability?region=fra1')).toEqual([]);
  await service.sql('delete from volumes');
  expect(await rows('database_packages/availability?database_package=dev-1vcpu-256mb')).toEqual(before);
});

test('GraphQL shows the same engines', async () => {
  const { data } = await service.graphql(
    `{ listDatabaseEngines { data { id name default_port features
      versions { version default status end_of_life_on } } } }`,
    {},
    { project: null },
  );
  expect(data.listDatabaseEngines.data).toEqual(await rows('databases/engines'));
});
