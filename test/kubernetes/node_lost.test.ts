/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes engines/ingress server/agents/workloads */
// A machine of the cluster loses its power while its instances answer requests.
import { setTimeout as sleep } from 'node:timers/promises';
import { kubectl } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { lostOf, startTimedLoad } from '../support/kubernetes/timed_load';
import { waitFor } from '../support/wait_for';

const INSTANCES = 4;
/** What the ingress has for noticing that nobody answers. */
const NOTICED_MS = 5_000;
/** A visit that was not sent to an instance that is lost; the machine of the tests may be busy. */
const PROMPT_MS = 1_000;
/** 20 s until the cluster notices, 30 s of tolerance, and the start of instances. */
const ELSEWHERE_MS = 150_000;

interface Row {
  id: string;
  status: string;
  status_reason: string | null;
}

let service: DeployService;
const instancesOf = async (application: TestApplication): Promise<Row[]> =>
  (await application.get('/instances?limit=100')).data;

describeOnTestCluster('a machine of the cluster that is lost', (cluster) => {
  beforeAll(async () => {
    service = await startOnCluster(cluster());
  }, 120_000);
  afterAll(async () => {
    // Applications are gone when their pods are, which takes the machine.
    if (isNodeLost) await restartNode();
    await service?.close();
  }, 180_000);
  let isNodeLost = false;
  const restartNode = async (): Promise<void> => {
    isNodeLost = false;
    await cluster().startNode(2);
  };

  /** Names of the nodes of its pods that run. */
  async function nodesOf({ id }: TestApplication): Promise<string[]> {
    const found = await kubectl(
      cluster().kubeconfig,
      ...['get', 'pods', '-A', '-l', `platform-api/application=${id}`],
      ...['-o', 'jsonpath={range .items[*]}{.spec.nodeName} {.metadata.deletionTimestamp}{"\\n"}{end}'],
    );
    const pods = found.split('\n').map((line) => line.trim());
    return pods.filter((line) => line !== '' && !line.includes(' ')).sort();
  }

  test('no request is lost, none waits once the loss is noticed, and its instances start elsewhere', async () => {
    const application = await service.application({
      Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n',
      'site/index.html': 'here',
    });
    expect((await application.deploy()).status).toBe('active');
    const [web] = (await application.get('/processes')).data as { id: string }[];
    await application.post(`/processes/${web?.id}/scale`, { instances: INSTANCES });
    const running = async (): Promise<Row[]> =>
      (await instancesOf(application)).filter(({ status }) => status === 'running');
    await waitFor('all instances', async () => (await running()).length === INSTANCES);
    expect(await nodesOf(application)).toEqual(['node1', 'node1', 'node2', 'node2']);
    const load = startTimedLoad(service.platform.config.ingressPort, application.host);
    await sleep(3_000);
    const killedAt = performance.now();
    isNodeLost = true;
    await cluster().killNode(2);
    const elsewhere = await waitFor(
      'instances elsewhere',
      async () => {
        const nodes = await nodesOf(application);
        if (nodes.filter((name) => name === 'node1').length < INSTANCES) return null;
        return (await running()).length === INSTANCES && performance.now() - killedAt;
      },
      ELSEWHERE_MS,
    );
    const stopping = (await instancesOf(application)).filter(({ status }) => status === 'stopping');
    expect(stopping.map(({ status_reason }) => status_reason)).toEqual(
      Array.from({ length: 2 }, () => expect.stringContaining('does not respond')),
    );
    const visits = await load.stop();
    const during = visits.filter(({ at }) => at >= killedAt);
    const slow = during.filter(({ ms }) => ms > PROMPT_MS);
    const facts = {
      requests: during.length,
      waited: slow.length,
      longest_ms: Math.round(Math.max(...during.map(({ ms }) => ms))),
      last_to_the_lost_ms: Math.round(Math.max(0, ...slow.map(({ at }) => at - killedAt))),
      elsewhere_ms: Math.round(elsewhere),
    };
    process.stdout.write(`node lost: ${JSON.stringify(facts)}\n`);
    expect(lostOf(visits)).toEqual([]);
    expect(slow.length).toBeGreaterThan(0);
    expect(facts.last_to_the_lost_ms).toBeLessThan(NOTICED_MS);
    await restartNode();
    await waitFor(
      'the end of what was lost',
      async () => (await instancesOf(application)).length === INSTANCES,
      ELSEWHERE_MS,
    );
  }, 600_000);
});
