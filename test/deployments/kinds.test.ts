// Real repositories of six kinds, deployed from a Git server, opened through the ingress; and those that can't work.
import {
  GIVEN_UP_SOON,
  leftOvers,
  startDeployService,
  type DeployService,
  type TestApplication,
} from '../support/deployments/deploy';
import { broken, keeper, nodeBuild, nodeLocked, procfileApp, pythonApp, staticSite } from '../support/git/repositories';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '4' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

async function deployed(application: TestApplication): Promise<string> {
  const deployment = await application.deploy();
  if (deployment.status !== 'active')
    throw new Error(
      `${deployment.status}: ${deployment.status_reason}\n${(await application.log(deployment.id)).join('\n')}`,
    );
  return deployment.id;
}

test('Node.js with a lock file: its variables, its address, its log', async () => {
  const application = await service.application(nodeLocked('v1'));
  await service.call('PUT', `/v2/applications/${application.id}/env/GREETING`, { body: { value: 'good day' } });
  await service.call('PUT', `/v2/applications/${application.id}/env/ONLY_BUILD`, {
    body: { value: 'hidden', available_at: 'build' },
  });
  const deployment = await deployed(application);
  expect(await application.visit()).toEqual({ status: 200, body: 'v1' });
  const env = JSON.parse((await application.visit('/env')).body);
  expect(env).toMatchObject({
    GREETING: 'good day',
    NODE_ENV: 'production',
    SVC_APPLICATION_ID: application.id,
    SVC_APPLICATION_NAME: application.name,
    SVC_DEPLOYMENT_ID: deployment,
    SVC_REGION: 'local',
    SVC_PROCESS_TYPE: 'web',
    SVC_HOSTNAME: application.host,
  });
  expect(env.SVC_COMMIT_SHA).toMatch(/^[0-9a-f]{40}$/);
  expect(env.SVC_INSTANCE_ID).toMatch(/^ins_/);
  expect(env.SVC_URL).toBe(`http://${application.host}:${service.platform.config.ingressPort}`);
  expect(env.ONLY_BUILD).toBeUndefined();
  expect(await application.get()).toMatchObject({ status: 'running', current_deployment_id: deployment });
  expect((await application.get('/processes')).data).toMatchObject([
    { type: 'web', status: 'running', running_instances: 1 },
  ]);
  const log = (await application.log(deployment)).join('\n');
  expect(log).toContain('-----> Fetching the source from http://');
  expect(log).not.toContain('good day');
  const lines = await waitFor('the line that the app prints', async () =>
    (await application.get('/logs?source=app')).data.find((line: { message: string }) =>
      line.message.includes('version v1 listens'),
    ),
  );
  expect(lines).toMatchObject({ process_type: 'web', deployment_id: deployment });
}, 60_000);

needs('python3').test(
  'Node.js with a build step, static files, Python, all at once',
  async () => {
    const [built, pages, python] = await Promise.all([
      service.application(nodeBuild('b1')),
      service.application(staticSite('s1')),
      service.application(pythonApp('p1')),
    ]);
    await service.call('PUT', `/v2/applications/${built.id}/env/BUILD_WORD`, {
      body: { value: 'built', available_at: 'build' },
    });
    await Promise.all([built, pages, python].map(deployed));
    expect((await built.visit()).body).toBe('b1 built');
    expect((await pages.visit()).body).toContain('s1');
    expect((await python.visit()).body).toBe('p1');
  },
  60_000,
);

test('a Procfile with web, worker and release: the release command first, the worker once scaled', async () => {
  const application = await service.application(procfileApp('f1'));
  const deployment = await deployed(application);
  expect((await application.visit()).body).toBe('f1 released');
  expect((await application.log(deployment)).join('\n')).toContain('Running the release command');
  const worker = (await application.get('/processes')).data.find(({ type }: { type: string }) => type === 'worker');
  expect(worker).toMatchObject({ instances: 0, status: 'idle', command: null });
  expect(worker.effective_command).toMatch(/^node /);
  await application.post(`/processes/${worker.id}/scale`, { instances: 1 });
  await waitFor('the worker', async () => (await application.get(`/processes/${worker.id}`)).status === 'running');
  await application.post(`/processes/${worker.id}/scale`, { instances: 0 });
  await waitFor('no worker', async () => (await application.get(`/processes/${worker.id}`)).status === 'idle');
  const { data: stopped } = await application.get('/logs?search=SIGTERM');
  expect(stopped.map(({ message }: { message: string }) => message)).toEqual([
    'worker: Stopping. Its processes get SIGTERM, and 3 seconds to end.',
  ]);
}, 60_000);

// Only root and a sandbox can show it there.
const mounting = process.getuid?.() === 0 ? test : needs('bwrap').test;
mounting(
  'a volume is there under its path, and survives a deployment',
  async () => {
    const application = await service.application(keeper('one'));
    const made = await service.call('POST', '/v2/volumes', {
      body: { name: 'notes', size_gb: 1, application_id: application.id, mount_path: '/data' },
    });
    await service.settle(`/v2/volumes/${made.body.id}`);
    await deployed(application);
    expect((await application.visit('/', 'POST')).body).toBe('one ');
    application.push(keeper('two'));
    await deployed(application);
    expect((await application.visit('/', 'POST')).body).toBe('one two ');
  },
  60_000,
);

test('what can not work ends with a reason that says why, and leaves nothing running', async () => {
  const all = await Promise.all(
    [
      broken.build(),
      broken.exits(),
      broken.silent(),
      broken.wrongPort(18_231),
      broken.release(),
      { 'notes.txt': 'nothing here' },
      broken.unreadable(),
    ].map((files) => service.application(files, GIVEN_UP_SOON)),
  );
  const ends = await Promise.all(all.map((application) => application.deploy()));
  expect(ends.map(({ status }) => status)).toEqual(Array(7).fill('failed'));
  const [build, exits, silent, port, release, unknown, unreadable] = ends.map(
    ({ status_reason }) => status_reason as string,
  );
  // There is no version before.
  for (const reason of [exits, release]) expect(reason).not.toContain('previous version');
  expect(build).toBe('The build step `npm run build` ended with exit code 7: about to fail.');
  expect(exits).toContain('Process type web: The app exited with code 9 right after its start: goodbye.');
  expect(silent).toMatch(/The app did not listen on PORT \d+ within 8 seconds/);
  expect(port).toMatch(
    /The app did not listen on PORT \d+ within 8 seconds; it listens on 18231 of 127\.0\.0\.1 alone\. Use the PORT/,
  );
  expect(release).toBe('The release command `sh -c "echo no database; exit 4"` ended with exit code 4: no database.');
  expect(unknown).toMatch(/\w/);
  expect(unreadable).toMatch(/dist\/private.*Set the permissions in the build, for example with chmod -R u\+rwX\./);
  expect((await all[0]!.log(ends[0].id)).join('\n')).toContain('about to fail');
  expect((await all[3]!.log(ends[3].id)).join('\n')).toMatch(
    /The app does not listen on PORT \d+ yet; it listens on 18231 of 127\.0\.0\.1 alone\. Use the PORT/,
  );
  expect((await all[1]!.log(ends[1].id)).join('\n')).toMatch(
    /-----> Last output of the process type web\n(goodbye\n)+The new version does not stay up/,
  );
  for (const application of all) {
    await waitFor(`${application.name} is new again`, async () => (await application.get()).status === 'new');
    await waitFor('no instances', async () => (await application.get('/instances')).data.length === 0);
    expect((await application.visit()).status).toBe(503);
  }
}, 60_000);

test('applications that are deleted leave no unit, no file, no port', async () => {
  await service.clear();
  expect(leftOvers(service.runtimeDir)).toEqual([]);
  expect(await service.sql('select id from instances')).toEqual([]);
  expect(await service.sql('select id from releases')).toEqual([]);
  expect(await service.sql('select id from deployments')).toEqual([]);
}, 60_000);
