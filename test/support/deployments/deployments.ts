// Deployments as rows and requests, for tests that run no job: a service, a Git server, and an application for each
// test.
import { startGitServer, type GitServer } from '../git/git_server';
import { startService, type Answer, type CallOptions, type TestService } from '../service';

const ROOMY = { ALLOW_HTTP_GIT: '1', ALLOW_LOCAL_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' };

export let git: GitServer;
export let service: TestService;
/** Commits: two on main, one on the branch that goes out from them. */
export let [first, head, feature] = ['', '', ''];
export let application: string;
export let serial = 0;

/** Starts the service and the Git server of a test file, and makes an application for each test. */
export function useDeployments(): void {
  beforeAll(async () => {
    git = await startGitServer();
    first = git.makeRepository('shop', { 'index.html': 'one' });
    head = git.commit('shop', { 'index.html': 'two' });
    feature = git.commit('shop', { 'index.html': 'three' }, { branch: 'feature/basket' });
    git.makeRepository('empty', {});
    service = await startService({ settings: ROOMY });
  });

  afterAll(async () => {
    await service?.close();
    await git?.close();
  });

  beforeEach(async () => {
    application = await newApplication();
  });
}

export async function newApplication(
  source: object | null = { type: 'git', repository_url: git.url('shop') },
  options: CallOptions = {},
): Promise<string> {
  const { status, body } = await service.call('POST', '/v2/applications', {
    body: { name: `shop-${(serial += 1)}`, ...(source && { source }) },
    ...options,
  });
  expect(status).toBe(201);
  return body.id;
}

/** Sets the application that the functions below act on. */
export function useApplication(id: string): void {
  application = id;
}

export const pathOf = (id = application, rest = ''): string => `/v2/applications/${id}/deployments${rest}`;
export const deploy = (body: object = {}, id = application, options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', pathOf(id), { body, ...options });
export const get = async (id: string): Promise<Answer['body']> =>
  (await service.call('GET', pathOf(application, `/${id}`))).body;
export const cancel = (id: string, of = application): Promise<Answer> =>
  service.call('POST', pathOf(of, `/${id}/cancel`));
export const rollBack = (deployment_id: string, of = application): Promise<Answer> =>
  service.call('POST', `/v2/applications/${of}/rollback`, { body: { deployment_id } });
export const list = async (query = '', of = application): Promise<Answer['body'][]> =>
  (await service.call('GET', `${pathOf(of)}?${query}`)).body.data;

export async function deployed(body: object = {}): Promise<Answer['body']> {
  const answer = await deploy(body);
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body;
}

/** As the job leaves a row. */
export const become = (id: string, columns: string): Promise<unknown> =>
  service.sql(`update deployments set ${columns} where id = $1`, [id]);
export const wasActive = (id: string): Promise<unknown> =>
  become(
    id,
    "status = 'superseded', activated_at = now(), finished_at = now(), artifact_kept = true, commit_message = " +
      `'Two', commit_author = 'Ada', plan = '{"processes": {}, "release_command": null}'`,
  );

export async function expectProblem(
  answer: Answer | Promise<Answer>,
  status: number,
  code: string,
  members: object = {},
): Promise<Answer['body']> {
  const { body, ...rest } = await answer;
  expect({ status: rest.status, ...body }).toMatchObject({ status, code, ...members });
  return body;
}
