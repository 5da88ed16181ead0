// Two installations that were given the same KUBERNETES_NAMESPACE_PREFIX: the one has no rows of what the other runs,
// and takes none of it for left over.
import { loadConfig } from '../../../core/config';
import { driverContext } from '../../../core/driver';
import { openKubernetesClient, type KubernetesClient } from '../../../drivers/kubernetes/client/client';
import { claimVolumes, type ClaimOptions } from '../../../drivers/workload/kubernetes/claims';
import type { WorkloadDriver } from '../../../drivers/workload';
import { openKubernetesWorkloads } from '../../../drivers/workload/kubernetes/driver';
import { projectRoom } from '../../../server/platform/cluster';
import { serveObjects, type ObjectStore } from '../../support/kubernetes/object_store';
import { startOddApiServer, type OddApiServer } from '../../support/kubernetes/odd_api_server';
import { workloadSample } from '../../support/kubernetes/workload_sample';

const NAMESPACE = '/api/v1/namespaces/platform-prj-1';

let api: OddApiServer;
let client: KubernetesClient;
let store: ObjectStore;
let one: WorkloadDriver;
let other: WorkloadDriver;
beforeAll(async () => {
  api = await startOddApiServer();
  client = openKubernetesClient(api.access());
});
beforeEach(() => {
  store = serveObjects(api);
  [one, other] = [open('one'), open('other')];
});
afterEach(() => Promise.all([one.close(), other.close()]));
afterAll(async () => {
  client.close();
  await api.close();
});

function optionsOf(id?: string): ClaimOptions {
  const networks = { ingressNamespace: null, ingressAddresses: [], egressAllow: [] };
  const room = projectRoom(loadConfig({}));
  const installation = id === undefined ? undefined : () => Promise.resolve(id);
  return { client, prefix: 'platform', networks, room, storageClass: null, installation };
}

const open = (id?: string): WorkloadDriver => openKubernetesWorkloads({ ...optionsOf(id), log: () => undefined });
const ctx = () => driverContext(5_000);
const metadataOf = (name: string, label: string, id: string) => ({
  ...{ name, namespace: 'platform-prj-1', uid: `uid-${name}` },
  labels: { 'platform-api/installation': 'platform', 'platform-api/project': 'prj_1', [`platform-api/${label}`]: id },
});

async function all<T>(found: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of found) items.push(item);
  return items;
}

/** What an installation would look for rows of. */
async function sweepable(driver: WorkloadDriver, id: string): Promise<unknown[]> {
  const claims = await all(claimVolumes(optionsOf(id)).list(ctx()));
  const workloads = await all(driver.list(ctx()));
  return [
    ...workloads.map((each) => each.id),
    ...(await driver.tasks.list(ctx())),
    ...claims.map(({ owner_id }) => owner_id),
    ...(await driver.listProjects(ctx())).map(({ project_id }) => project_id),
  ];
}

test('what is in the namespaces of the other one is not swept, and not removed with its project', async () => {
  await one.ensure(workloadSample(), ctx());
  const paths = {
    jobs: '/apis/batch/v1/namespaces/platform-prj-1/jobs/run-1',
    claims: '/api/v1/namespaces/platform-prj-1',
  };
  store.objects.set(paths.jobs, { metadata: metadataOf('run-1', 'run', 'run_1') });
  store.objects.set(`${paths.claims}/persistentvolumeclaims/vol-1`, {
    metadata: metadataOf('vol-1', 'volume', 'vol_1'),
  });
  expect(await sweepable(one, 'one')).toEqual(['wkl_1', 'run_1', 'vol_1', 'prj_1']);
  expect(await sweepable(other, 'other')).toEqual([]);
  expect(await other.removeProject('prj_1', ctx())).toContain('is not of this installation');
  await expect(other.ensure(workloadSample(), ctx())).rejects.toMatchObject({ reason: 'conflict' });
  expect(api.requests.filter(({ method }) => method === 'DELETE')).toEqual([]);
});

test('a namespace from before installations had an id is of the one that has its project', async () => {
  const before = open();
  await before.ensure(workloadSample(), ctx());
  expect(store.find(NAMESPACE).metadata.annotations).toBeUndefined();
  expect(await sweepable(one, 'one')).toEqual(['wkl_1', 'prj_1']);
  await one.ensure(workloadSample(), ctx());
  expect(store.find(NAMESPACE).metadata.annotations).toEqual({ 'platform-api/installation-id': 'one' });
  expect(await sweepable(other, 'other')).toEqual([]);
  await before.close();
});
