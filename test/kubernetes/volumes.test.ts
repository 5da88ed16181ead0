/** @tier heavy @quarter 2 @covers drivers/volume jobs/volumes drivers/workload */
// Volumes of applications on a real cluster. Its disks are directories of a node, which an operator has prepared.
import { driverContext } from '../../core/driver';
import { loadConfig } from '../../core/config';
import { openKubernetesClient } from '../../drivers/kubernetes/client/client';
import { loadKubeconfig } from '../../drivers/kubernetes/client/load_access';
import { claimVolumes } from '../../drivers/workload/kubernetes/claims';
import { projectRoom } from '../../server/platform/cluster';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl } from '../cluster/kubectl';
import { startsOf } from '../conformance/workloads/bench';
import type { DeployService } from '../support/deployments/deploy';
import { addDisk, removeDisk } from '../support/kubernetes/disk';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const WITHIN_MS = 60_000;
const storageClass = `disks-${process.pid}`;

let service: DeployService;

/** Each start adds a line. */
const counting = {
  Procfile: 'web: sh start.sh\nworker: sh -c "exec sleep 1000"\n',
  'start.sh':
    'echo start >> /data/starts.txt && echo ok > /data/index.html\nexec busybox httpd -f -p "$PORT" -h /data\n',
};

describeOnClusterOfMachine('volumes of a cluster', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  beforeAll(async () => {
    await addDisk(cluster(), storageClass);
    service = await startOnCluster(cluster(), { settings: { KUBERNETES_STORAGE_CLASS: storageClass } });
  }, 60_000);
  afterAll(async () => {
    await service.close();
    await removeDisk(cluster(), storageClass);
  }, 120_000);

  const volumeOf = async (id: string): Promise<any> => (await service.call('GET', `/v2/volumes/${id}`)).body;

  test('files outlive their pods, all processes of the application are beside them, and the disk grows', async () => {
    const application = await service.application(counting);
    const made = await service.call('POST', '/v2/volumes', {
      body: { name: 'files', size_gb: 1, application_id: application.id, mount_path: '/data' },
    });
    expect(made.status).toBe(201);
    const { id } = made.body;
    const deployment = await application.deploy();
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    expect(await startsOf(application)).toBe(1);
    expect(await volumeOf(id)).toMatchObject({ status: 'in_use', enforcement: 'soft', used_bytes: null });
    const worker = (await application.get('/processes')).data.find(({ type }: { type: string }) => type === 'worker');
    await application.post(`/processes/${worker.id}/scale`, { instances: 2 });
    await waitFor(
      'two workers',
      async () =>
        (await application.get('/instances')).data.filter((one: any) => one.status === 'running').length === 3,
      WITHIN_MS,
    );
    const selector = `platform-api/application=${application.id}`;
    const nodes = await run('get', 'pods', '-A', '-l', selector, '-o', 'jsonpath={.items[*].spec.nodeName}');
    expect(nodes).toBe('node1 node1 node1');
    await application.post('/restart');
    await waitFor('a second start', async () => (await startsOf(application)) === 2, WITHIN_MS);
    await grows(id);
    await goes(id);
  }, 240_000);

  test('what the cluster cannot give is said, and what is not ours is left alone', async () => {
    const client = openKubernetesClient(await loadKubeconfig(cluster().kubeconfig));
    const networks = { ingressNamespace: null, ingressAddresses: [], egressAllow: [] };
    const room = projectRoom(loadConfig({}));
    const options = { client, prefix: `claims-${process.pid}`, networks, room, storageClass: 'absent' };
    const drivers = { absent: claimVolumes(options), present: claimVolumes({ ...options, storageClass }) };
    const volume = { id: 'vol_1', spec: { project_id: 'prj_1', size_gb: 1 } };
    const ctx = driverContext(WITHIN_MS);
    const absent = { state: 'absent' } as const;
    expect(await drivers.absent.fingerprint(ctx)).toMatchObject({
      healthy: false,
      reason: expect.stringContaining('no storage class absent'),
    });
    await expect(drivers.absent.ensure(volume, absent, ctx)).rejects.toMatchObject({ reason: 'unsupported' });
    expect(await drivers.present.ensure(volume, absent, ctx)).toMatchObject({ requeueMs: 2_000 });
    expect(await drivers.present.observe(volume, ctx)).toMatchObject({ state: 'present', upToDate: true });
    const lost = { ...volume, id: 'vol_2', ref: { driver: 'kubernetes', name: 'vol_2' } };
    await expect(drivers.present.ensure(lost, absent, ctx)).rejects.toMatchObject({ reason: 'conflict' });
    const claim = ['-n', `claims-${process.pid}-prj-1`, 'pvc', 'vol-1'];
    await run('label', ...claim, 'platform-api/installation=other', '--overwrite');
    expect(await drivers.present.observe(volume, ctx)).toMatchObject({ state: 'foreign' });
    await expect(drivers.present.ensure(volume, absent, ctx)).rejects.toMatchObject({ reason: 'conflict' });
    await drivers.present.remove(volume, absent, ctx);
    expect(await run('get', ...claim, '-o', 'name')).toContain('vol-1');
    await run('delete', 'namespace', `claims-${process.pid}-prj-1`);
    client.close();
  }, 90_000);

  async function grows(id: string): Promise<void> {
    const claim = ['-n', namespace(), 'pvc', id.replace('_', '-')] as const;
    await service.call('PATCH', `/v2/volumes/${id}`, { body: { size_gb: 2 } });
    await waitFor('a reason', async () => /not finished/.test((await volumeOf(id)).status_reason ?? ''));
    expect(await run('get', ...claim, '-o', 'jsonpath={.spec.resources.requests.storage}')).toBe('2Gi');
    const grown = JSON.stringify({ status: { capacity: { storage: '2Gi' } } });
    await run('patch', ...claim, '--subresource=status', '--type=merge', '-p', grown);
    await service.sql('update volumes set next_at = now() where id = $1', [id]);
    await waitFor('its new size', async () => (await volumeOf(id)).status_reason === null);
    const smaller = await service.call('PATCH', `/v2/volumes/${id}`, { body: { size_gb: 1 } });
    expect(smaller.body.code).toBe('volume_size_must_increase');
  }

  async function goes(id: string): Promise<void> {
    await service.call('PATCH', `/v2/volumes/${id}`, { body: { application_id: null } });
    await service.call('DELETE', `/v2/volumes/${id}`);
    await waitFor(
      'no claim',
      async () => (await run('get', 'pvc', '-n', namespace(), '-o', 'name')).trim() === '',
      2 * WITHIN_MS,
    );
    expect((await service.call('GET', `/v2/volumes/${id}`)).status).toBe(404);
  }

  const namespace = (): string =>
    `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;
});
