/** @tier heavy @quarter 2 @covers drivers/workload server/agents/workloads server/start_ingress.ts */
// The address of a pod that has gone is given to a pod of another application while the worker is away: visitors of the
// one never reach the other, and visitors of the other reach its new pod.
import { readdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadKubeconfig } from '../../drivers/kubernetes/client/load_access';
import type { TestCluster } from '../cluster/cluster';
import { kubectl } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { TestApplication } from '../support/deployments/deploy';
import { kubeconfigThrough, startCuttingProxy, type CuttingProxy } from '../support/kubernetes/cutting_proxy';
import { startPlantOnCluster } from '../support/kubernetes/service_on_cluster';
import type { Plant } from '../support/processes/bad_days_program';
import { endPrograms, startProgram } from '../support/processes/program';
import { waitFor } from '../support/wait_for';
import { withConfig } from '../support/config';

const NODE = 'node1';
const OTHER_NODE = 'node2';
const VISIT_EVERY_MS = 20;
/** Longer than an address is trusted because it was confirmed once. */
const AWAY_MS = 20_000;
const SOON_MS = 5_000;
/** An API server that was away is asked again after five seconds at most. */
const AGAIN_MS = 20_000;
const site = (text: string) => ({ Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': text });

interface Pod {
  name: string;
  namespace: string;
  address: string;
}

/** Status and body, for a request with cookies. */
function visit(port: number, host: string): Promise<string> {
  return new Promise((resolve) => {
    const headers = { host, cookie: 'session=secret' };
    const request = http.get({ port, headers, agent: false, timeout: 5_000 }, (response) => {
      let body = '';
      response.on('data', (bytes: Buffer) => (body += bytes.toString()));
      response.on('end', () => resolve(response.statusCode === 200 ? body : String(response.statusCode)));
      response.on('error', () => resolve('broken'));
    });
    request.on('timeout', () => request.destroy()).on('error', () => resolve('broken'));
  });
}

const stops: (() => void)[] = [];

/** Visits until it is stopped. @returns what was answered */
function keepVisiting(ports: readonly number[], host: string): () => Promise<Set<string>> {
  const answers = new Set<string>();
  let isStopped = false;
  stops.push(() => (isStopped = true));
  const lanes = ports.map(async (port) => {
    while (!isStopped) {
      answers.add(await visit(port, host));
      await sleep(VISIT_EVERY_MS);
    }
  });
  return async () => {
    isStopped = true;
    await Promise.all(lanes);
    return answers;
  };
}

describeOnTestCluster('an address of a pod that is given to another one', (cluster) => {
  let plant: Plant;
  let proxy: CuttingProxy;
  let ports: number[];
  let applications: { one: TestApplication; other: TestApplication };
  let isAway = false;
  const kill = async (): Promise<void> => {
    isAway = true;
    await plant.kill();
  };
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);

  beforeAll(async () => {
    const { server } = await loadKubeconfig(cluster().kubeconfig);
    proxy = await startCuttingProxy(Number(server.port), server.hostname);
    const KUBECONFIG = kubeconfigThrough(cluster().kubeconfig, proxy);
    // Where both have their pods, and no others come in between.
    await run('cordon', OTHER_NODE);
    plant = await startPlantOnCluster(cluster(), { KUBECONFIG, ...withConfig({ ingressProcess: 'separate' }) });
    ports = [plant.ingressPort, await startFurtherIngress(plant, KUBECONFIG)];
    applications = { one: await plant.application(site('one')), other: await plant.application(site('other')) };
    for (const application of Object.values(applications)) expect((await application.deploy()).status).toBe('active');
  }, 240_000);
  afterEach(() => stops.splice(0).forEach((stop) => stop()));
  afterAll(async () => {
    proxy?.resume();
    if (isAway) await plant.start();
    await plant?.close();
    await endPrograms();
    proxy?.close();
  }, 180_000);

  const podsOf = async ({ id }: TestApplication): Promise<Pod[]> => {
    const line = '{.metadata.name} {.metadata.namespace} {.status.podIP}{"\\n"}';
    const selector = ['-A', '-l', `platform-api/application=${id}`, '-o', `jsonpath={range .items[*]}${line}{end}`];
    const lines = (await run('get', 'pods', ...selector)).split('\n').filter((one) => one.trim() !== '');
    return lines.map((one) => {
      const [name = '', namespace = '', address = ''] = one.split(' ');
      return { name, namespace, address };
    });
  };

  /** The other one gets a new pod, at the address that the first one had. */
  async function takeOver(): Promise<void> {
    const { one, other } = applications;
    const [before] = (await podsOf(one)) as [Pod];
    const deployments = await run(
      'get',
      'deployments',
      '-n',
      before.namespace,
      '-o',
      'name',
      '-l',
      `platform-api/application=${one.id}`,
    );
    await run('scale', '-n', before.namespace, deployments.trim(), '--replicas=0');
    await waitFor('its end', async () => (await podsOf(one)).length === 0, 60_000);
    giveNext(cluster(), before.address);
    const [old] = (await podsOf(other)) as [Pod];
    await run('delete', 'pod', '-n', old.namespace, old.name, '--wait=false');
    await waitFor(
      'the new pod',
      async () => (await podsOf(other)).some(({ address }) => address === before.address),
      60_000,
    );
    await run('wait', '-n', old.namespace, `--for=delete`, `pod/${old.name}`, '--timeout=60s');
    // The node takes some time to see that another one has the address.
    const [taken] = (await podsOf(other)) as [Pod];
    await run('wait', '-n', old.namespace, '--for=condition=Ready', `pod/${taken.name}`, '--timeout=120s');
  }

  test('while the worker is away, visitors reach the pod that is theirs, and no other', async () => {
    const { one, other } = applications;
    for (const port of ports) {
      await waitFor('both', async () => (await visit(port, one.host)) === 'one');
      await waitFor('both', async () => (await visit(port, other.host)) === 'other');
    }
    await kill();
    const answersOfOne = keepVisiting(ports, one.host);
    const answersOfOther = keepVisiting(ports, other.host);
    await takeOver();
    for (const port of ports)
      await waitFor('the new pod', async () => (await visit(port, other.host)) === 'other', SOON_MS);
    await sleep(2_000);
    expect([...(await answersOfOne())].sort()).toEqual(['503', 'one']);
    expect(await answersOfOther()).toContain('other');
    expect(await answersOfOther()).not.toContain('one');
    await plant.start();
    isAway = false;
    await waitFor('its instances', async () => (await visit(ports[0] as number, one.host)) === 'one', 120_000);
  }, 400_000);

  test('while the cluster is away too, pods answer that were there before, and no others', async () => {
    const { one, other } = applications;
    for (const port of ports) await waitFor('both', async () => (await visit(port, one.host)) === 'one', 60_000);
    await kill();
    proxy.pause();
    const whileAway = keepVisiting(ports, one.host);
    await sleep(AWAY_MS);
    expect([...(await whileAway())]).toEqual(['one']);
    const answersOfOne = keepVisiting(ports, one.host);
    await takeOver();
    await sleep(2_000);
    expect((await answersOfOne()).has('other')).toBe(false);
    // Its new address is not known to anybody.
    for (const port of ports) expect(await visit(port, other.host)).toBe('503');
    proxy.resume();
    for (const port of ports)
      await waitFor('the new pod', async () => (await visit(port, other.host)) === 'other', AGAIN_MS);
    for (const port of ports) expect(await visit(port, one.host)).toBe('503');
  }, 400_000);
});

/** The next pod of the node has this address. */
function giveNext({ directory }: TestCluster, address: string): void {
  const addresses = path.join(directory, NODE, 'addresses', NODE);
  const bytes = address.split('.').map(Number);
  const before = [...bytes.slice(0, 3), (bytes[3] as number) - 1].join('.');
  for (const file of readdirSync(addresses))
    if (file.startsWith('last_reserved_ip')) writeFileSync(path.join(addresses, file), before);
}

async function startFurtherIngress({ databaseUrl, dataDir }: Plant, KUBECONFIG: string): Promise<number> {
  const settings = { DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: dataDir, WORKLOADS: 'kubernetes' };
  const program = startProgram({ ...settings, KUBECONFIG, REGISTRY_PORT: '5000' }, { entry: 'server/ingress.ts' });
  await program.ready();
  const lines = program.out().split('\n');
  const line = lines.find((one) => one.includes('"the ingress is ready"')) ?? '{}';
  return (JSON.parse(line) as { http: number }).http;
}
