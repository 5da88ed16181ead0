// What each provider's client asks, against peers that refuse what is not published: also Bitbucket, which has no
// address of one's own. Through the service: test/integrations/git_integration.test.ts (listGitRepositories,
// getGitRepository, listGitBranches, listGitPullRequests).
import type { GitProviderClient, GitProviderName } from '../../core/protocols/git_provider';
import { openGitProviders } from '../../drivers/git_provider/open';
import { openOutbound } from '../../core/outbound';
import { bitbucketId } from '../support/git/git_peer_bitbucket';
import { startGitPeer, type GitPeer } from '../support/git/git_peer';

const outbound = openOutbound({ isAllowed: () => true, hostsFile: true, resolvers: [], caFile: null });
const API = { github: '/api/v3', gitlab: '/api/v4', gitea: '/api/v1', bitbucket: '/2.0' };
const SHA = 'a'.repeat(40);

describe.each(['github', 'gitlab', 'gitea', 'bitbucket'] as GitProviderName[])('%s', (provider) => {
  let peer: GitPeer;
  let client: GitProviderClient;
  const id = provider === 'bitbucket' ? bitbucketId(1) : '1';
  const of = { id, full_name: 'acme/shop' };

  beforeAll(async () => {
    peer = await startGitPeer(provider);
    const service = { web: peer.url, api: peer.url + API[provider] };
    const providers = openGitProviders(outbound, {
      ...{ github: service, gitlab: service, gitea: service, bitbucket: service },
    });
    client = providers.client({ provider, base_url: null, auth_type: 'token', token: 'good-token-1' });
    peer.repositories = [{ id: 1, full_name: 'acme/shop', private: true, default_branch: 'main' }];
    peer.git.makeRepository('acme/shop', { 'index.html': 'one' });
    const pull = { title: 'A', source: 'feature', target: 'main', author: 'ada', sha: SHA, fork: false };
    peer.pulls.set(1, { ...pull, number: 1, state: 'open' });
    peer.pulls.set(2, { ...pull, number: 2, state: 'merged' });
    peer.pulls.set(3, { ...pull, number: 3, state: 'closed', fork: true });
  });

  afterAll(async () => {
    expect(peer.mistakes).toEqual([]);
    await peer.close();
  });

  test('reads accounts, repositories, branches and pull requests', async () => {
    expect(await client.account()).toMatchObject({ login: 'acme-bot', type: 'user', missing_scopes: [] });
    let [found, at] = [[] as string[], null as string | null];
    do {
      const portion = await client.repositories(at, null);
      found = [...found, ...portion.rows.map((row) => row.id)];
      at = portion.next;
    } while (at !== null);
    expect(found).toEqual([id]);
    expect(await client.repository(id)).toMatchObject({
      ...{ id, full_name: 'acme/shop', name: 'shop', private: true, default_branch: 'main' },
      clone_url: `${peer.url}/acme/shop.git`,
    });
    expect((await client.branches(of, null, 'main')).rows).toMatchObject([{ name: 'main' }]);
    for (const [state, number] of [
      ['open', 1],
      ['merged', 2],
      ['closed', 3],
    ] as const)
      expect((await client.pullRequests(of, state, null)).rows.map((row) => row.number)).toEqual([number]);
    expect(await client.pullRequest(of, 3)).toMatchObject({ state: 'closed', from_fork: true, commit_sha: SHA });
    expect(await client.pullRequest(of, 1)).toMatchObject({ from_fork: false, author: 'ada' });
    await expect(client.pullRequest(of, 99)).rejects.toMatchObject({ failure: 'not_found' });
  });

  test('waits for the checks of others, and not for its own', async () => {
    expect(await client.checks(of, SHA)).toMatchObject({ state: 'none' });
    const own = {
      state: 'pending' as const,
      description: 'Building',
      url: 'https://x.example.com/',
      context: 'platform/a',
    };
    await client.setStatus(of, SHA, own);
    expect(await client.checks(of, SHA)).toMatchObject({ state: 'none' });
    peer.checks.set(SHA, [
      { name: 'unit', state: 'success' },
      { name: 'lint', state: 'pending' },
    ]);
    expect(await client.checks(of, SHA)).toEqual({ state: 'pending', failed: [], pending: ['lint'] });
    peer.checks.set(SHA, [
      { name: 'unit', state: 'success' },
      { name: 'lint', state: 'failure' },
    ]);
    expect(await client.checks(of, SHA)).toEqual({ state: 'failure', failed: ['lint'], pending: [] });
    peer.checks.set(SHA, [{ name: 'unit', state: 'success' }]);
    expect(await client.checks(of, SHA)).toMatchObject({ state: 'success' });
  });

  test('sets a status, and writes one comment that it changes later', async () => {
    await client.setStatus(of, SHA, {
      state: 'failure',
      description: 'x'.repeat(200),
      url: null,
      context: 'platform/a',
    });
    expect(peer.statuses[0]).toMatchObject({ sha: SHA, state: 'failure', context: 'platform/a' });
    const comment = await client.writeComment(of, 1, null, 'first');
    expect(await client.writeComment(of, 1, comment, 'second')).toBe(comment);
    expect(peer.comments).toMatchObject([{ number: 1, text: 'second' }]);
  });

  test('follows a repository to its new name, for writes too', async () => {
    peer.renamed.set('acme/old', 'acme/shop');
    const old = { id, full_name: 'acme/old' };
    expect((await client.branches(old, null, null)).rows).toMatchObject([{ name: 'main' }]);
    const context = 'platform/renamed';
    await client.setStatus(old, SHA, { state: 'success', description: 'x', url: 'https://x.example.com/', context });
    expect(peer.statuses[0]).toMatchObject({ sha: SHA, state: 'success', context });
  });

  test('creates a webhook once, and removes it', async () => {
    const hook = await client.ensureWebhook(of, 'https://api.example.com/hooks/git/x', 'secret');
    await client.ensureWebhook(of, 'https://api.example.com/hooks/git/x', 'secret');
    expect(peer.hooks).toMatchObject([{ url: 'https://api.example.com/hooks/git/x', secret: 'secret' }]);
    await client.removeWebhook(of, hook);
    expect(peer.hooks).toEqual([]);
  });
});
