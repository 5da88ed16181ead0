/** @tier heavy @quarter 2 @covers drivers/workload/kubernetes server/agents */
// Lines of instances that end: each prints numbered lines all the time, two hundred more once it is told to end, and
// at last how many they were.
import { kubectl } from '../cluster/kubectl';
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { deployed, onlyRunning, scale, statusIs } from '../conformance/workloads/bench';
import type { DeployService, TestApplication } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { waitFor } from '../support/wait_for';

const WITHIN_MS = 120_000;
const LAST_LINES = 200;
const PRINTING = `busybox httpd -f -p "$PORT" -h site &
trap 'over=1' TERM
n=0
say() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); n=$((n+1)); echo "$SVC_INSTANCE_ID $n"; done; }
while [ -z "$over" ]; do say 5; sleep 0.2; done
say ${LAST_LINES}
echo "$SVC_INSTANCE_ID ended after $n"
`;
const site = (version: string) => ({
  ...{ Procfile: 'web: sh web.sh\n', 'web.sh': PRINTING, 'site/index.html': version },
});
/** On a busy machine no instance may start again, and count anew. */
const UNCHECKED = { health_check: { type: 'none' } };

let service: DeployService;

describeOnClusterOfMachine('lines of instances on a cluster', (cluster) => {
  beforeAll(async () => {
    service = await startOnCluster(cluster());
  }, 120_000);
  afterAll(() => service?.close(), 120_000);

  test('each is in the log once, whether instances end by scaling, a deployment, a deletion or a stop', async () => {
    const application = await service.application(site('one'), UNCHECKED);
    const names = new Set<string>();
    const running = async (count: number): Promise<string[]> => {
      await onlyRunning(application, 'web', count);
      const found = await podsOf(application);
      for (const name of found) names.add(name);
      return found;
    };
    await deployed(application);
    await scale(application, 'web', 3);
    const [first = ''] = await running(3);
    await kubectl(cluster().kubeconfig, 'delete', 'pod', '-n', namespace(), first);
    await running(3);
    await scale(application, 'web', 2);
    await running(2);
    application.push(site('two'));
    await deployed(application);
    await running(2);
    await application.post('/stop');
    await statusIs(application, 'stopped');
    expect(names.size).toBe(6);
    await waitFor('their last lines', async () => (await ended(application)).size === names.size, WITHIN_MS);
    const [messages, ends] = [await messagesOf(application), await ended(application)];
    expect([...ends.keys()].sort()).toEqual([...names].sort());
    for (const [name, count] of ends) {
      expect(count).toBeGreaterThan(LAST_LINES);
      const printed = messages.filter((line) => line.startsWith(`${name} `));
      const counted = Array.from({ length: count }, (_, index) => `${name} ${index + 1}`);
      expect(printed).toEqual([...counted, `${name} ended after ${count}`]);
    }
    process.stdout.write(`log lines: ${messages.length} of ${ends.size} instances\n`);
  }, 600_000);

  const namespace = (): string =>
    `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;

  /** Names of those that are not about to end. */
  async function podsOf({ id }: TestApplication): Promise<string[]> {
    const found = await kubectl(
      cluster().kubeconfig,
      ...['get', 'pods', '-n', namespace(), '-l', `platform-api/application=${id}`, '-o'],
      'jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp}{"\\n"}{end}',
    );
    return found.split('\n').flatMap((line) => /^(\S+) $/.exec(line)?.[1] ?? []);
  }

  /** Number of lines of each instance that has ended, by its name. */
  async function ended(application: TestApplication): Promise<Map<string, number>> {
    const found = (await messagesOf(application)).map((line) => /^(\S+) ended after (\d+)$/.exec(line));
    return new Map(found.flatMap((match) => (match ? [[match[1] ?? '', Number(match[2])] as const] : [])));
  }

  async function messagesOf({ id }: TestApplication): Promise<string[]> {
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = `limit=1000&order=asc&source=app${cursor && `&cursor=${cursor}`}`;
      const { status, body } = await service.call('GET', `/v2/applications/${id}/logs?${page}`);
      expect(status).toBe(200);
      found.push(...(body.data as { message: string }[]).map(({ message }) => message));
      cursor = body.next_cursor as string | null;
    }
    return found;
  }
});
