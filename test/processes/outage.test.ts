/** @tier heavy @quarter 3 @covers jobs/applications/application */
// An application of which no instance runs says so, and why, as soon as its visitors notice.
import { renameSync } from 'node:fs';
import path from 'node:path';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

const SOON_MS = 8_000;
const CRASHED_MS = 25_000;

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService();
}, 60_000);
afterAll(() => service?.close(), 60_000);

const web = async (application: TestApplication): Promise<{ status: string }> =>
  (await application.get('/processes')).data.find(({ type }: { type: string }) => type === 'web');

test('an instance that cannot be started again is told within seconds, and the end of it too', async () => {
  const application = await service.application(nodeApp('here'));
  expect((await application.deploy()).status).toBe('active');
  await waitFor('its status', async () => (await application.get()).status === 'running');
  // What instances are started from.
  const releases = path.join(service.platform.config.runtimeDir, 'releases');
  renameSync(releases, `${releases}-away`);
  await application.visit('/crash').catch(() => null);
  const why = await waitFor('a reason', async () => (await application.get()).status_reason, SOON_MS);
  expect(why).toMatch(/^Process type web: no instance is running\. [A-Z].+\.$/);
  await waitFor('its status', async () => (await application.get()).status === 'crashed', CRASHED_MS);
  expect((await web(application)).status).toBe('crashed');
  expect((await application.visit()).status).toBe(503);
  renameSync(`${releases}-away`, releases);
  await waitFor('its status', async () => (await application.get()).status === 'running', CRASHED_MS);
  expect((await application.get()).status_reason).toBeNull();
  expect((await application.visit()).body).toBe('here');
  await waitFor('the process type', async () => (await web(application)).status === 'running');
}, 120_000);
