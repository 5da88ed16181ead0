/** @tier heavy @quarter 4 @covers drivers/source jobs/deployments */
// The repository is not what it was: gone, without the branch, with another history.
import { nothingOrphaned, makeDoor, type Door } from '../support/processes/bad_days';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp, procfileApp } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

let service: DeployService;
let held: Door;
beforeAll(async () => {
  [service, held] = [await startDeployService({ BUILD_CONCURRENCY: '3' }), await makeDoor()];
}, 60_000);
afterAll(async () => {
  await held?.close();
  await service?.close();
}, 60_000);

const post = (application: TestApplication, body: object = {}) =>
  service.call('POST', `/v2/applications/${application.id}/deployments`, { body });

test('a repository that is gone before the request: 502, and no deployment', async () => {
  const application = await service.application(nodeApp('v1'));
  service.git.remove(application.name);
  const answer = await post(application);
  expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
    502,
    'provider_error',
    expect.stringMatching(/has no Git repository at this address/),
  ]);
  expect((await application.get('/deployments')).data).toEqual([]);
  expect(await application.get()).toMatchObject({ status: 'new' });
});

test('a branch, or a commit, that the repository does not have: 422 that names the field', async () => {
  const application = await service.application(nodeApp('v1'));
  const [branch, commit] = [
    await post(application, { branch: 'nowhere' }),
    await post(application, { commit_sha: 'f'.repeat(40) }),
  ];
  expect([branch.status, branch.body.code, branch.body.field, branch.body.detail]).toEqual([
    422,
    'reference_not_found',
    'branch',
    expect.stringContaining('nowhere'),
  ]);
  expect([commit.status, commit.body.code, commit.body.field]).toEqual([422, 'reference_not_found', 'commit_sha']);
  expect((await application.get('/deployments')).data).toEqual([]);
});

test('between request and build the repository goes, the branch goes, the history is written anew', async () => {
  const names = ['gone', 'branch', 'forced'] as const;
  const all = await Promise.all(names.map(() => service.application(procfileApp('v1', held.command))));
  const firsts = await Promise.all(all.map((application) => application.ask()));
  for (const application of all) application.push(procfileApp('v2'));
  const seconds = await Promise.all(all.map((application) => application.ask()));
  await waitFor('the first ones at the door', async () => held.waiting() >= 3);
  const [gone, branch, forced] = all as [TestApplication, TestApplication, TestApplication];
  service.git.remove(gone.name);
  service.git.setRef(branch.name, 'refs/heads/main', null);
  service.git.commit(forced.name, procfileApp('other history'), { parent: null });
  held.open();
  await Promise.all(all.map((application, index) => application.ended(firsts[index].id)));
  const ends = await Promise.all(all.map((application, index) => application.ended(seconds[index].id)));
  expect(ends.map(({ status }) => status)).toEqual(['failed', 'failed', 'failed']);
  expect(ends.map(({ status_reason }) => status_reason)).toEqual([
    expect.stringMatching(/has no Git repository at this address\. Check the address/),
    // The default branch is the one that went, so the server names no branch at all.
    expect.stringMatching(/^The repository is empty\. Push a first commit/),
    expect.stringMatching(
      new RegExp(`^There is no commit ${seconds[2].commit_sha} on the branch main any more: .*force push`),
    ),
  ]);
  for (const application of all)
    expect([(await application.get()).status, (await application.visit()).body]).toEqual(['running', 'v1 raw']);
  await nothingOrphaned(service);
}, 90_000);
