// What a cluster measures of pods, as columns of instances and as points.
import { LATENCY_BOUNDS_MS } from '../../core/log/latency';
import { createLog } from '../../core/log/log';
import { openKubernetesClient } from '../../drivers/kubernetes/client/client';
import { openPodUsage } from '../../drivers/workload/kubernetes/pod_usage';
import { startSampler } from '../../server/agents/sampler';
import { withPods } from '../../server/agents/workloads/usage';
import { respond, startOddApiServer, type OddApiServer } from '../support/kubernetes/odd_api_server';
import { openObserved, type Observed } from '../support/observers/observed';

let observed: Observed;
let api: OddApiServer;

beforeAll(async () => {
  observed = await openObserved();
  api = await startOddApiServer();
});
afterAll(async () => {
  await api.close();
  await observed.close();
});

test('a pod shows the rate and the memory that the cluster measures, and what starts anew begins again', async () => {
  const id = await observed.instance();
  await observed.sql(`update instances set handle = null, pod_uid = 'uid-1', started_at = now() where id = $1`, [id]);
  const client = openKubernetesClient(api.access());
  let at = 0;
  const pods = openPodUsage(client, 'platform', () => at);
  pods.changed({ metadata: { namespace: 'n', name: 'web-1', uid: 'uid-1' } });
  const items = [
    { metadata: { namespace: 'n', name: 'web-1' }, containers: [{ name: 'web', usage: { cpu: '2', memory: '96Mi' } }] },
  ];
  api.answer((_request, response) => respond(response, 200, { kind: 'PodMetricsList', metadata: {}, items }));
  const runtime = withPods(observed.trial.runtime, { usage: (ctx) => pods.read(ctx) }, createLog('silent'));
  const ingress = { takeTraffic: () => [] };
  const parts = { database: observed.database, runtime, ingress, log: createLog('silent') };
  const sampler = startSampler(parts, 3_600_000);
  const usage = async (): Promise<object | undefined> =>
    (await observed.sql<object>('select cpu_percent, memory_mb from instances where id = $1', [id]))[0];
  await sampler.sample();
  expect(await usage()).toEqual({ cpu_percent: null, memory_mb: 96 });
  at = 60_000;
  await sampler.sample();
  expect((await usage()) as { cpu_percent: number }).toMatchObject({ memory_mb: 96, cpu_percent: expect.any(Number) });
  await observed.sql(`update instances set started_at = now() + interval '1 hour' where id = $1`, [id]);
  await sampler.sample();
  expect(await usage()).toEqual({ cpu_percent: null, memory_mb: 96 });
  await sampler.stop();
  client.close();
});

test('a metrics server that is away holds up nothing else', async () => {
  const id = await observed.instance();
  await observed.sql(`update instances set handle = null, pod_uid = 'uid-2', started_at = now() where id = $1`, [id]);
  const [{ application_id } = { application_id: '' }] = await observed.sql<{ application_id: string }>(
    'select application_id from instances where id = $1',
    [id],
  );
  const client = openKubernetesClient(api.access());
  const pods = openPodUsage(client, 'platform');
  api.answer((_request, response) => respond(response, 503, 'service unavailable'));
  const warnings: unknown[] = [];
  const runtime = withPods(observed.trial.runtime, { usage: (ctx) => pods.read(ctx) }, {
    warn: (...about: unknown[]) => void warnings.push(about),
  } as never);
  const responses = { '2xx': 7, '3xx': 0, '4xx': 0, '5xx': 0 };
  const latency = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0);
  const traffic = { application_id, preview_id: null, instance_id: id, requests: 7, responses, latency };
  const counted = [{ ...traffic, received_bytes: 0, sent_bytes: 0 }];
  const parts = { database: observed.database, runtime, ingress: { takeTraffic: () => counted.splice(0) } };
  const sampler = startSampler({ ...parts, log: createLog('silent') }, 3_600_000);
  await sampler.sample();
  await sampler.stop();
  const points = await observed.sql<{ total: number }>(
    `select total from metric_points where resource_id = $1 and metric = 'requests'`,
    [application_id],
  );
  expect(points.map(({ total }) => Number(total))).toEqual([7]);
  expect(warnings).toHaveLength(1);
  client.close();
});
