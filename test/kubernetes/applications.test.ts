/** @tier heavy @quarter 2 @covers drivers/workload jobs/applications/workload server/agents/workloads */
// Applications on a cluster, as far as the suite of workloads (workload_conformance.test.ts) does not tell: their
// objects. The cluster is real.
import { describeOnClusterOfMachine } from '../cluster/on_cluster';
import { kubectl, kubectlApply } from '../cluster/kubectl';
import type { DeployService } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { waitFor } from '../support/wait_for';

let service: DeployService;

/** A program that needs no language: nothing has to be downloaded. */
const SITE = { Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': 'one' };

describeOnClusterOfMachine('applications on a cluster', (cluster) => {
  beforeAll(async () => {
    service = await startOnCluster(cluster());
  }, 60_000);
  afterAll(() => service?.close(), 120_000);

  test('where several instances run, a budget lets one of them go at a time', async () => {
    const application = await service.application(SITE);
    await application.deploy();
    const { data } = (await application.get('/processes')) as { data: { id: string; type: string }[] };
    await application.post(`/processes/${data.find(({ type }) => type === 'web')?.id}/scale`, { instances: 3 });
    const budget = ['pdb', '-A', '-l', `platform-api/application=${application.id}`];
    const allowed = 'jsonpath={.items[*].status.expectedPods} {.items[*].status.disruptionsAllowed}';
    await waitFor(
      'the budget',
      async () => (await kubectl(cluster().kubeconfig, 'get', ...budget, '-o', allowed)) === '3 1',
    );
  }, 180_000);

  test('what somebody changes in the cluster is put back', async () => {
    const application = await service.application(SITE);
    await application.deploy();
    const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
    const selector = `platform-api/application=${application.id}`;
    const name = (await run('get', 'deployments', '-A', '-l', selector, '-o', 'name')).trim();
    const namespace = `${service.platform.config.kubernetesNamespacePrefix}-${service.project.replace('_', '-')}`;
    const replicas = (): Promise<string> => run('-n', namespace, 'get', name, '-o', 'jsonpath={.spec.replicas}');
    await run('-n', namespace, 'scale', name, '--replicas=4');
    expect(await replicas()).toBe('4');
    await service.sql(`update workloads set next_at = now() where application_id = $1`, [application.id]);
    await waitFor('the number of before', async () => (await replicas()) === '1');
    const specification = await run('-n', namespace, 'get', name, '-o', 'yaml');
    expect(specification).not.toContain('SVC_APPLICATION_ID');
    const secret = JSON.parse(await run('-n', namespace, 'get', 'secrets', '-l', selector, '-o', 'json')).items.find(
      ({ immutable }: { immutable?: boolean }) => immutable,
    );
    const { name: secretName, labels } = secret.metadata;
    const forged = { ...secret, data: { PORT: 'MQ==' }, metadata: { name: secretName, namespace, labels } };
    // Between the two commands the platform may have put the right one back.
    await waitFor('another Secret of that name', async () => {
      await run('-n', namespace, 'delete', 'secret', secretName, '--ignore-not-found');
      return kubectlApply(cluster().kubeconfig, forged).then(
        () => true,
        () => false,
      );
    });
    await service.sql(`update workloads set next_at = now() where application_id = $1`, [application.id]);
    await waitFor('the variables of before', async () => {
      const data = await run('-n', namespace, 'get', 'secret', secretName, '-o', 'jsonpath={.data}');
      return data === JSON.stringify(secret.data);
    });
    const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?action=application.corrected`);
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
