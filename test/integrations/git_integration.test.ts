// Git integrations with tokens and with OAuth, and what they see, at peers that are built on what the four providers
// publish of their APIs (test/support/git/git_peer.ts).
import type { GitProviderName } from '../../core/protocols/git_provider';
import { bitbucketId } from '../support/git/git_peer_bitbucket';
import { startGitPeer, type GitPeer } from '../support/git/git_peer';
import { startService, type Answer, type TestService } from '../support/service';

const PROVIDERS: GitProviderName[] = ['github', 'gitlab', 'gitea'];
const peers = {} as Record<GitProviderName, GitPeer>;
let service: TestService;

beforeAll(async () => {
  for (const provider of PROVIDERS) peers[provider] = await startGitPeer(provider);
  const clients = PROVIDERS.map((provider) => `${provider}@${peers[provider].url}=client:secret-of-client`);
  const settings = { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', GIT_OAUTH_CLIENTS: clients.join(',') };
  service = await startService({ settings });
  for (const peer of Object.values(peers)) {
    peer.repositories = Array.from({ length: 130 }, (_, index) => ({
      ...{ id: index + 1, full_name: `acme/shop-${index + 1}`, private: true, default_branch: 'main' },
    }));
    peer.git.makeRepository('acme/shop-1', { 'index.html': 'one' });
    for (let index = 0; index < 3; index += 1)
      peer.git.commit('acme/shop-1', { [`f${index}`]: 'x' }, { branch: `feature-${index}` });
    peer.pulls.set(7, {
      ...{ number: 7, title: 'Add a cart', state: 'open', source: 'feature-1', target: 'main', author: 'ada' },
      ...{ sha: peer.branchesOf('acme/shop-1')[0]?.sha ?? '', fork: false },
    });
  }
});

afterAll(async () => {
  await service?.close();
  for (const peer of Object.values(peers)) {
    expect(peer.mistakes).toEqual([]);
    await peer.close();
  }
});

afterEach(() => {
  for (const peer of Object.values(peers)) Object.assign(peer, { fault: null, scopes: ['repo', 'api'] });
});

const create = (provider: GitProviderName, more: object = {}, options = {}): Promise<Answer> =>
  service.call('POST', '/v2/git_integrations', {
    body: { provider, base_url: peers[provider].url, access_token: 'good-token-1', ...more },
    ...options,
  });
/** A project for each test: an account is connected once in one. */
async function connected(provider: GitProviderName): Promise<{ path: string; call: TestService['call']; id: string }> {
  const { id: project } = await service.newProject();
  const { status, body } = await create(provider, {}, { project });
  expect([status, body?.detail]).toEqual([201, undefined]);
  const call: TestService['call'] = (method, path, options) => service.call(method, path, { project, ...options });
  return { path: `/v2/git_integrations/${body.id}`, call, id: body.id };
}

describe.each(PROVIDERS)('%s', (provider) => {
  test('a token is checked, kept and never shown', async () => {
    const { path, call, id } = await connected(provider);
    const { body, text } = await call('GET', path);
    expect(body).toMatchObject({
      ...{ name: 'acme-bot', provider, base_url: peers[provider].url, auth_type: 'token', authorization_url: null },
      ...{ account: { login: 'acme-bot', type: 'user' }, status: 'active', status_reason: null },
    });
    const rows = await service.sql('select * from git_integrations where id = $1', [id]);
    const activity = await service.sql('select * from activity where resource_id = $1', [id]);
    expect(JSON.stringify(rows) + JSON.stringify(activity) + text).not.toContain('good-token-1');
    const twin = await call('POST', '/v2/git_integrations', {
      body: { provider, base_url: `${peers[provider].url}/`, access_token: 'good-token-1' },
    });
    expect([twin.status, twin.body.code]).toEqual([409, 'already_exists']);
  });

  test('repositories come in pages over the pages of the provider, and can be searched', async () => {
    const { path, call } = await connected(provider);
    const names: string[] = [];
    let cursor: string | null = null;
    do {
      const place: string = `${path}/repositories?limit=60${cursor ? `&cursor=${cursor}` : ''}`;
      const { status, body } = await call('GET', place);
      expect(status).toBe(200);
      names.push(...body.data.map((row: { full_name: string }) => row.full_name));
      cursor = body.next_cursor;
    } while (cursor);
    expect(names.sort()).toEqual(peers[provider].repositories.map(({ full_name }) => full_name).sort());
    const found = await call('GET', `${path}/repositories?search=SHOP-12`);
    expect(found.body.data.map((row: { name: string }) => row.name).sort()).toEqual(
      [12, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129].map((number) => `shop-${number}`).sort(),
    );
    expect(found.body.next_cursor).toBeNull();
    const altered = await call('GET', `${path}/repositories?limit=60&search=x&cursor=${'A'.repeat(40)}`);
    expect(altered.body.code).toBe('invalid_cursor');
  });

  test('a repository, its branches and its pull requests are read from the provider', async () => {
    const { path, call } = await connected(provider);
    const one = await call('GET', `${path}/repositories/1`);
    expect(one.body).toMatchObject({ id: '1', full_name: 'acme/shop-1', name: 'shop-1', private: true });
    expect((await call('GET', `${path}/repositories/9999`)).body.code).toBe('not_found');
    const branches = await call('GET', `${path}/repositories/1/branches?search=feature`);
    expect(branches.body.data.map((row: { name: string }) => row.name).sort()).toEqual([
      'feature-0',
      'feature-1',
      'feature-2',
    ]);
    const all = await call('GET', `${path}/repositories/1/branches`);
    expect(all.body.data).toContainEqual({
      ...{ name: 'main', protected: true },
      commit_sha: peers[provider].branchesOf('acme/shop-1').find(({ name }) => name === 'main')?.sha,
    });
    const pulls = await call('GET', `${path}/repositories/1/pull_requests`);
    expect(pulls.body.data).toMatchObject([
      {
        number: 7,
        title: 'Add a cart',
        state: 'open',
        source_branch: 'feature-1',
        target_branch: 'main',
        author: 'ada',
      },
    ]);
    expect((await call('GET', `${path}/repositories/1/pull_requests?state=merged`)).body.data).toEqual([]);
  });

  test('OAuth connects with state and PKCE, once, and refreshes under a lock', async () => {
    const { id: project } = await service.newProject();
    const body = { provider, base_url: peers[provider].url, auth_type: 'oauth' };
    const made = await service.call('POST', '/v2/git_integrations', { body, project });
    expect([made.status, made.body.status, made.body.account]).toEqual([201, 'pending', null]);
    const path = `/v2/git_integrations/${made.body.id}`;
    expect((await service.call('GET', `${path}/repositories`, { project })).body.code).toBe('invalid_state');
    const { searchParams, origin } = new URL(made.body.authorization_url);
    expect([origin, searchParams.get('code_challenge_method')]).toEqual([peers[provider].url, 'S256']);
    const callback = `${service.url}/git/oauth/callback?state=${searchParams.get('state')}&code=abc`;
    expect((await fetch(callback.replace(/state=[^&]*/, 'state=wrong'))).status).toBe(400);
    expect(await (await fetch(callback)).text()).toContain('<button>Connect</button>');
    expect((await service.call('GET', path, { project })).body.status).toBe('pending');
    peers[provider].grants = [{ access_token: 'granted-1', refresh_token: 'refresh-1', expires_in: 30 }];
    expect((await fetch(callback, { method: 'POST' })).status).toBe(200);
    expect((await service.call('GET', path, { project })).body).toMatchObject({
      ...{ status: 'active', name: 'acme-bot', authorization_url: null, account: { login: 'acme-bot' } },
    });
    expect((await fetch(callback, { method: 'POST' })).status).toBe(400);
    // It expires in less than a minute: of ten requests at once one refreshes it.
    peers[provider].grants = [{ access_token: 'granted-2', refresh_token: 'refresh-2', expires_in: 3600 }];
    const asked = Array.from({ length: 10 }, () => service.call('GET', `${path}/repositories/1`, { project }));
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(10).fill(200));
    const grants = peers[provider].requests.filter((one) => one.body?.grant_type === 'refresh_token');
    expect(grants.map((one) => one.body.refresh_token)).toEqual(['refresh-1']);
    const code = peers[provider].requests.find((one) => one.body?.grant_type === 'authorization_code');
    expect(code?.body).toMatchObject({ code: 'abc', redirect_uri: `${service.url}/git/oauth/callback` });
  });
});

describe('what a provider refuses', () => {
  test.each(['tökens-of-mine', 'token of mine', 'token\tof-mine'])(
    'a token that no header can carry: %j',
    async (token) => {
      const { status, body } = await create('github', { access_token: token });
      expect([status, body.code, body.errors]).toEqual([
        ...[422, 'validation_failed'],
        [
          expect.objectContaining({
            ...{ field: 'access_token', code: 'invalid_format' },
            detail: 'must consist of printable ASCII characters without spaces',
          }),
        ],
      ]);
    },
  );

  test('a wrong token, and one whose scope is too narrow, by name', async () => {
    const wrong = await create('github', { access_token: 'wrong-token' });
    expect([wrong.status, wrong.body.code]).toEqual([422, 'provider_auth_failed']);
    expect(wrong.body.detail).toContain('Bad credentials');
    peers.github.scopes = ['read:user'];
    expect((await create('github')).body).toMatchObject({ code: 'provider_auth_failed' });
    expect((await create('github')).body.detail).toContain('`repo`');
  });

  test('a token that is revoked later turns the integration to error, and a new one back', async () => {
    const { path, call } = await connected('gitlab');
    peers.gitlab.fault = () => ({ status: 401, json: { message: '401 Unauthorized' } });
    const revoked = await call('GET', `${path}/repositories`);
    expect(revoked.body).toMatchObject({ code: 'provider_error', retryable: false });
    expect((await call('GET', path)).body).toMatchObject({ status: 'error' });
    expect((await call('GET', `${path}/repositories`)).body.code).toBe('invalid_state');
    expect((await call('POST', `${path}/verify`)).body).toMatchObject({ status: 'error' });
    peers.gitlab.fault = null;
    expect((await call('POST', `${path}/verify`)).body).toMatchObject({ status: 'active', status_reason: null });
    peers.gitlab.tokens.add('good-token-2');
    const renamed = await call('PATCH', path, { body: { name: 'Acme', access_token: 'good-token-2' } });
    expect(renamed.body).toMatchObject({ name: 'Acme', status: 'active' });
  });

  test('a rate limit is told with its end, and respected', async () => {
    const { path, call } = await connected('github');
    const reset = Math.floor(Date.now() / 1000) + 120;
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) };
    peers.github.tokens.add('limited-token');
    await call('PATCH', path, { body: { access_token: 'limited-token' } });
    peers.github.fault = () => ({ status: 403, json: { message: 'API rate limit exceeded' }, headers });
    expect((await call('GET', `${path}/repositories`)).body).toMatchObject({ code: 'provider_error', retryable: true });
    peers.github.fault = null;
    const before = peers.github.requests.length;
    const { body } = await call('GET', `${path}/repositories`);
    expect(body.detail).toContain(new Date(reset * 1000).toISOString().slice(0, 17));
    expect(peers.github.requests).toHaveLength(before);
    expect((await call('GET', path)).body.status).toBe('active');
  });

  test('a page that fails, a slow and an absent provider are provider_error', async () => {
    const { path, call } = await connected('gitea');
    peers.gitea.fault = ({ query }) => (query.get('page') === '3' ? { status: 500, json: { message: 'oops' } } : null);
    const third = await call('GET', `${path}/repositories?search=shop-130`);
    expect([third.status, third.body.code]).toEqual([502, 'provider_error']);
    expect(third.body.detail).toContain('oops');
    peers.gitea.fault = () => 'hang';
    const startedAt = Date.now();
    expect((await call('GET', `${path}/repositories/1`)).body.code).toBe('provider_error');
    expect(Date.now() - startedAt).toBeLessThan(15_000);
    const gone = await service.call('POST', '/v2/git_integrations', {
      body: { provider: 'gitea', base_url: 'http://127.0.0.1:9', access_token: 'good-token-1' },
    });
    expect([gone.status, gone.body.code]).toEqual([502, 'provider_error']);
  });

  test('a redirect to another host is not followed with the token', async () => {
    const { path, call } = await connected('gitea');
    peers.gitea.fault = () => ({ status: 302, headers: { location: `${peers.gitlab.url}/api/v4/user` } });
    const before = peers.gitlab.requests.length;
    expect((await call('GET', `${path}/repositories/1`)).body.code).toBe('provider_error');
    expect(peers.gitlab.requests).toHaveLength(before);
  });
});

test('addresses of providers must be https and public unless the operator allows more', async () => {
  const strict = await startService();
  try {
    const cases = {
      'http://git.example.com': 'must begin with https://',
      'https://127.0.0.1': 'must lead to a public address',
      'https://[::ffff:10.0.0.1]/': 'must lead to a public address',
      'https://0x7f.1/': 'must lead to a public address',
      'https://git.example.com/?x=1': 'must have no query and no fragment',
    };
    for (const [base_url, detail] of Object.entries(cases)) {
      const body = { provider: 'gitlab', base_url, access_token: 'good-token-1' };
      const { body: refused } = await strict.call('POST', '/v2/git_integrations', { body });
      expect([base_url, refused.errors]).toEqual([base_url, [{ field: 'base_url', code: 'invalid_format', detail }]]);
    }
    const named = { provider: 'gitlab', base_url: 'https://gitlab.localhost', access_token: 'good-token-1' };
    expect((await strict.call('POST', '/v2/git_integrations', { body: named })).status).toBe(422);
    const oauth = await strict.call('POST', '/v2/git_integrations', {
      body: { provider: 'github', auth_type: 'oauth' },
    });
    expect(oauth.body.code).toBe('engine_unavailable');
  } finally {
    await strict.close();
  }
});

test('an integration that an application uses cannot be deleted', async () => {
  const { path, call, id } = await connected('github');
  const source = { type: 'git', git_integration_id: id, repository_id: '1' };
  const unknown = await call('POST', '/v2/applications', {
    body: { name: 'shop', source: { ...source, repository_id: '9999' } },
  });
  expect(unknown.body).toMatchObject({ code: 'reference_not_found', field: 'source.repository_id' });
  const made = await call('POST', '/v2/applications', { body: { name: 'shop', source } });
  expect([made.status, made.body.source]).toMatchObject([201, source]);
  const { status, body } = await call('DELETE', path);
  expect([status, body.dependents]).toEqual([409, [{ type: 'application', id: made.body.id, name: 'shop' }]]);
  await call('PATCH', `/v2/applications/${made.body.id}`, { body: { source: null } });
  expect((await call('DELETE', path)).status).toBe(204);
});

test('the operations are those of the table on GraphQL too: listGitIntegrations, listGitRepositories', async () => {
  const { id } = await connected('gitea');
  const [row] = await service.sql<{ project_id: string }>('select project_id from git_integrations where id = $1', [
    id,
  ]);
  const answer = await service.graphql(
    `query ($id: ID!) {
      listGitIntegrations(limit: 1) { data { id } }
      listGitRepositories(id: $id, limit: 1) { data { id } }
    }`,
    { id },
    { project: row?.project_id },
  );
  expect(answer.data).toEqual({
    listGitIntegrations: { data: [{ id }] },
    listGitRepositories: { data: [{ id: '1' }] },
  });
  expect(bitbucketId(1)).toBe('ws-1.repo-1');
});
