/** @tier heavy @quarter 2 @covers jobs/applications/application drivers/workload/kubernetes */
// An application of which the cluster runs no instance says so, and why, while its visitors get no answer.
import { kubectl } from '../cluster/kubectl';
import { describeOnTestCluster } from '../cluster/on_cluster';
import type { DeployService } from '../support/deployments/deploy';
import { startOnCluster } from '../support/kubernetes/service_on_cluster';
import { waitFor } from '../support/wait_for';

const SOON_MS = 15_000;
const CRASHED_MS = 30_000;
const site = { Procfile: 'web: busybox httpd -f -p "$PORT" -h site\n', 'site/index.html': 'here' };

let service: DeployService;

describeOnTestCluster('an application without an instance', (cluster) => {
  const run = (...args: string[]): Promise<string> => kubectl(cluster().kubeconfig, ...args);
  beforeAll(async () => {
    service = await startOnCluster(cluster());
  }, 120_000);
  afterAll(() => service?.close(), 120_000);

  test('says within seconds that there is no room for it, and that it runs again', async () => {
    const application = await service.application(site);
    expect((await application.deploy()).status).toBe('active');
    await waitFor('its status', async () => (await application.get()).status === 'running');
    await run('cordon', 'node1', 'node2');
    const selector = ['-A', '-l', `platform-api/application=${application.id}`];
    const [namespace = '', pod = ''] = (
      await run('get', 'pods', ...selector, '-o', 'jsonpath={.items[0].metadata.namespace} {.items[0].metadata.name}')
    ).split(' ');
    await run('delete', 'pod', '-n', namespace, pod, '--grace-period=1', '--wait=false');
    const why = await waitFor(
      'a reason',
      async () => /no room/.exec(((await application.get()).status_reason as string | null) ?? '')?.input,
      SOON_MS,
    );
    expect(why).toMatch(/^Process type web: no instance is running\. The cluster has no room for the instance yet: /);
    await waitFor('its status', async () => (await application.get()).status === 'crashed', CRASHED_MS);
    expect((await application.visit()).status).toBe(503);
    await run('uncordon', 'node1', 'node2');
    await waitFor('its status', async () => (await application.get()).status === 'running', 2 * CRASHED_MS);
    expect((await application.get()).status_reason).toBeNull();
    expect((await application.visit()).body).toBe('here');
  }, 240_000);
});
