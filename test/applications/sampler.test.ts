/** @user any */
// What instances use and what the ingress counts, as columns of the row and as points.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { mintId } from '../../core/ids';
import { createLog } from '../../core/log/log';
import { driverContext } from '../../core/driver';
import type { IngressDriver, Traffic } from '../../engines/ingress/ingress';
import { openIngress } from '../../engines/ingress/http/http';
import { startSampler, type Sampler } from '../../server/agents/sampler';
import { cpuPercent } from '../../drivers/runtime/usage';
import { countPoints, networkBetween, trafficPoints, usagePoints } from '../../server/agents/sampled_points';
import { openObserved, type Observed } from '../support/observers/observed';
import { withinMs } from '../support/builds/runtime';

let observed: Observed;
let ingress: IngressDriver;
let sampler: Sampler;
let app: http.Server;

beforeAll(async () => {
  observed = await openObserved();
  const parts = { certificate: () => Promise.resolve(null), challenge: () => Promise.resolve(null), line: () => {} };
  ingress = await openIngress({ host: '127.0.0.1', port: 0, tlsPort: null, trustProxy: 0, parts });
  app = http.createServer((request, response) => {
    response.statusCode = request.url === '/broken' ? 500 : 200;
    response.end('x'.repeat(1000));
  });
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
  // Only when it is asked to.
  sampler = startSampler(
    { database: observed.database, runtime: observed.trial.runtime, ingress, log: createLog('silent') },
    3_600_000,
  );
});
afterAll(async () => {
  await sampler.stop();
  await ingress.close(0);
  app.close();
  await observed.close();
});

const points = (metric: string, part = 'web'): Promise<{ samples: number; total: number }[]> =>
  observed.sql(
    `select sum(samples)::int as samples, sum(total)::float8 as total from metric_points
      where resource_id = $1 and metric = $2 and part_id = $3 having count(*) > 0`,
    [observed.application.id, metric, observed.application.processes[part]],
  );

it('a busy instance shows its processor time and memory, without being changed', async () => {
  const id = await observed.instance();
  const handle = await observed.trial.start(observed.trial.spec(id, 'while :; do :; done'));
  await observed.sql('update instances set handle = $2, updated_at = $3 where id = $1', [
    id,
    JSON.stringify(handle),
    '2026-01-01T00:00:00.000Z',
  ]);
  const row = async (): Promise<Record<string, number>> =>
    (
      await observed.sql<Record<string, number>>(
        `select cpu_percent, memory_mb, version, observed_generation, generation, updated_at from instances
          where id = $1`,
        [id],
      )
    )[0]!;
  const before = await row();
  await sampler.sample();
  expect((await row()).cpu_percent).toBeNull();
  await sleep(1_500);
  await sampler.sample();
  const after = await row();
  expect(after.cpu_percent).toBeGreaterThan(5);
  expect(after.cpu_percent).toBeLessThan(150);
  expect(after.memory_mb).toBeGreaterThanOrEqual(1);
  expect({ ...after, cpu_percent: null, memory_mb: null }).toEqual(before);
  expect((await points('cpu_percent'))[0]).toEqual({ samples: 1, total: after.cpu_percent });
  expect((await points('memory_mb'))[0]?.samples).toBe(2);
  expect(await points('instances')).toEqual([{ samples: 2, total: 2 }]);
  expect(await points('instances', 'worker')).toEqual([{ samples: 2, total: 0 }]);
  await observed.trial.runtime.destroy(id, driverContext(withinMs));
  await observed.sql('delete from instances where id = $1', [id]);
});

it('requests are counted at the process type web, those that the ingress answers too', async () => {
  const instance = mintId('ins');
  const { port } = app.address() as { port: number };
  const route = {
    application_id: observed.application.id,
    preview_id: null,
    state: 'running' as const,
    maintenance: false,
    force_https: false,
    request_timeout_ms: 5_000,
    sticky: false,
  };
  ingress.replaceRoutes([
    { ...route, hosts: ['observed.example.com'], targets: [{ instance_id: instance, port }] },
    { ...route, hosts: ['nobody.example.com'], targets: [] },
  ]);
  const get = (host: string, path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      http
        .get({ port: ingress.ports.http, path, headers: { host }, agent: false }, (response) =>
          response.resume().on('end', () => resolve(response.statusCode ?? 0)),
        )
        .on('error', reject);
    });
  const statuses = [
    await get('observed.example.com', '/'),
    await get('observed.example.com', '/'),
    await get('observed.example.com', '/broken'),
    await get('nobody.example.com', '/'),
  ];
  expect(statuses.slice(0, 3)).toEqual([200, 200, 500]);
  await sampler.sample();
  await sampler.sample();
  expect((await points('requests'))[0]?.total).toBe(4);
  expect((await points('responses_2xx'))[0]?.total).toBe(2);
  expect((await points('responses_5xx'))[0]?.total).toBe(2);
  expect((await points('network_out_bytes'))[0]?.total).toBeGreaterThan(3_000);
  const [histogram] = await observed.sql<{ buckets: string[] }>(
    `select buckets from metric_points where metric = 'response_time'`,
  );
  expect(histogram?.buckets.reduce((sum, count) => sum + Number(count), 0)).toBeGreaterThanOrEqual(3);
});

it('rows that somebody works on are not waited for', async () => {
  const id = await observed.instance();
  const handle = await observed.trial.start(observed.trial.spec(id, 'sleep 60'));
  await observed.sql('update instances set handle = $2 where id = $1', [id, JSON.stringify(handle)]);
  await observed.database.transaction(async (sql) => {
    await sql.query({ name: 'hold', text: 'select 1 from instances where id = $1 for update' }, [id]);
    const began = performance.now();
    await sampler.sample();
    expect(performance.now() - began).toBeLessThan(8_000);
  });
  expect((await points('memory_mb'))[0]?.samples).toBeGreaterThanOrEqual(3);
  await observed.trial.runtime.destroy(id, driverContext(withinMs));
});

describe('points', () => {
  const at = new Date();
  const usage = (cpu_seconds: number, received: number | null): Parameters<typeof cpuPercent>[0] => ({
    cpu_seconds,
    memory_bytes: 1,
    network: received === null ? null : { received_bytes: received, sent_bytes: 2 * received },
  });

  it('of processor time are percent of one core', () => {
    expect(cpuPercent(usage(1, null), usage(2.5, null), 15_000)).toBe(10);
    expect(cpuPercent(usage(5, null), usage(1, null), 15_000)).toBe(0);
  });

  it('of the network come from the host where it counts, else from the ingress', () => {
    expect(networkBetween(usage(0, 100), usage(0, 150))).toEqual({ received: 50, sent: 100 });
    expect(networkBetween(usage(0, null), usage(0, 150))).toBeNull();
    const instance = { id: 'ins_1', project_id: 'prj', application_id: 'app', preview_id: null, process_id: 'prc' };
    const used = usagePoints([{ instance, cpu_percent: null, memory_mb: 5, network: { received: 50, sent: 100 } }], at);
    expect(used.map(({ metric, total }) => [metric, total])).toEqual([
      ['memory_mb', 5],
      ['network_in_bytes', 50],
      ['network_out_bytes', 100],
    ]);
    const traffic: Traffic = {
      application_id: 'app',
      preview_id: 'pvw',
      instance_id: 'ins_1',
      requests: 1,
      responses: { '2xx': 1, '3xx': 0, '4xx': 0, '5xx': 0 },
      received_bytes: 10,
      sent_bytes: 20,
      latency: [],
    };
    const part = { application_id: 'app', project_id: 'prj', process_id: 'prc' };
    const names = (counted: string[]): string[] =>
      trafficPoints(traffic, part, new Set(counted), at).map(({ metric, resource_id }) => `${resource_id} ${metric}`);
    expect(names(['ins_1'])).toEqual(['pvw requests', 'pvw responses_2xx']);
    expect(names([])).toEqual(['pvw requests', 'pvw responses_2xx', 'pvw network_in_bytes', 'pvw network_out_bytes']);
  });

  it('of a process type count its instances, none too', () => {
    expect(countPoints([{ id: 'prc', project_id: 'prj', application_id: 'app', running: 0 }], at)).toEqual([
      { at, project_id: 'prj', resource_id: 'app', part_id: 'prc', metric: 'instances', samples: 1, total: 0 },
    ]);
  });
});
