/** @tier heavy @quarter 3 @covers drivers/git_provider drivers/source */
// The token of a Git provider, and secrets that come of it: in nothing that the service prints or leaves on disk.
import { execFileSync } from 'node:child_process';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { startGitPeer, type GitPeer } from '../../support/git/git_peer';
import { waitFor } from '../../support/wait_for';
import { withConfig } from '../../support/config';

const TOKEN = 'token-that-no-log-may-hold';

let peer: GitPeer;
let plant: Plant;

beforeAll(async () => {
  peer = await startGitPeer('github');
  peer.tokens = new Set([TOKEN]);
  peer.repositories = [{ id: 1, full_name: 'acme/shop', private: true, default_branch: 'main' }];
  peer.git.makeRepository('acme/shop', { 'index.html': 'one' });
  plant = await startPlant({ LOG_LEVEL: 'debug', ...withConfig({ gitPollSeconds: 3600 }) });
}, 120_000);

afterAll(async () => {
  await plant?.close();
  await peer?.close();
}, 120_000);

test('a deployment, a webhook and a refused token put no secret into the log or a file', async () => {
  const call = async (method: string, path: string, body?: object) => (await plant.call(method, path, { body })).body;
  const token = { provider: 'github', base_url: peer.url, access_token: TOKEN };
  const { id: git } = await call('POST', '/v2/git_integrations', token);
  const source = { type: 'git', git_integration_id: git, repository_id: '1', branch: 'main' };
  const { id } = await call('POST', '/v2/applications', { name: 'shop', source });
  const latest = async () => (await call('GET', `/v2/applications/${id}/deployments`)).data[0];
  await call('POST', `/v2/applications/${id}/deployments`, {});
  await waitFor('the deployment', async () => (await latest()).status === 'active', 60_000);
  await call('PATCH', `/v2/applications/${id}/auto_deploy`, { enabled: true });
  await waitFor('the webhook', async () => peer.hooks.length === 1, 30_000);
  // From now on the provider refuses what it has taken: the error is noted, and told without the token.
  peer.tokens = new Set();
  const refused = await call('POST', `/v2/git_integrations/${git}/verify`);
  const late = await call('POST', `/v2/applications/${id}/deployments`, {});
  expect([refused.code, late.code].join()).toMatch(/provider_|source_/);
  const lines = JSON.stringify(await call('GET', `/v2/applications/${id}/logs?limit=1000`));
  const activity = JSON.stringify(await call('GET', '/v2/activity?limit=100').catch(() => null));
  const texts = { said: plant.said(), lines, activity, refused: JSON.stringify([refused, late]) };
  const secrets = [TOKEN, Buffer.from(`x-access-token:${TOKEN}`).toString('base64'), peer.hooks[0]?.secret ?? ''];
  expect(texts.said.length).toBeGreaterThan(5_000);
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(15);
    for (const [name, text] of Object.entries(texts)) expect([name, text.includes(secret)]).toEqual([name, false]);
    expect(filesWith(secret)).toBe('');
  }
}, 150_000);

/** Below the runtime directory, where sources, releases and run directories are. */
function filesWith(secret: string): string {
  try {
    return execFileSync('grep', ['-rlF', '--', secret, plant.runtimeDir], { encoding: 'utf8' });
  } catch (error) {
    if ((error as { status?: number }).status === 1) return '';
    throw error;
  }
}
