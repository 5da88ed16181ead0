// What the metrics API of a cluster says, as usage of instances.
import { driverContext } from '../../../core/driver';
import type { KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { openPodUsage } from '../../../drivers/workload/kubernetes/pod_usage';
import { oddApiServer, respond, type OddApiServer } from '../../support/kubernetes/odd_api_server';

let api: OddApiServer;
let client: KubernetesClient;
oddApiServer((opened) => ({ api, client } = opened));

const ctx = () => driverContext(5_000);
const pod = (name: string, uid: string) => ({ metadata: { namespace: 'platform-prj-1', name, uid } });
/** As metrics-server 0.7 answers. */
const measured = (name: string, cpu: string, memory: string) => ({
  ...{ metadata: { namespace: 'platform-prj-1', name }, timestamp: '2026-01-01T00:00:00Z', window: '15.1s' },
  containers: [{ name: 'web', usage: { cpu, memory } }],
});
const answerWith = (...items: object[]): void =>
  api.answer((_request, response) =>
    respond(response, 200, { kind: 'PodMetricsList', apiVersion: 'metrics.k8s.io/v1beta1', metadata: {}, items }),
  );

test('rates become counters that grow, of known pods of this installation alone', async () => {
  let at = 0;
  const usage = openPodUsage(client, 'platform', () => at);
  usage.changed(pod('web-1', 'uid-1'));
  answerWith(measured('web-1', '250000000n', '65536Ki'), measured('of-others', '1', '1Gi'));
  expect([...(await usage.read(ctx()))]).toEqual([
    ['uid-1', { cpu_seconds: 0, memory_bytes: 67_108_864, network: null }],
  ]);
  expect(api.requests.at(-1)?.url.pathname).toBe('/apis/metrics.k8s.io/v1beta1/pods');
  expect(api.requests.at(-1)?.url.searchParams.get('labelSelector')).toBe('platform-api/installation=platform');
  at = 10_000;
  expect((await usage.read(ctx())).get('uid-1')?.cpu_seconds).toBeCloseTo(2.5);
  answerWith(measured('web-1', '1', '64Mi'));
  at = 12_000;
  expect((await usage.read(ctx())).get('uid-1')?.cpu_seconds).toBeCloseTo(4.5);
});

test('of some pods alone, the API is asked for these', async () => {
  answerWith();
  await openPodUsage(client, 'platform').read(ctx(), { 'platform-api/database': 'db_1' });
  expect(api.requests.at(-1)?.url.searchParams.get('labelSelector')).toBe(
    'platform-api/installation=platform,platform-api/database=db_1',
  );
});

test('a pod of the same name that came later begins at zero', async () => {
  let at = 0;
  const usage = openPodUsage(client, 'platform', () => at);
  usage.changed(pod('web-1', 'uid-1'));
  answerWith(measured('web-1', '1', '64Mi'));
  await usage.read(ctx());
  usage.changed(pod('web-1', 'uid-2'));
  usage.removed('uid-1');
  at = 5_000;
  expect((await usage.read(ctx())).get('uid-2')).toMatchObject({ cpu_seconds: 0 });
});

test('a cluster without a metrics server has no usage', async () => {
  api.answer((_request, response) => respond(response, 404, '404 page not found'));
  expect((await openPodUsage(client, 'platform').read(ctx())).size).toBe(0);
});
