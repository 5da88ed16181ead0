// A private repository by ssh from its deploy key to a running instance: a key that is made here, a real SSH server
// that knows nothing else, the pinned key of the host, pushes by webhook, and large files behind the same key.
import { execFileSync } from 'node:child_process';
import { QUICK, startDeployService, visitHost, type DeployService, type Visit } from '../support/deployments/deploy';
import { addLargeFile } from '../support/builds/lfs_server';
import { processesWith } from '../support/processes/processes';
import { startSshGitServer, type SshGitServer } from '../support/git/ssh_git_server';
import type { Answer } from '../support/service';
import { waitFor } from '../support/wait_for';
import { fileNeeds } from '../support/runner/programs';
import { withConfig } from '../support/config';

fileNeeds('ssh');

const WAIT_MS = 60_000;
let service: DeployService;
let ssh: SshGitServer;
let repository: string;
let application: Answer['body'];

const call = async (method: string, place: string, body?: object): Promise<Answer['body']> => {
  const answer = await service.call(method, place, body ? { body } : {});
  if (answer.status >= 300) throw new Error(answer.text);
  return answer.body;
};
const visit = (place: string): Promise<Visit> =>
  visitHost(service.platform.config.ingressPort, application.default_hostname, place);
const ended = (id: string): Promise<Answer['body']> =>
  waitFor(
    `the end of ${id}`,
    async () => {
      const found = await call('GET', `/v2/applications/${application.id}/deployments/${id}`);
      return ['active', 'failed', 'canceled'].includes(found.status) ? found : null;
    },
    WAIT_MS,
  );
const deploy = async (): Promise<Answer['body']> =>
  ended((await call('POST', `/v2/applications/${application.id}/deployments`, {})).id);

beforeAll(async () => {
  // No poll comes in the time of the test.
  service = await startDeployService(withConfig({ gitPollSeconds: 3600 }));
  ssh = await startSshGitServer(service.git);
  const { pointer } = addLargeFile(service.git.lfs, Buffer.from('a picture, as it were'));
  const files = { 'index.html': 'one', 'large.bin': pointer, '.gitattributes': '*.bin filter=lfs -text\n' };
  service.git.makeRepository('shop', files);
  ssh.lfs = { href: `${service.git.url('shop')}/info/lfs`, header: {} };
}, 60_000);

afterAll(async () => {
  await service?.close();
  await ssh?.close();
}, 60_000);

describe('a repository with a deploy key', () => {
  test('is deployed once the host knows the key, large files included', async () => {
    const made = await call('POST', '/v2/shared_repositories', { url: ssh.url('shop') });
    repository = `/v2/shared_repositories/${made.id}`;
    expect(made.deploy_key.public_key).toMatch(/^ssh-ed25519 /);
    const source = { type: 'git', shared_repository_id: made.id };
    application = await call('POST', '/v2/applications', { name: 'shop', source });
    await call('PATCH', `/v2/applications/${application.id}/settings`, QUICK);
    expect((await call('POST', `${repository}/verify`)).status).toBe('error');
    ssh.keys.add(made.deploy_key.public_key);
    const verified = await call('POST', `${repository}/verify`);
    expect(verified).toMatchObject({ status: 'active', host_key_fingerprint: ssh.fingerprint });
    const { status, status_reason } = await deploy();
    expect([status, status_reason]).toEqual(['active', null]);
    expect(await visit('/')).toEqual({ status: 200, body: 'one' });
    expect(await visit('/large.bin')).toEqual({ status: 200, body: 'a picture, as it were' });
    expect(ssh.commands).toContain("git-lfs-authenticate 'shop.git' download");
  }, 120_000);

  test('is deployed again by a request to its webhook address', async () => {
    const { webhook_url } = await call('GET', repository);
    await call('PATCH', `/v2/applications/${application.id}/auto_deploy`, { enabled: true });
    const sha = service.git.commit('shop', { 'index.html': 'two' });
    expect((await fetch(webhook_url, { method: 'POST' })).status).toBe(202);
    const pushed = await waitFor(
      'the deployment of the push',
      async () => {
        const { data } = await call('GET', `/v2/applications/${application.id}/deployments`);
        return data.find((one: { commit_sha: string }) => one.commit_sha === sha);
      },
      WAIT_MS,
    );
    expect((await ended(pushed.id)).status).toBe('active');
    expect((await visit('/')).body).toBe('two');
  }, 120_000);

  test('is refused when its host shows another key, until the deploy key is rotated', async () => {
    const seen: string[] = [];
    await ssh.close();
    const other = await startSshGitServer(service.git, ssh.port);
    ssh = Object.assign(other, { keys: ssh.keys, lfs: ssh.lfs });
    const words = /different host key than before\. If the host has a new key, rotate the deploy key/;
    const refused = await service.call('POST', `/v2/applications/${application.id}/deployments`, { body: {} });
    expect(refused.body).toMatchObject({ code: 'provider_error', detail: expect.stringMatching(words) });
    service.git.commit('shop', { 'index.html': 'three' });
    await fetch((await call('GET', repository)).webhook_url, { method: 'POST' });
    await waitFor('the reason', async () =>
      words.test((await call('GET', `/v2/applications/${application.id}/auto_deploy`)).status_reason ?? ''),
    );
    expect(ssh.commands).toEqual([]);
    expect((await visit('/')).body).toBe('two');
    const rotated = await call('POST', `${repository}/deploy_key/rotate`);
    ssh.keys.clear();
    ssh.keys.add(rotated.deploy_key.public_key);
    const verified = await call('POST', `${repository}/verify`);
    expect(verified).toMatchObject({ status: 'active', host_key_fingerprint: ssh.fingerprint });
    ssh.onCommand = () => void seen.push(...processesWith('ssh').map(({ args }) => args));
    expect((await deploy()).status).toBe('active');
    expect(seen.join('\n')).toContain('IdentityFile');
    const kept = execFileSync('sh', ['-c', `grep -rlF 'OPENSSH PRIVATE' ${service.dataDir} || true`]).toString();
    expect([kept, seen.join('\n').includes('OPENSSH PRIVATE')]).toEqual(['', false]);
  }, 120_000);
});
