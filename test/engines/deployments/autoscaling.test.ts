/** @tier heavy @quarter 4 @covers jobs/applications/autoscaler.ts jobs/applications/instance */
// A step of the load is answered by more instances within seconds.
import { startDeployService, type DeployService } from '../../support/deployments/deploy';
import { nodeApp } from '../../support/git/repositories';
import { waitFor } from '../../support/wait_for';

const REACTS_WITHIN_MS = 20_000;

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService();
}, 60_000);
afterAll(() => service?.close(), 60_000);

test('an application that gets more requests than its target has more instances within 20 seconds', async () => {
  const application = await service.application(nodeApp('v1'));
  expect((await application.deploy()).status).toBe('active');
  const { data } = await application.get('/processes');
  const web = `/processes/${data.find(({ type }: { type: string }) => type === 'web').id}`;
  await application.post(`${web}/scale`, {
    autoscaling: { min_instances: 1, max_instances: 3, metric: 'requests_per_second', target: 5 },
  });
  await waitFor('rest', async () => (await application.get(web)).status === 'running');
  const began = performance.now();
  const traffic = application.traffic('/', 2);
  const took = (): number => performance.now() - began;
  await waitFor('the reaction', async () => (await application.get(web)).instances === 3, REACTS_WITHIN_MS);
  expect(took()).toBeLessThan(REACTS_WITHIN_MS);
  await waitFor('three running', async () => {
    const { data: instances } = await application.get('/instances');
    return instances.filter(({ status }: { status: string }) => status === 'running').length === 3;
  });
  expect((await traffic.stop()).lost).toEqual([]);
}, 90_000);
