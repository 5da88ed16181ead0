// Previews redeployed and deleted (docs/contract/resources.md §4): what a request writes. Made and read:
// preview.test.ts.
import { pollPreview } from '../../models/previews/preview/poll';
import { startGitServer, type GitServer } from '../support/git/git_server';
import { startService, type Answer, type CallOptions, type TestService } from '../support/service';

let git: GitServer;
let service: TestService;
let application: string;
let serial = 0;

beforeAll(async () => {
  git = await startGitServer();
  git.makeRepository('shop', { 'index.html': 'one' });
  const quotas = '{"applications": 1000, "previews": 1000}';
  service = await startService({ settings: { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', QUOTAS: quotas } });
});

afterAll(async () => {
  await service?.close();
  await git?.close();
});

beforeEach(async () => {
  git.intercept = null;
  application = await newApplication();
});

async function newApplication(): Promise<string> {
  const made = await service.call('POST', '/v2/applications', {
    body: { name: `shop-${(serial += 1)}`, source: { type: 'git', repository_url: git.url('shop') } },
  });
  if (made.status !== 201) throw new Error(made.text);
  return made.body.id;
}

const place = (rest = '', id = application): string => `/v2/applications/${id}/previews${rest}`;
const redeploy = (id: string, options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', place(`/${id}/redeploy`), options);
const become = (id: string, status: string): Promise<unknown> =>
  service.sql('update previews set status = $2, status_reason = $3 where id = $1', [id, status, 'As it was.']);

async function created(body: object = { branch: 'main' }): Promise<Answer['body']> {
  const answer = await service.call('POST', place(), { body });
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body;
}

const deployments = (): Promise<object[]> =>
  service.sql('select * from deployments where application_id = $1 order by number', [application]);

async function expectProblem(
  answer: Answer | Promise<Answer>,
  status: number,
  code: string,
  members: object = {},
): Promise<Answer['body']> {
  const { body, ...rest } = await answer;
  expect({ status: rest.status, ...body }).toMatchObject({ status, code, ...members });
  return body;
}

describe('redeployment', () => {
  it.each(['running', 'failed'])('of a %s preview builds the present head', async (status) => {
    const branch = `again-${status}`;
    git.commit('shop', { 'index.html': status }, { branch });
    const { id } = await created({ branch });
    await become(id, status);
    const newer = git.commit('shop', { 'index.html': `${status} again` }, { branch });
    const answer = await redeploy(id);
    expect([answer.status, answer.body.status, answer.body.status_reason]).toEqual([202, 'queued', null]);
    expect((await deployments())[1]).toMatchObject({
      preview_id: id,
      commit_sha: newer,
      trigger: 'manual',
      status: 'queued',
      number: 2,
    });
  });

  it.each(['queued', 'building', 'deploying'])('of a %s preview has to wait', async (status) => {
    const { id } = await created();
    await become(id, status);
    await expectProblem(redeploy(id), 409, 'resource_busy', { resource_status: status });
    expect(await deployments()).toHaveLength(1);
  });

  it('happens once, however many ask at a time', async () => {
    const { id } = await created();
    await become(id, 'running');
    const answers = await Promise.all([1, 2, 3].map(() => redeploy(id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409]);
    expect(await deployments()).toHaveLength(2);
  });

  it('says why there is nothing to build', async () => {
    git.commit('shop', { 'index.html': 'short' }, { branch: 'short' });
    const { id } = await created({ branch: 'short' });
    await become(id, 'running');
    git.setRef('shop', 'refs/heads/short', null);
    await expectProblem(redeploy(id), 422, 'reference_not_found', { field: 'branch' });
    git.intercept = () => ({ status: 500 });
    await expectProblem(redeploy(id), 502, 'provider_error');
    await service.call('PATCH', `/v2/applications/${application}`, { body: { source: null } });
    await expectProblem(redeploy(id), 422, 'source_not_configured');
    expect((await service.call('GET', place(`/${id}`))).body.status).toBe('running');
  });

  it('needs the scope to deploy', async () => {
    const { id } = await created();
    await become(id, 'running');
    await expectProblem(
      redeploy(id, { key: await service.mintKey({ scopes: ['read', 'write'] }) }),
      403,
      'insufficient_scope',
      { required_scope: 'deploy' },
    );
    expect((await redeploy(id, { key: await service.mintKey({ scopes: ['deploy'] }) })).status).toBe(202);
  });
});

describe('a push', () => {
  const poll = (id: string, everyMs = 0): Promise<boolean> => {
    const { database: sql, probes, secrets, config } = service.platform;
    return pollPreview({ sql, probes, secrets, config }, id, everyMs);
  };

  it.each(['running', 'failed'])('to the branch of a %s preview redeploys it, once', async (status) => {
    const branch = `pushed-${status}`;
    git.commit('shop', { 'index.html': status }, { branch });
    const { id } = await created({ branch });
    await become(id, status);
    expect(await poll(id)).toBe(false);
    const newer = git.commit('shop', { 'index.html': `${status} again` }, { branch });
    expect((await Promise.all([poll(id), poll(id)])).sort()).toEqual([false, true]);
    expect((await service.call('GET', place(`/${id}`))).body).toMatchObject({ status: 'queued', status_reason: null });
    expect(await deployments()).toMatchObject([
      { number: 1 },
      { number: 2, preview_id: id, commit_sha: newer, trigger: 'pull_request', created_by: { type: 'system' } },
    ]);
    await become(id, 'failed');
    expect(await poll(id)).toBe(false);
  });

  it('is asked for as often as said, and not while a deployment is on its way', async () => {
    git.commit('shop', { 'index.html': 'often' }, { branch: 'often' });
    const { id } = await created({ branch: 'often' });
    git.commit('shop', { 'index.html': 'more often' }, { branch: 'often' });
    expect(await poll(id)).toBe(false);
    await become(id, 'running');
    await service.sql('update previews set looked_at = now() where id = $1', [id]);
    expect(await poll(id, 60_000)).toBe(false);
    expect(await poll(id)).toBe(true);
  });

  it('that can not be asked for changes nothing', async () => {
    const { id } = await created();
    await become(id, 'running');
    git.intercept = () => ({ status: 500 });
    expect(await poll(id)).toBe(false);
    expect((await service.call('GET', place(`/${id}`))).body.status).toBe('running');
  });
});

describe('deletion', () => {
  it('works in every status, frees the branch, and leaves the rest to the loop', async () => {
    for (const status of ['queued', 'building', 'deploying', 'running', 'failed']) {
      const { id } = await created();
      await become(id, status);
      expect((await service.call('DELETE', place(`/${id}`))).status).toBe(204);
      expect((await service.call('GET', place(`/${id}`))).status).toBe(404);
      expect((await service.call('DELETE', place(`/${id}`))).status).toBe(404);
      expect(
        await service.sql('select next_at <= now() as due from previews where id = $1 and deleted_at is not null', [
          id,
        ]),
      ).toEqual([{ due: true }]);
    }
    expect((await service.call('GET', place())).body.data).toEqual([]);
  });

  it('checks If-Match', async () => {
    const { id } = await created();
    const { headers } = await service.call('GET', place(`/${id}`));
    await service.sql('update previews set version = version + 1 where id = $1', [id]);
    await expectProblem(
      service.call('DELETE', place(`/${id}`), { headers: { 'If-Match': headers.get('etag') as string } }),
      412,
      'precondition_failed',
    );
  });

  it('comes with that of the application', async () => {
    const { id } = await created();
    expect((await service.call('DELETE', `/v2/applications/${application}`)).status).toBe(204);
    expect(
      await service.sql('select deleted_at is not null as gone, next_at <= now() as due from previews where id = $1', [
        id,
      ]),
    ).toEqual([{ gone: true, due: true }]);
    expect((await service.call('GET', place(`/${id}`))).status).toBe(404);
  });
});
