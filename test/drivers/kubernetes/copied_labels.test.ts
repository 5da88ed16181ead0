// Objects with the labels of this installation outside of the namespaces of its projects, as somebody makes who copies
// a manifest, or who wants the requests of an application: they are none of the platform's.
import { loadConfig } from '../../../core/config';
import { driverContext } from '../../../core/driver';
import { openKubernetesClient, type KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { claimVolumes } from '../../../drivers/workload/kubernetes/claims';
import type { WorkloadDriver, WorkloadInstance } from '../../../drivers/workload';
import { openKubernetesWorkloads } from '../../../drivers/workload/kubernetes/driver';
import { projectRoom } from '../../../server/platform/cluster';
import { respond, startOddApiServer, type OddApiServer } from '../../support/kubernetes/odd_api_server';

const networks = { ingressNamespace: null, ingressAddresses: [], egressAllow: [] };

let api: OddApiServer;
let client: KubernetesClient;
let workloads: WorkloadDriver;
beforeAll(async () => {
  api = await startOddApiServer();
  client = openKubernetesClient(api.access());
  workloads = openKubernetesWorkloads({ ...options(), log: () => undefined });
});
afterAll(async () => {
  await workloads.close();
  client.close();
  await api.close();
});

const options = () => ({ client, prefix: 'platform', networks, room: projectRoom(loadConfig({})) });
const ctx = () => driverContext(5_000);
const OURS = 'platform-prj-1';
const labels = {
  'platform-api/installation': 'platform',
  'platform-api/project': 'prj_1',
  'platform-api/workload': 'wkl_1',
};
const running = { phase: 'Running', podIP: '192.0.2.1', conditions: [{ type: 'Ready', status: 'True' }] };

/** One in the namespace of the project, and copies of it elsewhere. */
const copies = (more: object, of: object = labels): object[] =>
  [OURS, 'somewhere', 'platform-prj-2'].map((namespace) => ({
    ...more,
    metadata: { namespace, name: 'shop', uid: `uid-${namespace}`, resourceVersion: '1', labels: of },
  }));

/** A watch stays open. */
function serve(items: object[]): void {
  api.answer(({ method, url }, response) => {
    if (method === 'DELETE') return respond(response, 200, {});
    if (!url.searchParams.has('watch')) return respond(response, 200, { metadata: { resourceVersion: '1' }, items });
    response.writeHead(200).flushHeaders();
  });
}

const removed = (): string[] =>
  api.requests.filter(({ method }) => method === 'DELETE').map(({ url }) => url.pathname.split('/').at(-3) ?? '');

test('only the pods of the project are instances', async () => {
  const status = { ...running, containerStatuses: [{ ready: true, restartCount: 0, state: { running: {} } }] };
  serve(copies({ spec: { containers: [{ name: 'web' }] }, status }));
  // Without a stream for the output of each.
  expect((await workloads.listInstances(ctx())).map(({ uid, status }) => [uid, status])).toEqual([
    [`uid-${OURS}`, 'running'],
  ]);
  expect(await workloads.logs.list()).toEqual([]);
  const seen: string[] = [];
  const note = (instances: WorkloadInstance[]): void => void seen.push(...instances.map(({ uid }) => uid));
  await new Promise<void>((resolve) => {
    const followed = workloads.follow({
      changed: (instance) => note([instance]),
      removed: () => undefined,
      taskChanged: (id) => seen.push(id),
      listed(instances) {
        note(instances);
        followed.stop();
        resolve();
      },
    });
  });
  expect(seen).toEqual([`uid-${OURS}`, `uid-${OURS}`]);
  expect(await workloads.logs.list()).toEqual([`pod.uid-${OURS}`]);
});

test('a workload that is removed takes no copy along, and waits for none', async () => {
  serve(copies({}));
  expect(await workloads.remove({ id: 'wkl_1' }, ctx())).toBe(false);
  expect(new Set(removed())).toEqual(new Set([OURS]));
  serve(copies({}).slice(1));
  expect(await workloads.remove({ id: 'wkl_1' }, ctx())).toBe(true);
  expect(removed()).toEqual([]);
});

test('neither does a run', async () => {
  const ofRun = { ...labels, 'platform-api/run': 'run_1' };
  serve(copies({}, ofRun));
  expect(await workloads.tasks.destroy({ id: 'run_1' }, ctx())).toBe(false);
  expect(new Set(removed())).toEqual(new Set([OURS]));
  serve(copies({}, ofRun).slice(1));
  expect(await workloads.tasks.destroy({ id: 'run_1' }, ctx())).toBe(true);
  expect(await workloads.tasks.list(ctx())).toEqual([]);
  expect(removed()).toEqual([]);
});

test('copies of claims are no volumes', async () => {
  serve(copies({}, { ...labels, 'platform-api/volume': 'vol_1' }));
  const found: string[] = [];
  for await (const { owner_id } of claimVolumes({ ...options(), storageClass: null }).list(ctx())) found.push(owner_id);
  expect(found).toEqual(['vol_1']);
});
