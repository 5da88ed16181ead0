/** @tier heavy @quarter 2 @covers drivers/workload jobs/applications jobs/volumes models/bin */
// Applications of a cluster in the bin: nothing of them runs there, their volumes keep the files, and a purge leaves
// nothing.
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import { startsOf } from '../conformance/workloads/bench';
import { binCalls } from '../support/bin_calls';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { addDisk, removeDisk } from '../support/kubernetes/disk';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;
const storageClass = `bin-${process.pid}`;
const KINDS = 'deployments,replicasets,pods,services,secrets,configmaps,jobs,poddisruptionbudgets,networkpolicies';

let service: DeployService;
const bin = binCalls(() => service);

/** Each start adds a line. */
const counting = {
  Procfile: 'web: sh start.sh\n',
  'start.sh':
    'echo start >> /data/starts.txt && echo "$GREETING" > /data/index.html\n' +
    'exec busybox httpd -f -p "$PORT" -h /data\n',
};
describeOnClusterOfMachine('the bin of a cluster', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  const namespace = (): string =>
    `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;
  const objectsOf = async ({ id }: { id: string }): Promise<string[]> => {
    const found = await run('get', KINDS, '-n', namespace(), '-l', `platform-api/application=${id}`, '-o', 'name');
    return found.split('\n').filter((line) => line !== '');
  };
  const claims = async (): Promise<string> => (await run('get', 'pvc', '-n', namespace(), '-o', 'name')).trim();
  const nothingRuns = (app: TestApplication): Promise<unknown> =>
    waitFor('nothing of it is in the cluster', async () => (await objectsOf(app)).length === 0, WITHIN_MS);
  const runs = (app: TestApplication): Promise<unknown> =>
    waitFor('it runs', async () => (await app.get()).status === 'running', WITHIN_MS);

  beforeAll(async () => {
    await addDisk(cluster(), storageClass);
    service = await startOnCluster(cluster(), {
      settings: {
        ...{ KUBERNETES_STORAGE_CLASS: storageClass, RETENTION_OF_DELETED_DAYS: '7' },
      },
    });
  }, 90_000);
  afterAll(async () => {
    const { call } = service;
    for (const { id } of await service.sql<{ id: string }>('select id from applications where deleted_at is null'))
      await call('DELETE', `/v2/applications/${id}`);
    for (const { id } of await service.sql<{ id: string }>('select id from volumes where deleted_at is null'))
      await call('DELETE', `/v2/volumes/${id}`);
    for (const entry of (await call('GET', `/v2/projects/${service.project}/bin`)).body.data) await bin.purge(entry);
    await service.close();
    await removeDisk(cluster(), storageClass);
  }, 240_000);

  test('an application and its volume go, come back with page and files, and a purge leaves nothing', async () => {
    const app = await service.application(counting);
    await service.call('PUT', `/v2/applications/${app.id}/env/GREETING`, { body: { value: 'hello' } });
    const attached = { application_id: app.id, mount_path: '/data' };
    const made = await service.call('POST', '/v2/volumes', { body: { name: 'files', size_gb: 1, ...attached } });
    expect(made.status).toBe(201);
    const volume = `/v2/volumes/${made.body.id}`;
    const deployment = await app.deploy();
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    expect([await startsOf(app), (await app.visit()).body.trim()]).toEqual([1, 'hello']);
    const kinds = (names: string[]): string[] => [...new Set(names.map((name) => name.replace(/\/.*/, '')))].sort();
    const had = kinds(await objectsOf(app));
    expect(had).toContain('deployment.apps');

    const ofApp = await bin.deleted(`/v2/applications/${app.id}`);
    await nothingRuns(app);
    expect((await app.visit()).status).toBe(404);
    const ofVolume = await bin.deleted(volume);
    await service.sql('update volumes set next_at = now()');
    expect(await claims()).toBe(`persistentvolumeclaim/${made.body.id.replace('_', '-')}`);

    expect(await bin.restored(ofApp)).toEqual([expect.stringContaining('`files` is deleted')]);
    expect(await bin.restored(ofVolume)).toEqual([expect.stringContaining('attached to the application')]);
    await runs(app);
    await waitFor('the files of before', async () => (await startsOf(app)) === 2, WITHIN_MS);
    expect((await app.visit()).body.trim()).toBe('hello');
    expect((await service.call('GET', volume)).body).toMatchObject({ ...attached, status: 'in_use' });
    expect(kinds(await objectsOf(app))).toEqual(had);
    app.push({ 'note.txt': 'two' });
    expect((await app.deploy()).status).toBe('active');

    const [again, volumeAgain] = [await bin.deleted(`/v2/applications/${app.id}`), await bin.deleted(volume)];
    expect([(await bin.purge(again)).status, (await bin.purge(volumeAgain)).status]).toEqual([204, 204]);
    await nothingRuns(app);
    await waitFor('no claim', async () => (await claims()) === '', WITHIN_MS);
    await waitFor('its row goes', async () => !(await service.sql('select 1 from applications')).length, WITHIN_MS);
  }, 300_000);
});
