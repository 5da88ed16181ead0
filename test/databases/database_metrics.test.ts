// Metrics of databases: one series for each metric and server (docs/contract/resources.md §9.8).
import { addMetricPoints } from '../../models/applications/metric_point';
import { replica } from '../support/databases/database_children';
import { database, describeHost } from '../support/databases/databases';
import { startService, type Answer, type TestService } from '../support/service';

const ALL = [
  'cpu_percent',
  'memory_percent',
  'storage_used_bytes',
  'connections',
  'transactions_per_second',
  'read_iops',
  'write_iops',
  'replication_lag_seconds',
];
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
  await describeHost(service);
});

afterAll(() => service?.close());

interface Series {
  metric: string;
  unit: string;
  labels: { name: string; value: string }[];
  points: { timestamp: string; value: number }[];
}

const read = (id: string, query = ''): Promise<Answer> => service.call('GET', `/v2/databases/${id}/metrics?${query}`);
const seriesOf = async (id: string, query = ''): Promise<Series[]> => {
  const { status, body } = await read(id, query);
  expect([status, body.code]).toEqual([200, undefined]);
  return body.series;
};
/** The beginning of a minute. */
const minute = (ago: number): Date => new Date((Math.floor(Date.now() / 60_000) - ago) * 60_000);
const sample = (id: string, part_id: string, metric: string, at: Date, samples: number, total: number): Promise<void> =>
  addMetricPoints(service.platform.database, [
    { at, project_id: service.project, resource_id: id, part_id, metric, samples, total },
  ]);
const valuesOf = (series: Series[]): [string, string, number[]][] =>
  series.map(({ metric, labels, points }) => [metric, labels[0]?.value ?? '', points.map(({ value }) => value)]);

test('every metric has its series and its unit, also without a measurement', async () => {
  const { id } = await database(service);
  const { body } = await read(id);
  expect([body.resolution_seconds, Date.parse(body.to) - Date.parse(body.from)]).toEqual([60, 3_600_000]);
  expect(body.series.map(({ metric, unit }: Series) => [metric, unit])).toEqual([
    ['cpu_percent', 'percent'],
    ['memory_percent', 'percent'],
    ['storage_used_bytes', 'bytes'],
    ['connections', 'count'],
    ['transactions_per_second', 'per_second'],
    ['read_iops', 'per_second'],
    ['write_iops', 'per_second'],
  ]);
  for (const { labels, points } of body.series)
    expect([labels, points]).toEqual([[{ name: 'role', value: 'primary' }], []]);
});

test('replicas have series of their own, and they alone a lag', async () => {
  const { id } = await database(service);
  const mine = await replica(service, id);
  const series = await seriesOf(id);
  expect(series.map(({ metric }) => metric)).toEqual([
    ...ALL.slice(0, 7).flatMap((metric) => [metric, metric]),
    'replication_lag_seconds',
  ]);
  expect(series.at(-1)).toEqual({
    metric: 'replication_lag_seconds',
    unit: 'seconds',
    points: [],
    labels: [
      { name: 'role', value: 'replica' },
      { name: 'replica_id', value: mine.id },
      { name: 'replica_name', value: 'reader' },
    ],
  });
  expect((await seriesOf(id, `replica_id=${mine.id}`)).map(({ metric }) => metric)).toEqual(ALL);
});

test('points are means of what was sampled, for each server', async () => {
  const { id } = await database(service);
  const mine = await replica(service, id);
  await sample(id, id, 'cpu_percent', minute(2), 4, 100);
  await sample(id, id, 'cpu_percent', minute(1), 2, 80);
  await sample(id, mine.id, 'cpu_percent', minute(1), 1, 5);
  await sample(id, mine.id, 'replication_lag_seconds', minute(1), 3, 1.5);
  await sample(id, id, 'storage_used_bytes', minute(1), 2, 2 ** 41);
  expect(valuesOf(await seriesOf(id, 'metrics=cpu_percent,replication_lag_seconds,storage_used_bytes'))).toEqual([
    ['cpu_percent', 'primary', [25, 40]],
    ['cpu_percent', 'replica', [5]],
    ['replication_lag_seconds', 'replica', [0.5]],
    ['storage_used_bytes', 'primary', [2 ** 40]],
    ['storage_used_bytes', 'replica', []],
  ]);
  const coarse = await seriesOf(id, `metrics=cpu_percent&resolution_seconds=3600&from=${minute(180).toISOString()}`);
  expect(coarse[0]?.points.reduce((sum, { value }) => sum + value, 0)).toBeGreaterThanOrEqual(30);
  expect(valuesOf(await seriesOf(id, `metrics=cpu_percent&replica_id=${mine.id}`))).toEqual([
    ['cpu_percent', 'replica', [5]],
  ]);
});

test('points of a replica that has gone are still there', async () => {
  const { id } = await database(service);
  const mine = await replica(service, id);
  await sample(id, mine.id, 'connections', minute(1), 1, 7);
  await service.call('DELETE', `/v2/databases/${id}/replicas/${mine.id}`);
  expect((await seriesOf(id, 'metrics=connections')).at(-1)).toMatchObject({
    labels: [{ name: 'replica_id', value: mine.id }],
    points: [{ value: 7 }],
  });
});

test('a replica of another database has no points here', async () => {
  const [{ id }, { id: other }] = [await database(service), await database(service)];
  const theirs = await replica(service, other);
  await sample(other, theirs.id, 'connections', minute(1), 1, 7);
  expect(await seriesOf(id, `replica_id=${theirs.id}`)).toEqual([]);
});

test('refuses what does not fit', async () => {
  const { id } = await database(service);
  for (const query of [
    'metrics=requests',
    'resolution_seconds=61',
    'from=yesterday',
    `from=${minute(1).toISOString()}&to=${minute(2).toISOString()}`,
  ]) {
    expect([query, await read(id, query)]).toEqual([
      query,
      expect.objectContaining({ status: 400, body: expect.objectContaining({ code: 'invalid_query_parameter' }) }),
    ]);
  }
});

test('is for keys of the project that may read', async () => {
  const { id } = await database(service);
  const other = await service.newProject();
  expect((await service.call('GET', `/v2/databases/${id}/metrics`, { key: other.key, project: other.id })).status).toBe(
    404,
  );
  const deployer = await service.mintKey({ scopes: ['deploy'] });
  expect(await service.call('GET', `/v2/databases/${id}/metrics`, { key: deployer })).toMatchObject({
    status: 403,
    body: { code: 'insufficient_scope' },
  });
});

test('in GraphQL, databases say how full their disks are, once that was measured', async () => {
  const [measured, fresh] = [await database(service), await database(service)];
  await service.sql(`update databases set observed = '{"storage_used_bytes": 5000000000}' where id = $1`, [
    measured.id,
  ]);
  const query = `query ($project: ID!) {
    listDatabases(project_id: $project, limit: 100) { data { id storage_used_bytes } }
  }`;
  const { data, errors } = await service.graphql(query, { project: service.project });
  expect(errors).toBeUndefined();
  const used = (id: string) => data.listDatabases.data.find((one: { id: string }) => one.id === id)?.storage_used_bytes;
  expect([used(measured.id), used(fresh.id)]).toEqual([5_000_000_000, null]);
});
