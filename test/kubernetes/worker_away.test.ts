/** @tier heavy @quarter 2 @covers server/agents/workloads drivers/workload server/start_ingress.ts */
// Requests while the worker is killed, and what it knows of the cluster while its connections are cut all the time.
import { setTimeout as sleep } from 'node:timers/promises';
import { loadKubeconfig } from '../../drivers/kubernetes/client/load_access';
import { kubectl } from '../cluster/kubectl';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import type { Plant } from '../support/processes/bad_days_program';
import { endPrograms, startProgram, type Program } from '../support/processes/program';
import { kubeconfigThrough, startCuttingProxy, type CuttingProxy } from '../support/kubernetes/cutting_proxy';
import { startOnCluster, startPlantOnCluster } from '../support/kubernetes/service_on_cluster';
import { lostOf, startTimedLoad } from '../support/kubernetes/timed_load';
import { waitFor } from '../support/wait_for';

const AWAY_MS = 20_000;
const CUT_EVERY_MS = 3_000;
const DEPLOYMENTS = 3;
const site = (text: string) => ({ Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': text });

describeOnClusterOfMachine('a worker that is killed', (cluster) => {
  let plant: Plant;
  let ingress: Program;
  let port: number;
  beforeAll(async () => {
    plant = await startPlantOnCluster(cluster());
    ingress = startProgram(
      {
        ...{ DATABASE_URL: plant.databaseUrl, PLATFORM_DATA_DIR: plant.dataDir, WORKLOADS: 'kubernetes' },
        ...{ KUBECONFIG: cluster().kubeconfig, REGISTRY_PORT: '5000' },
      },
      { entry: 'server/ingress.ts' },
    );
    await ingress.ready();
    const line =
      ingress
        .out()
        .split('\n')
        .find((one) => one.includes('"the ingress is ready"')) ?? '{}';
    ({ http: port } = JSON.parse(line) as { http: number });
  }, 120_000);
  afterAll(async () => {
    await plant?.close();
    await endPrograms();
  }, 120_000);

  test('an ingress of its own loses no request of 20 seconds without it, nor while it comes back', async () => {
    const application = await plant.application(site('here'));
    expect((await application.deploy()).status).toBe('active');
    const load = startTimedLoad(port, application.host);
    await waitFor('the first answer', () => Promise.resolve(load.visits.some(({ outcome }) => outcome === '200')));
    const servedAt = performance.now();
    await plant.kill();
    await sleep(AWAY_MS);
    await plant.start();
    application.push(site('there'));
    expect((await application.deploy()).status).toBe('active');
    const visits = (await load.stop()).filter(({ at }) => at > servedAt);
    process.stdout.write(`worker killed: ${visits.length} requests, ${lostOf(visits).length} lost\n`);
    expect(visits.length).toBeGreaterThan(100);
    expect(lostOf(visits)).toEqual([]);
  }, 240_000);
});

describeOnClusterOfMachine('a worker whose connections to the cluster are cut all the time', (cluster) => {
  let service: DeployService;
  let proxy: CuttingProxy;
  beforeAll(async () => {
    const { server } = await loadKubeconfig(cluster().kubeconfig);
    proxy = await startCuttingProxy(Number(server.port), server.hostname);
    service = await startOnCluster(cluster(), {
      settings: { KUBECONFIG: kubeconfigThrough(cluster().kubeconfig, proxy) },
    });
  }, 120_000);
  afterAll(async () => {
    await service?.close();
    proxy?.close();
  }, 120_000);

  test('deployments succeed, no request is lost, and its rows are the pods of the cluster', async () => {
    const application = await service.application(site('0'));
    expect((await application.deploy()).status).toBe('active');
    const load = startTimedLoad(service.platform.config.ingressPort, application.host);
    const cutter = setInterval(() => proxy.cut(), CUT_EVERY_MS);
    for (let count = 1; count <= DEPLOYMENTS; count += 1) {
      application.push(site(String(count)));
      expect((await application.ended((await application.ask()).id, 120_000)).status).toBe('active');
      expect((await application.visit()).body).toBe(String(count));
    }
    await waitFor('rows that are the pods', async () => (await rows(application)) === (await pods(application)));
    clearInterval(cutter);
    const visits = await load.stop();
    process.stdout.write(`cut ${proxy.cuts} connections: ${visits.length} requests, ${lostOf(visits).length} lost\n`);
    expect(proxy.cuts).toBeGreaterThan(3);
    expect(lostOf(visits)).toEqual([]);
  }, 400_000);

  async function rows({ id }: TestApplication): Promise<string> {
    const found = await service.sql<{ pod_uid: string }>('select pod_uid from instances where application_id = $1', [
      id,
    ]);
    return found
      .map(({ pod_uid }) => pod_uid)
      .sort()
      .join(' ');
  }

  async function pods({ id }: TestApplication): Promise<string> {
    const selector = `platform-api/application=${id}`;
    const args = ['get', 'pods', '-A', '-l', selector, '-o', 'jsonpath={.items[*].metadata.uid}'];
    return (await kubectl(cluster().kubeconfig, ...args)).split(' ').sort().join(' ');
  }
});
