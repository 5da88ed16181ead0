// Metrics of applications: what is asked for, how it is cut and summed, and what is counted where.
import { LATENCY_BOUNDS_MS } from '../../core/log/latency';
import { limits } from '../../core/limits';
import { mintId } from '../../core/ids';
import { addMetricPoints, type MetricPointInput } from '../../models/applications/metric_point';
import { spanOf } from '../../models/applications/metric_point/span';
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;

beforeAll(async () => {
  service = await startService();
  application = await fresh('metrics');
});
afterAll(() => service.close());

async function fresh(name: string): Promise<DeployedApplication> {
  const { body } = await service.call('POST', '/v2/applications', {
    body: { name, source: { type: 'preset', preset: 'static-site' } },
  });
  await service.call('POST', `/v2/applications/${body.id}/processes`, { body: { type: 'worker', command: 'work' } });
  return deployed(service, body.id);
}

/** The beginning of the hour before last: what is written there is whole. */
const HOUR = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 2 * 3_600_000;
const at = (minutes: number): string => new Date(HOUR + minutes * 60_000).toISOString();

function point(
  of: DeployedApplication,
  type: string,
  minutes: number,
  metric: string,
  total: number,
  more: Partial<MetricPointInput> = {},
): MetricPointInput {
  return {
    at: new Date(at(minutes)),
    project_id: service.project,
    resource_id: of.id,
    part_id: of.processes[type]!,
    metric,
    samples: 1,
    total,
    ...more,
  };
}
const add = (...points: MetricPointInput[]): Promise<void> => addMetricPoints(service.platform.database, points);

interface Series {
  metric: string;
  unit: string;
  labels: { name: string; value: string }[];
  points: { timestamp: string; value: number }[];
}

async function get(
  query: string,
  of = application,
): Promise<{ from: string; to: string; resolution_seconds: number; series: Series[] }> {
  const { status, body } = await service.call('GET', `/v2/applications/${of.id}/metrics?${query}`);
  expect([status, body.code]).toEqual([200, undefined]);
  return body;
}
const values = (series: Series[], metric: string, type = 'web'): [string, number][] =>
  series
    .find((one) => one.metric === metric && one.labels.some(({ value }) => value === type))!
    .points.map(({ timestamp, value }) => [timestamp, value]);

const hour = (): string => `from=${at(0)}&to=${at(60)}`;

describe('series', () => {
  it('are there for each metric and process type, without points where nothing was measured', async () => {
    const { series, resolution_seconds } = await get('', await fresh('empty'));
    expect(resolution_seconds).toBe(60);
    expect(series.filter(({ points }) => points.length)).toEqual([]);
    const names = series.map(
      ({ metric, labels }) => `${metric} ${labels.find(({ name }) => name === 'process_type')?.value}`,
    );
    expect(names).toEqual([
      'cpu_percent web',
      'cpu_percent worker',
      'memory_mb web',
      'memory_mb worker',
      'network_in_bytes web',
      'network_in_bytes worker',
      'network_out_bytes web',
      'network_out_bytes worker',
      'instances web',
      'instances worker',
      'requests web',
      'response_time_p50_ms web',
      'response_time_p95_ms web',
      'response_time_p99_ms web',
      'responses_2xx web',
      'responses_3xx web',
      'responses_4xx web',
      'responses_5xx web',
    ]);
  });

  it('are means of what was sampled and sums of what was counted', async () => {
    const one = await fresh('sums');
    await add(
      point(one, 'web', 0, 'cpu_percent', 10),
      point(one, 'web', 0, 'cpu_percent', 30),
      point(one, 'web', 3, 'cpu_percent', 50),
    );
    await add(
      point(one, 'web', 0, 'cpu_percent', 20),
      point(one, 'web', 1, 'requests', 3, { samples: 0 }),
      point(one, 'web', 4, 'requests', 4, { samples: 0 }),
    );
    const minutes = (await get(`${hour()}&resolution_seconds=60`, one)).series;
    expect(values(minutes, 'cpu_percent')).toEqual([
      [at(0), 20],
      [at(3), 50],
    ]);
    expect(values(minutes, 'requests')).toEqual([
      [at(1), 3],
      [at(4), 4],
    ]);
    const fives = (await get(`${hour()}&resolution_seconds=300`, one)).series;
    expect(values(fives, 'cpu_percent')).toEqual([[at(0), 27.5]]);
    expect(values(fives, 'requests')).toEqual([[at(0), 7]]);
    expect(values(fives, 'cpu_percent', 'worker')).toEqual([]);
  });

  it('count zero requests while the application ran, and nothing while it did not', async () => {
    const one = await fresh('zeros');
    await add(
      point(one, 'web', 0, 'instances', 1),
      point(one, 'web', 1, 'instances', 1),
      point(one, 'web', 1, 'requests', 2, { samples: 0 }),
      point(one, 'web', 2, 'instances', 0),
      point(one, 'worker', 0, 'instances', 1),
    );
    const { series } = await get(`${hour()}&metrics=requests,responses_5xx`, one);
    expect(values(series, 'requests')).toEqual([
      [at(0), 0],
      [at(1), 2],
    ]);
    expect(values(series, 'responses_5xx')).toEqual([
      [at(0), 0],
      [at(1), 0],
    ]);
    expect(series).toHaveLength(2);
  });

  it('keep those of a process type that is gone', async () => {
    const one = await fresh('gone');
    await add(point(one, 'worker', 0, 'memory_mb', 64));
    await service.sql('delete from processes where id = $1', [one.processes.worker]);
    const { series } = await get(`${hour()}&metrics=memory_mb`, one);
    expect(series.map(({ labels, points }) => [labels.map(({ name }) => name), points.length])).toEqual([
      [['process_id', 'process_type'], 0],
      [['process_id'], 1],
    ]);
  });

  it('are of one process type where it is named', async () => {
    const { series } = await get(`process_id=${application.processes.worker}`);
    expect(new Set(series.map(({ metric }) => metric))).toEqual(
      new Set(['cpu_percent', 'memory_mb', 'network_in_bytes', 'network_out_bytes', 'instances']),
    );
    expect((await get(`process_id=${mintId('prc')}`)).series).toEqual([]);
    const { status, body } = await service.call('GET', `/v2/applications/${application.id}/metrics?process_id=x`);
    expect([status, body.code, body.parameter]).toEqual([400, 'invalid_query_parameter', 'process_id']);
  });
});

describe('response times', () => {
  const histogram = (entries: Record<number, number>): number[] =>
    [...LATENCY_BOUNDS_MS, Infinity].map((bound) => entries[bound] ?? 0);

  it('are percentiles of all that was merged', async () => {
    const one = await fresh('times');
    const write = (minutes: number, buckets: number[]): Promise<void> =>
      add(
        point(
          one,
          'web',
          minutes,
          'response_time',
          buckets.reduce((sum, count) => sum + count, 0),
          { samples: 0, buckets },
        ),
      );
    await write(0, histogram({ 10: 50 }));
    await write(0, histogram({ 10: 40, 100: 5 }));
    await write(1, histogram({ 1000: 5 }));
    await write(5, histogram({ [Infinity]: 1 }));
    const { series } = await get(`${hour()}&resolution_seconds=300`, one);
    const p = (share: number): [string, number][] => values(series, `response_time_p${share}_ms`);
    // 90 within 5 to 10 ms, 5 within 50 to 100, 5 within 500 to 1000.
    expect(p(50)).toEqual([
      [at(0), Math.round((5 + 5 * (50 / 90)) * 100) / 100],
      [at(5), 60_000],
    ]);
    expect(p(95)[0]).toEqual([at(0), 100]);
    expect(p(99)[0]).toEqual([at(0), 900]);
  });
});

describe('the span', () => {
  const now = new Date('2026-01-31T09:30:00.000Z');
  const days = (count: number): string => new Date(now.getTime() - count * 86_400_000).toISOString();

  it.each<[string, Parameters<typeof spanOf>[0], string, number]>([
    ['the last hour', {}, '2026-01-31T08:30:00.000Z', 60],
    ['an hour before its end', { to: days(1) }, '2026-01-30T08:30:00.000Z', 60],
    ['from a time up to now', { from: days(1) }, '2026-01-30T09:30:00.000Z', 300],
    ['a week', { from: days(7) }, '2026-01-24T09:00:00.000Z', 3600],
    ['31 days', { from: days(31), to: now.toISOString() }, '2025-12-31T09:00:00.000Z', 3600],
    ['days', { from: days(31), resolution_seconds: 86_400 }, '2025-12-31T00:00:00.000Z', 86_400],
  ])('is %s', (_, args, from, resolution) => {
    // The answers of one minute are the same.
    const span = spanOf(args, new Date(now.getTime() - 12_345));
    expect([span.from.toISOString(), span.resolution_seconds]).toEqual([from, resolution]);
  });

  it.each([
    ['from', `from=${at(1)}&to=${at(1)}`],
    ['from', `from=${at(0)}&to=${at(-5)}`],
    ['from', `from=${at(-60 * 24 * 32)}&to=${at(0)}`],
    ['resolution_seconds', 'resolution_seconds=61'],
    ['resolution_seconds', 'resolution_seconds=x'],
    ['resolution_seconds', `from=${at(-60 * 24 * 30)}&to=${at(0)}&resolution_seconds=60`],
    ['from', 'from=yesterday'],
    ['metrics.1', 'metrics=cpu_percent,disk'],
  ])('refuses %s: %s', async (parameter, query) => {
    const { status, body } = await service.call('GET', `/v2/applications/${application.id}/metrics?${query}`);
    expect([status, body.code, body.parameter]).toEqual([400, 'invalid_query_parameter', parameter]);
  });

  it('is as wide as points are kept', async () => {
    const { series, resolution_seconds } = await get(
      `from=${new Date(Date.now() - limits.observationDaysMax * 86_400_000 + 60_000).toISOString()}`,
    );
    expect([resolution_seconds, series.length > 0]).toEqual([3600, true]);
  });
});

describe('access', () => {
  it('both faces give the same; REST takes a comma list', async () => {
    const { data, errors } = await service.graphql(
      `query ($id: ID!, $from: DateTime, $to: DateTime) { getApplicationMetrics(id: $id, metrics: [cpu_percent,
        requests], from: $from, to: $to) { from to resolution_seconds
        series { metric unit labels { name value } points { timestamp value } } } }`,
      { id: application.id, from: at(0), to: at(60) },
    );
    expect(errors).toBeUndefined();
    expect(data.getApplicationMetrics).toEqual(await get(`${hour()}&metrics=cpu_percent,requests`));
  });

  it('needs read, and the project', async () => {
    const place = `/v2/applications/${application.id}/metrics`;
    expect(
      (await service.call('GET', place, { key: await service.mintKey({ scopes: ['logs:read'] }) })).body.code,
    ).toBe('insufficient_scope');
    const other = await service.newProject({ stranger: true });
    expect((await service.call('GET', place, { key: other.key, project: other.id })).status).toBe(404);
  });
});

describe('writing', () => {
  it('many at once lose nothing', async () => {
    const one = await fresh('writers');
    await Promise.all(
      Array.from({ length: 20 }, () =>
        add(
          point(one, 'web', 0, 'requests', 1, { samples: 0 }),
          point(one, 'web', 1, 'requests', 2, { samples: 0 }),
          point(one, 'worker', 0, 'memory_mb', 5),
        ),
      ),
    );
    const { series } = await get(hour(), one);
    expect(values(series, 'requests')).toEqual([
      [at(0), 20],
      [at(1), 40],
    ]);
    expect(values(series, 'memory_mb', 'worker')).toEqual([[at(0), 5]]);
  });
});
