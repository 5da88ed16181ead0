/** @user any */
// Metrics of applications on a cluster without a metrics server: what cannot be measured says so, the rest comes.
import { createLog } from '../../core/log/log';
import { driverContext, type DriverContext } from '../../core/driver';
import { openKubernetesClient } from '../../drivers/kubernetes/client/client';
import { measuresPods } from '../../drivers/workload/kubernetes/pod_usage';
import { addMetricPoints } from '../../models/applications/metric_point';
import { keepClusterFacts } from '../../server/agents/workloads/cluster_facts';
import { respond, startOddApiServer, type OddApiServer } from '../support/kubernetes/odd_api_server';
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;
let api: OddApiServer;

beforeAll(async () => {
  service = await startService({ settings: { WORKLOADS: 'kubernetes' } });
  api = await startOddApiServer();
  const { body } = await service.call('POST', '/v2/applications', {
    body: { name: 'measured', source: { type: 'preset', preset: 'static-site' } },
  });
  application = await deployed(service, body.id);
});
afterAll(async () => {
  await api?.close();
  await service?.close();
});

const metrics = (query: string): Promise<Answer> =>
  service.call('GET', `/v2/applications/${application.id}/metrics?${query}`);
const scale = (metric: string, target: number): Promise<Answer> =>
  service.call('POST', `/v2/applications/${application.id}/processes/${application.processes.web}/scale`, {
    body: { autoscaling: { min_instances: 1, max_instances: 2, metric, target } },
  });

/** As the worker notices it, from a cluster that answers a list of metrics so. */
async function clusterAnswers(status: number, body: object | string): Promise<void> {
  api.answer((_request, response) => respond(response, status, body));
  const client = openKubernetesClient(api.access());
  expect(await measuresPods(client, 'platform', driverContext(5_000))).toBe(status === 200);
  const { database } = service.platform;
  const workloads = { measures: (ctx: DriverContext) => measuresPods(client, 'platform', ctx) };
  await keepClusterFacts({ database, workloads, log: createLog('silent') }).close();
  client.close();
}

test('before the worker has looked, metrics without points are no error', async () => {
  expect((await metrics('metrics=cpu_percent')).status).toBe(200);
});

test('CPU and memory alone are refused with what is missing; other metrics come', async () => {
  await clusterAnswers(404, '404 page not found');
  for (const query of ['metrics=cpu_percent', 'metrics=cpu_percent,memory_mb']) {
    const { status, body } = await metrics(query);
    expect([status, body.code]).toEqual([409, 'engine_unavailable']);
    expect(body.detail).toContain('no metrics server (metrics.k8s.io)');
  }
  for (const query of ['', 'metrics=requests', 'metrics=cpu_percent,requests'])
    expect((await metrics(query)).status).toBe(200);
  const { errors } = await service.graphql(
    `{ getApplication(id: "${application.id}") { metrics(metrics: [memory_mb]) { series { metric } } } }`,
  );
  expect(errors?.[0]?.extensions.code).toBe('engine_unavailable');
});

test('autoscaling by CPU or memory is refused, by requests it is not', async () => {
  expect((await scale('cpu', 50)).body.code).toBe('engine_unavailable');
  expect((await scale('memory', 50)).body.code).toBe('engine_unavailable');
  expect((await scale('requests_per_second', 50)).status).toBe(202);
});

test('what was measured before is still shown', async () => {
  const part_id = application.processes.web as string;
  const about = { project_id: service.project, resource_id: application.id, part_id, samples: 1 };
  const minute = new Date(Math.floor(Date.now() / 60_000) * 60_000 - 60_000);
  await addMetricPoints(service.platform.database, [{ ...about, at: minute, metric: 'cpu_percent', total: 12 }]);
  const { status, body } = await metrics('metrics=cpu_percent');
  expect([status, body.series[0].points[0].value]).toEqual([200, 12]);
  expect((await metrics('metrics=memory_mb')).body.code).toBe('engine_unavailable');
});

test('a metrics server that is registered and not there is none', async () => {
  await clusterAnswers(503, 'service unavailable\n');
  expect((await metrics('metrics=memory_mb')).body.code).toBe('engine_unavailable');
});

test('once the cluster has a metrics server, nothing is refused', async () => {
  await clusterAnswers(200, { kind: 'PodMetricsList', apiVersion: 'metrics.k8s.io/v1beta1', metadata: {}, items: [] });
  expect((await metrics('metrics=memory_mb')).status).toBe(200);
  expect((await scale('cpu', 50)).status).toBe(202);
});
