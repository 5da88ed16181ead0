// The release command of a deployment is a run: what it does for its deployment, and how the run shows it.
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import type { GitFiles } from '../support/git/git_server';
import { procfileApp } from '../support/git/repositories';
import { processesWith } from '../support/processes/processes';
import { finishedRun, runEnded, runIs, runLog, startRun, type RunBody } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ QUOTAS: '{"runs": 2}' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

const releaseRuns = async (application: TestApplication, more = ''): Promise<RunBody[]> =>
  (await application.get(`/runs?trigger_type=release${more}`)).data;

const actionsOf = async (id: string): Promise<string[]> =>
  (await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`)).body.data.map(
    ({ action }: { action: string }) => action,
  );

/** Asks for a deployment and waits until its release command runs. */
async function releasing(application: TestApplication): Promise<{ deployment: string; run: string }> {
  const { id: deployment } = await application.ask();
  const run = await waitFor('the run of the release command', async () =>
    (await releaseRuns(application)).find(({ trigger }) => trigger.id === deployment),
  );
  await runIs(application, run.id, 'running');
  return { deployment, run: run.id };
}

describe('a deployment with a release command', () => {
  let application: TestApplication;
  beforeAll(async () => {
    application = await service.application(
      procfileApp('one', 'sh -c "echo migrated as $SVC_RUN_ID; echo done > released.txt"'),
    );
  });

  test('runs it once as a run, in the files that its instances then have', async () => {
    const deployment = await application.deploy();
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    expect((await application.visit()).body).toBe('one released');
    const [run, ...others] = await releaseRuns(application);
    expect(others).toEqual([]);
    expect(run).toMatchObject({
      status: 'succeeded',
      status_reason: null,
      exit_code: 0,
      trigger: { type: 'release', id: deployment.id },
      deployment_id: deployment.id,
      process_type: 'web',
      tty: false,
      detached: true,
      preview_id: null,
    });
    expect(await application.get(`/runs/${run.id}`)).toEqual(run);
  });

  test('has its output in the log of the deployment, and the run shows the same lines', async () => {
    const [run] = await releaseRuns(application);
    const lines = ['-----> Running the release command', `migrated as ${run.id}`];
    expect(await runLog(application, run.id)).toEqual(lines);
    const { data } = await application.get(`/deployments/${run.deployment_id}/logs?order=asc&limit=1000`);
    expect(data.filter(({ step }: { step: string }) => step === 'release')).toEqual([
      expect.objectContaining({ source: 'system', message: lines[0] }),
      expect.objectContaining({ source: 'app', message: lines[1] }),
    ]);
    const { data: ofApplication } = await application.get('/logs?search=migrated');
    expect(ofApplication).toEqual([]);
  });

  test('runs it again for a rollback, and tells nothing of it in the activity but the deployments', async () => {
    const [first] = await releaseRuns(application);
    application.push(procfileApp('two', 'echo second'));
    expect((await application.deploy()).status).toBe('active');
    const { id } = await application.post('/rollback', { deployment_id: first.deployment_id });
    expect((await application.ended(id)).status).toBe('active');
    expect((await application.visit()).body).toBe('one released');
    const runs = await releaseRuns(application);
    expect(runs.map(({ trigger }) => trigger.id)).toEqual([id, expect.any(String), first.deployment_id]);
    for (const run of runs) expect(await actionsOf(run.id)).toEqual([]);
  });

  test('is not kept from its end by quotas of runs, and does not count for them', async () => {
    const own = await service.application(procfileApp('own', 'sleep 600'));
    const busy = await Promise.all([1, 2].map(() => startRun(application, 'sleep 600')));
    const refused = await service.call('POST', `/v2/applications/${application.id}/runs`, {
      body: { command: 'true' },
    });
    expect([refused.status, refused.body.code]).toEqual([403, 'quota_exceeded']);
    const { deployment } = await releasing(own);
    await application.post(`/runs/${busy[0].id}/cancel`);
    await runEnded(application, busy[0].id);
    expect((await finishedRun(application, 'true')).status).toBe('succeeded');
    await own.post(`/deployments/${deployment}/cancel`);
    await application.post(`/runs/${busy[1].id}/cancel`);
    await runEnded(application, busy[1].id);
  });
});

describe('a release command that fails', () => {
  test('fails its deployment with its exit code and what it printed, and is told once', async () => {
    const application = await service.application(procfileApp('bad', 'sh -c "echo no table of $API_KEY; exit 4"'));
    await service.call('PUT', `/v2/applications/${application.id}/env/API_KEY`, { body: { value: 'very-secret' } });
    const { id, status, status_reason } = await application.deploy();
    expect([status, status_reason]).toEqual([
      'failed',
      'The release command `sh -c "echo no table of $API_KEY; exit 4"` ended with exit code 4: no table of ***.',
    ]);
    const [run] = await releaseRuns(application);
    expect(run).toMatchObject({ status: 'failed', exit_code: 4, trigger: { type: 'release', id } });
    expect(await actionsOf(run.id)).toEqual([]);
    expect(await actionsOf(id)).toContain('deployment.failed');
  });

  test.each([
    ['kill -KILL $$', 'was ended by signal 9 (SIGKILL) and printed nothing that says why.'],
    ['no-such-program', expect.stringMatching(/^ended with exit code 127: .*no-such-program: not found\.$/)],
  ])('%s says so', async (command, reason) => {
    const application = await service.application(procfileApp('bad', command));
    const { status, status_reason } = await application.deploy();
    const subject = `The release command \`${command}\` `;
    expect([status, status_reason.slice(0, subject.length)]).toEqual(['failed', subject]);
    expect(status_reason.slice(subject.length)).toEqual(reason);
    const [run] = await releaseRuns(application);
    expect(run).toMatchObject({ status: 'failed', status_reason: expect.stringMatching(/^The .*command /) });
  });
});

describe('canceled', () => {
  const waiting = (mark: string): GitFiles => ({
    ...procfileApp(mark, `node wait.js ${mark}`),
    'wait.js': `process.on('SIGTERM', () => { console.log('told'); process.exit(7); });
      setInterval(() => {}, 1e3); console.log('ready');`,
  });

  test('with its deployment it gets the grace time, and leaves nothing', async () => {
    const application = await service.application(waiting('with-deployment'));
    const { deployment, run } = await releasing(application);
    await waitFor('it is ready', async () => (await runLog(application, run)).includes('ready'));
    expect((await application.post(`/deployments/${deployment}/cancel`)).status).toBe('canceled');
    expect(await runEnded(application, run)).toMatchObject({
      status: 'canceled',
      status_reason: 'Canceled because its deployment was canceled.',
      exit_code: 7,
    });
    expect(await runLog(application, run)).toContain('told');
    expect(processesWith('with-deployment')).toEqual([]);
    application.push(procfileApp('after'));
    expect((await application.deploy()).status).toBe('active');
  });

  test('by itself it fails its deployment', async () => {
    const application = await service.application(waiting('by-itself'));
    const { deployment, run } = await releasing(application);
    await application.post(`/runs/${run}/cancel`);
    const { status, status_reason } = await application.ended(deployment);
    expect(status).toBe('failed');
    expect(status_reason).toMatch(/^The release command `node wait.js by-itself` was canceled by .*\.$/);
    expect((await application.get(`/runs/${run}`)).status).toBe('canceled');
  });
});

test('of a preview it is a run of the preview', async () => {
  const application = await service.application(procfileApp('main'));
  expect((await application.deploy()).status).toBe('active');
  service.git.commit(application.name, procfileApp('topic', 'echo in $SVC_PREVIEW_ID'), { branch: 'topic' });
  const preview = await application.post('/previews', { branch: 'topic' });
  const run = await waitFor(
    'its run',
    async () => (await releaseRuns(application, `&preview_id=${preview.id}`))[0],
    30_000,
  );
  expect(await runEnded(application, run.id)).toMatchObject({ status: 'succeeded', preview_id: preview.id });
  expect(await runLog(application, run.id)).toContain(`in ${preview.id}`);
  expect(await releaseRuns(application)).toHaveLength(1);
});
