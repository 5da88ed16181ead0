/** @tier heavy @quarter 4 @covers jobs/deployments models/deployments */
// Deployments that are canceled, and those that wait for each other; previews.
import {
  leftOvers,
  startDeployService,
  visitHost,
  type DeployService,
  type TestApplication,
} from '../support/deployments/deploy';
import { nodeApp, procfileApp, webCommand } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '4' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

/* oxlint-disable typescript/no-explicit-any -- answers are checked by the OpenAPI document */
const slowBuild = (seconds: number) => ({
  ...nodeApp('slow'),
  'package.json': JSON.stringify({
    name: 'app',
    version: '1.0.0',
    scripts: { build: `echo building; sleep ${seconds}`, start: 'node server.js' },
  }),
});
const status = async (application: TestApplication, id: string): Promise<string> =>
  (await application.get(`/deployments/${id}`)).status;
const reaches = (application: TestApplication, id: string, wanted: string): Promise<unknown> =>
  waitFor(`${id} is ${wanted}`, async () => (await status(application, id)) === wanted);

test('canceled while it waits, is fetched, built, released or started: it ends, and nothing of it stays', async () => {
  const [fetched, built, released, started] = await Promise.all([
    service.application(nodeApp('x')),
    service.application(slowBuild(600)),
    service.application(procfileApp('x', 'sleep 600')),
    service.application(webCommand('sleep 600'), { health_check: { grace_period_seconds: 600 } }),
  ] as const);
  const all = [fetched, built, released, started];
  const asked: any[] = [];
  for (const application of all) {
    if (application === fetched) service.git.intercept = null;
    asked.push(await application.ask());
    // Its head was found; now the repository does not answer any more.
    if (application === fetched)
      service.git.intercept = (request) => (request.url?.includes(`/${fetched.name}.git`) ? 'hang' : null);
  }
  const waiting = await Promise.all(all.slice(1).map((application) => application.ask()));
  await Promise.all([
    reaches(fetched, asked[0].id, 'building'),
    reaches(built, asked[1].id, 'building'),
    reaches(released, asked[2].id, 'deploying'),
    reaches(started, asked[3].id, 'deploying'),
  ]);
  await waitFor('the build', async () => (await built.log(asked[1].id)).includes('building'));
  await waitFor('an instance', async () => (await started.get('/instances')).data.length === 1);
  await Promise.all(waiting.map(({ id }, index) => reaches(all[index + 1]!, id, 'queued')));
  for (const [index, { id }] of waiting.entries()) await all[index + 1]!.post(`/deployments/${id}/cancel`);
  const canceled = await Promise.all(asked.map(({ id }, index) => all[index]!.post(`/deployments/${id}/cancel`)));
  expect(canceled.map((one) => one.status)).toEqual(Array(4).fill('canceled'));
  service.git.intercept = null;
  await waitFor(
    'nothing is left',
    async () => leftOvers(service.runtimeDir).filter((name) => /^(units|releases)/.test(name)).length === 0,
  );
  for (const application of all) {
    await waitFor('no instance', async () => (await application.get('/instances')).data.length === 0);
    await waitFor('new', async () => (await application.get()).status === 'new');
  }
  // It can be deployed after that.
  expect(await fetched.deploy()).toMatchObject({ status: 'active' });
  expect((await fetched.visit()).body).toBe('x');
}, 90_000);

test('two at once: one after the other, and the later one serves', async () => {
  const application = await service.application(slowBuild(1));
  const first = await application.ask();
  application.push(nodeApp('second'));
  const second = await application.ask();
  await reaches(application, first.id, 'building');
  expect(await status(application, second.id)).toBe('queued');
  expect(await application.ended(second.id)).toMatchObject({ status: 'active', number: 2 });
  expect(await status(application, first.id)).toBe('superseded');
  expect((await application.visit()).body).toBe('second');
}, 60_000);

test('a preview has an address of its own beside the application, and goes without a trace', async () => {
  const application = await service.application(nodeApp('main'));
  await application.deploy();
  service.git.commit(application.name, nodeApp('branch'), { branch: 'feature' });
  const preview = await application.post('/previews', { branch: 'feature' });
  const host = new URL(preview.url).hostname;
  const shown = await waitFor('the preview', async () => {
    const found = await application.get(`/previews/${preview.id}`);
    return found.status === 'running' || found.status === 'failed' ? found : null;
  });
  expect(shown).toMatchObject({
    status: 'running',
    status_reason: null,
    commit_sha: expect.stringMatching(/^[0-9a-f]{40}$/),
  });
  const visit = (): ReturnType<typeof visitHost> => visitHost(service.platform.config.ingressPort, host);
  expect((await visit()).body).toBe('branch');
  expect((await application.visit()).body).toBe('main');

  service.git.commit(application.name, webCommand('sh -c "exit 1"'), { branch: 'feature' });
  const redeploy = `/v2/applications/${preview.application_id}/previews/${preview.id}/redeploy`;
  // 409 where the poll of the branch has found the push first.
  expect([202, 409]).toContain((await service.call('POST', redeploy)).status);
  const failed = await waitFor('the failed preview', async () => {
    const found = await application.get(`/previews/${preview.id}`);
    return found.status === 'failed' ? found : null;
  });
  expect(failed.status_reason).toContain('exited with code 1');
  expect((await visit()).body).toBe('branch');

  // Its time has come.
  await service.sql(`update previews set expires_at = now() - interval '1 second', next_at = now() where id = $1`, [
    preview.id,
  ]);
  await waitFor('no row', async () => (await service.sql('select 1 from previews')).length === 0);
  expect(await service.sql('select 1 from deployments where preview_id is not null')).toEqual([]);
  expect((await visit()).status).toBe(404);
  expect((await application.visit()).body).toBe('main');
  const { data } = (await service.call('GET', `/v2/projects/${service.project}/activity?action=preview.expired`)).body;
  expect(data).toHaveLength(1);
}, 90_000);
