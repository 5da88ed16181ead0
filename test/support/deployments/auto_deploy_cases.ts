// A service and a Git server, and applications that may watch a repository of it.
import { startGitServer, type GitServer } from '../git/git_server';
import { startService, type Answer, type CallOptions, type TestService } from '../service';
import { withConfig } from '../config';

export const SETTINGS = { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', ...withConfig({ gitPollSeconds: 1 }) };

export let git: GitServer;

export let service: TestService;

export let application: string;

export let repository: string;

export let serial = 0;

/** An application with a repository of its own. */
export async function begin(): Promise<void> {
  repository = `shop-${(serial += 1)}`;
  git.makeRepository(repository, { 'index.html': 'one', 'docs/readme.md': 'one' });
  application = await newApplication({ type: 'git', repository_url: git.url(repository) });
}

export async function newApplication(source: object | null): Promise<string> {
  const { body } = await service.call('POST', '/v2/applications', {
    body: { name: `app-${(serial += 1)}`, ...(source && { source }) },
  });
  return body.id;
}

export const pathOf = (id = application): string => `/v2/applications/${id}/auto_deploy`;

export const get = async (options: CallOptions = {}): Promise<Answer> => service.call('GET', pathOf(), options);

export const patch = (body: object, options: CallOptions = {}, id = application): Promise<Answer> =>
  service.call('PATCH', pathOf(id), { body, ...options });

/** To be called where tests are declared. */
export function setUpAutoDeploy(): void {
  beforeAll(async () => {
    git = await startGitServer();
    service = await startService({ settings: SETTINGS });
  });
  afterAll(async () => {
    await service?.close();
    await git?.close();
  });
}
