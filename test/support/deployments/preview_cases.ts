// A service, a Git server, and an application with branches for each test.
import { startGitServer, type GitServer } from '../git/git_server';
import { startService, type Answer, type CallOptions, type TestService } from '../service';

export let git: GitServer;

export let service: TestService;

export let application: string;

export let [feature, proposed] = ['', ''];

export let serial = 0;

export async function newApplication(
  body: Record<string, unknown> = { source: { type: 'git', repository_url: git.url('shop') } },
): Promise<string> {
  const made = await service.call('POST', '/v2/applications', { body: { name: `shop-${(serial += 1)}`, ...body } });
  if (made.status !== 201) throw new Error(made.text);
  return made.body.id;
}

export const place = (rest = '', id = application): string => `/v2/applications/${id}/previews${rest}`;

export const post = (body: object, options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', place(), { body, ...options });

export async function created(body: object = { branch: 'main' }): Promise<Answer['body']> {
  const answer = await post(body);
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body;
}

/** Another application than the one of the test. */
export function actOn(id: string): void {
  application = id;
}

/** To be called where tests are declared. */
export function setUpPreviews(): void {
  beforeAll(async () => {
    git = await startGitServer();
    git.makeRepository('shop', { 'index.html': 'one' });
    feature = git.commit('shop', { 'index.html': 'two' }, { branch: 'feature/Basket_2' });
    proposed = git.commit('shop', { 'index.html': 'three' }, { branch: 'other' });
    git.setRef('shop', 'refs/pull/7/head', proposed);
    git.setRef('shop', 'refs/merge-requests/8/head', feature);
    git.makeRepository('empty', {});
    const quotas = '{"applications": 1000, "previews": 1000}';
    service = await startService({
      settings: {
        ALLOW_HTTP_GIT: '1',
        ALLOW_PRIVATE_ADDRESSES: '1',
        QUOTAS: quotas,
        APPS_DOMAIN: 'apps.example.com',
        INGRESS_PORT: '8000',
      },
    });
  });
  afterAll(async () => {
    await service?.close();
    await git?.close();
  });
  beforeEach(async () => {
    git.intercept = null;
    application = await newApplication();
  });
}
