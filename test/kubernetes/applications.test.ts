/** @tier heavy @quarter 1 @covers drivers/workload jobs/applications/workload server/agents/workloads */
// Applications on a cluster, as their users see them: the API, the ingress and the log. The cluster is real.
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl, kubectlApply } from '../cluster/kubectl';
import { hasStaticBusybox } from '../support/builds/images';
import { eventually, GIVEN_UP_SOON, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';

let service: DeployService;

/** A program that needs no language: nothing has to be downloaded. */
const site = (text: string, procfile = '') => ({
  Procfile: `web: busybox httpd -f -p "$PORT" -h site\n${procfile}`,
  'site/index.html': text,
  'site/greeting.txt': text,
});

interface Instance {
  id: string;
  status: string;
  process_type: string;
  restart_count: number;
}

async function scale(application: TestApplication, type: string, instances: number): Promise<void> {
  const processes = (await application.get('/processes')).data as { id: string; type: string }[];
  await application.post(`/processes/${processes.find((one) => one.type === type)?.id}/scale`, { instances });
}

async function instancesOf(application: TestApplication): Promise<Instance[]> {
  return (await application.get('/instances')).data;
}

if (hasStaticBusybox())
  describeOnClusterOfMachine('applications on a cluster', (cluster) => {
    beforeAll(async () => {
      service = await startOnCluster(cluster());
    }, 60_000);
    afterAll(() => service?.close(), 120_000);

    test('a deployment serves requests, and its successor loses none', async () => {
      const application = await service.application(site('one'));
      const first = await application.deploy();
      expect([first.status, first.status_reason]).toEqual(['active', null]);
      expect(await application.visit('/greeting.txt')).toEqual({ status: 200, body: 'one' });
      expect(await instancesOf(application)).toMatchObject([{ status: 'running', process_type: 'web' }]);
      application.push(site('two'));
      const traffic = application.traffic('/greeting.txt');
      const second = await application.deploy();
      expect([second.status, second.status_reason]).toEqual(['active', null]);
      await eventually('one instance', async () => (await instancesOf(application)).length === 1);
      const { lost, total, seen } = await traffic.stop();
      expect({ lost, seen: [...seen].sort() }).toEqual({ lost: [], seen: ['one', 'two'] });
      expect(total).toBeGreaterThan(50);
    }, 180_000);

    test('a version that does not stay up keeps the previous one in service', async () => {
      const application = await service.application(site('good'), GIVEN_UP_SOON);
      expect((await application.deploy()).status).toBe('active');
      application.push({ Procfile: 'web: sh -c "echo no database; exit 3"\n' });
      const failed = await application.ended((await application.ask()).id, 120_000);
      expect(failed).toMatchObject({ status: 'failed', status_reason: expect.stringContaining('code 3') });
      expect(await application.visit('/greeting.txt')).toEqual({ status: 200, body: 'good' });
      await eventually('one instance', async () => (await instancesOf(application)).length === 1);
    }, 180_000);

    test('it scales, stops, starts, restarts with other variables and rolls back', async () => {
      const application = await service.application(site('one', 'worker: sleep 1000\n'));
      const first = await application.deploy();
      expect(first.status).toBe('active');
      const running = async (type: string): Promise<number> =>
        (await instancesOf(application)).filter((one) => one.process_type === type && one.status === 'running').length;
      await scale(application, 'web', 3);
      await eventually('three instances', async () => (await running('web')) === 3);
      const budget = ['pdb', '-A', '-l', `platform-api/application=${application.id}`];
      const allowed = 'jsonpath={.items[*].status.expectedPods} {.items[*].status.disruptionsAllowed}';
      await eventually(
        'a budget that lets one of them go',
        async () => (await kubectl(cluster().kubeconfig, 'get', ...budget, '-o', allowed)) === '3 1',
      );
      await scale(application, 'web', 1);
      await eventually('one instance', async () => (await instancesOf(application)).length === 1);
      await application.post('/stop');
      await eventually('a stop', async () => (await application.get()).status === 'stopped');
      expect(await instancesOf(application)).toEqual([]);
      expect((await application.visit('/')).status).toBe(503);
      await application.post('/start');
      await eventually('a start', async () => (await application.get()).status === 'running');
      expect((await application.visit('/greeting.txt')).body).toBe('one');
    }, 240_000);

    test('each line that a program prints is in the log once, also of one that ends again and again', async () => {
      const application = await service.application({
        Procfile: 'web: busybox httpd -f -p "$PORT" -h site\nworker: sh count.sh\nclock: sh tick.sh\n',
        'count.sh': 'i=0; while test $i -lt 500; do i=$((i+1)); echo line $i; done; exec sleep 1000\n',
        'tick.sh': 'echo tick of $SVC_INSTANCE_ID; exec sleep 2\n',
        'site/index.html': 'ok',
      });
      await application.deploy();
      await scale(application, 'worker', 1);
      await scale(application, 'clock', 1);
      const messages = async (type: string): Promise<string[]> =>
        (await application.get(`/logs?process_type=${type}&limit=1000`)).data
          .filter((line: { source: string }) => line.source === 'app')
          .map((line: { message: string }) => line.message);
      const lines = await eventually('all lines', async () => {
        const found = await messages('worker');
        return found.length >= 500 && found;
      });
      expect(new Set(lines).size).toBe(500);
      expect(lines).toHaveLength(500);
      const ticks = await eventually('three ticks', async () => {
        const found = await messages('clock');
        return found.length >= 3 && found;
      });
      expect(new Set(ticks).size).toBe(1);
      const clock = (await instancesOf(application)).find((one) => one.process_type === 'clock');
      expect(clock?.restart_count).toBeGreaterThan(0);
    }, 180_000);

    test('what somebody changes in the cluster is put back', async () => {
      const application = await service.application(site('one'));
      await application.deploy();
      const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
      const selector = `platform-api/application=${application.id}`;
      const name = (await run('get', 'deployments', '-A', '-l', selector, '-o', 'name')).trim();
      const namespace = `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;
      const replicas = (): Promise<string> => run('-n', namespace, 'get', name, '-o', 'jsonpath={.spec.replicas}');
      await run('-n', namespace, 'scale', name, '--replicas=4');
      expect(await replicas()).toBe('4');
      await service.sql(`update workloads set next_at = now() where application_id = $1`, [application.id]);
      await eventually('the number of before', async () => (await replicas()) === '1');
      const specification = await run('-n', namespace, 'get', name, '-o', 'yaml');
      expect(specification).not.toContain('SVC_APPLICATION_ID');
      const secret = JSON.parse(await run('-n', namespace, 'get', 'secrets', '-l', selector, '-o', 'json')).items.find(
        ({ immutable }: { immutable?: boolean }) => immutable,
      );
      const { name: secretName, labels } = secret.metadata;
      await run('-n', namespace, 'delete', 'secret', secretName);
      const forged = { ...secret, data: { PORT: 'MQ==' }, metadata: { name: secretName, namespace, labels } };
      await kubectlApply(cluster().kubeconfig, forged);
      await service.sql(`update workloads set next_at = now() where application_id = $1`, [application.id]);
      await eventually('the variables of before', async () => {
        const data = await run('-n', namespace, 'get', 'secret', secretName, '-o', 'jsonpath={.data}');
        return data === JSON.stringify(secret.data);
      });
      const { body } = await service.call(
        'GET',
        `/v2/projects/${service.project}/activity?action=application.corrected`,
      );
      expect(body.data.map((entry: { changed_fields: string[] }) => entry.changed_fields)).toEqual([
        ['environment'],
        ['spec.replicas'],
      ]);
      expect(body.data[0]).toMatchObject({
        actor: { type: 'system' },
        resource: { type: 'application', id: application.id, name: application.name },
      });
    }, 180_000);
  });
