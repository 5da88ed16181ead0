// Shared repositories: a deploy key that is made here and used over a real SSH server, shares, and rules of access.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { makeDeployKey } from '../../models/integrations/shared_repository/deploy_key';
import { startGitServer, type GitServer } from '../support/git/git_server';
import { startService, type Answer, type TestService } from '../support/service';
import { startSshGitServer, type SshGitServer } from '../support/git/ssh_git_server';
import { needs } from '../support/runner/programs';

const { test: needsSsh } = needs('ssh', 'ssh-keygen');

let service: TestService;
let git: GitServer;
let ssh: SshGitServer;

beforeAll(async () => {
  git = await startGitServer();
  ssh = await startSshGitServer(git);
  service = await startService({ settings: { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' } });
});

afterAll(async () => {
  await service?.close();
  await ssh?.close();
  await git?.close();
});

let serial = 0;
/** createSharedRepository with a repository of its own. */
async function created(more: object = {}): Promise<{ name: string; path: string; body: Answer['body'] }> {
  const name = `shop-${(serial += 1)}`;
  git.makeRepository(name, { 'index.html': 'one' }, { branch: 'trunk' });
  const { status, body } = await service.call('POST', '/v2/shared_repositories', {
    body: { url: ssh.url(name), ...more },
  });
  expect([status, body.detail]).toEqual([201, undefined]);
  return { name, path: `/v2/shared_repositories/${body.id}`, body };
}

test('getSharedRepository answers everything that is promised', async () => {
  const { path: place, body, name } = await created();
  expect((await service.call('GET', place)).body).toEqual({
    ...{ id: body.id, project_id: service.project, name, url: ssh.url(name), access: 'deploy_key' },
    ...{ git_integration_id: null, default_branch: 'main', host_key_fingerprint: null, access_level: 'owner' },
    deploy_key: {
      public_key: expect.stringMatching(/^ssh-ed25519 AAAA\S+ srp_/),
      fingerprint: expect.stringMatching(/^SHA256:[\w+/]{43}$/),
      created_at: expect.any(String),
    },
    webhook_url: expect.stringMatching(/\/hooks\/git\/[\w-]{32}$/),
    ...{ status: 'pending', status_reason: null, last_verified_at: null },
    ...{ created_at: expect.any(String), updated_at: expect.any(String) },
  });
});

needsSsh('ssh-keygen reads the keys and agrees on their fingerprints', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'deploy-key-'));
  try {
    for (let turn = 0; turn < 10; turn += 1) {
      const { private_key, public_key, fingerprint } = makeDeployKey('srp_test');
      const file = path.join(folder, `key-${turn}`);
      writeFileSync(file, private_key, { mode: 0o600 });
      expect(execFileSync('ssh-keygen', ['-y', '-f', file]).toString().trim()).toBe(public_key);
      expect(execFileSync('ssh-keygen', ['-l', '-f', file]).toString()).toContain(fingerprint);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

needsSsh('verifySharedRepository reads the repository with the deploy key and pins the key of the host', async () => {
  const { path: place, body } = await created();
  const refused = await service.call('POST', `${place}/verify`);
  expect([refused.status, refused.body.status]).toEqual([200, 'error']);
  expect(refused.body.status_reason).toContain('refused access');
  const unread = await service.call('GET', `${place}/branches`);
  expect(unread.body).toMatchObject({ code: 'provider_error', retryable: false });
  ssh.keys.add(body.deploy_key.public_key);
  const verified = await service.call('POST', `${place}/verify`);
  expect(verified.body).toMatchObject({ status: 'active', status_reason: null, default_branch: 'trunk' });
  expect(verified.body.host_key_fingerprint).toMatch(/^SHA256:/);
  const branches = await service.call('GET', `${place}/branches`);
  expect(branches.body.data).toEqual([{ name: 'trunk', commit_sha: expect.any(String), protected: null }]);
  const rows = await service.sql('select * from shared_repositories where id = $1', [body.id]);
  expect(JSON.stringify(rows)).not.toContain('PRIVATE KEY');
  const rotated = await service.call('POST', `${place}/deploy_key/rotate`);
  expect(rotated.body).toMatchObject({ status: 'pending', host_key_fingerprint: null });
  expect(rotated.body.deploy_key.fingerprint).not.toBe(body.deploy_key.fingerprint);
  expect((await service.call('POST', `${place}/verify`)).body.status).toBe('error');
});

needsSsh('a host that shows another key than the pinned one is refused', async () => {
  const own = await startSshGitServer(git);
  git.makeRepository('pinned', { a: '1' });
  const { body } = await service.call('POST', '/v2/shared_repositories', { body: { url: own.url('pinned') } });
  const place = `/v2/shared_repositories/${body.id}`;
  own.keys.add(body.deploy_key.public_key);
  expect((await service.call('POST', `${place}/verify`)).body.status).toBe('active');
  await own.close();
  const other = await startSshGitServer(git, own.port);
  other.keys.add(body.deploy_key.public_key);
  const { body: after } = await service.call('POST', `${place}/verify`);
  expect([after.status, after.status_reason]).toEqual(['error', expect.stringContaining('different host key')]);
  expect(other.commands).toEqual([]);
  await other.close();
});

describe('shares', () => {
  test('another project may use the repository, and change nothing of it', async () => {
    const { path: place, body } = await created();
    const { id: other } = await service.newProject();
    const share = await service.call('POST', `${place}/projects`, { body: { project_id: other } });
    expect([share.status, share.body]).toMatchObject([201, { project_id: other }]);
    const seen = await service.call('GET', place, { project: other });
    expect(seen.body).toMatchObject({ id: body.id, access_level: 'shared', project_id: service.project });
    const list = await service.call('GET', '/v2/shared_repositories?access_level=shared', { project: other });
    expect(list.body.data.map((row: { id: string }) => row.id)).toEqual([body.id]);
    for (const [method, sub, sent] of [
      ['PATCH', '', { name: 'mine' }],
      ['DELETE', '', undefined],
      ['POST', '/deploy_key/rotate', undefined],
      ['POST', '/projects', { project_id: other }],
    ] as const) {
      const refused = await service.call(method, place + sub, { body: sent, project: other });
      expect([method, sub, refused.status, refused.body.code]).toEqual([method, sub, 403, 'not_owner_project']);
    }
    const source = { type: 'git', shared_repository_id: body.id };
    const made = await service.call('POST', '/v2/applications', { body: { name: 'shop', source }, project: other });
    expect([made.status, made.body.source]).toMatchObject([201, source]);
    for (const method of ['DELETE'] as const) {
      expect((await service.call(method, place)).body.code).toBe('resource_in_use');
      expect((await service.call(method, `${place}/projects/${other}`)).body.code).toBe('resource_in_use');
    }
    await service.call('DELETE', `/v2/applications/${made.body.id}`, { project: other });
    expect((await service.call('DELETE', `${place}/projects/${other}`)).status).toBe(204);
    expect((await service.call('DELETE', `${place}/projects/${other}`)).status).toBe(404);
    expect((await service.call('GET', place, { project: other })).status).toBe(404);
    expect((await service.call('DELETE', place)).status).toBe(204);
  });

  test('listSharedRepositoryProjects shows each project its own share, and the owner all', async () => {
    const { path: place } = await created();
    const others = [await service.newProject(), await service.newProject()];
    for (const { id } of others) await service.call('POST', `${place}/projects`, { body: { project_id: id } });
    const ids = async (project?: string): Promise<string[]> =>
      (await service.call('GET', `${place}/projects`, { ...(project && { project }) })).body.data.map(
        (row: { project_id: string }) => row.project_id,
      );
    expect((await ids()).sort()).toEqual(others.map(({ id }) => id).sort());
    expect(await ids(others[0]?.id)).toEqual([others[0]?.id]);
    const first = await service.call('GET', `${place}/projects?limit=1`);
    const next = await service.call('GET', `${place}/projects?limit=1&cursor=${first.body.next_cursor}`);
    expect([first.body.data.length, next.body.data.length, next.body.next_cursor]).toEqual([1, 1, null]);
  });

  test('only with projects that the caller reaches, and not with the owner', async () => {
    const { path: place } = await created();
    const stranger = await service.newProject({ stranger: true });
    for (const project_id of [stranger.id, service.project, 'prj_01h455vb4pex5vsknk084sn02q', 'nonsense']) {
      const { status, body } = await service.call('POST', `${place}/projects`, { body: { project_id } });
      expect([status, body.code, body.field]).toEqual([422, 'reference_not_found', 'project_id']);
    }
    const { id } = await service.newProject();
    await service.call('POST', `${place}/projects`, { body: { project_id: id } });
    expect((await service.call('POST', `${place}/projects`, { body: { project_id: id } })).body.code).toBe(
      'already_exists',
    );
  });
});

describe('access', () => {
  const mistakes = async (body: object): Promise<unknown> => {
    const answer = await service.call('POST', '/v2/shared_repositories', { body });
    return (
      answer.body.errors?.map(({ field, code }: { field: string; code: string }) => [field, code]) ?? answer.body.code
    );
  };

  test('fits the address', async () => {
    const https = 'https://git.example.com/acme/shop.git';
    expect(await mistakes({ url: https, access: 'deploy_key' })).toEqual([['access', 'depends_on']]);
    expect(await mistakes({ url: ssh.url('x'), access: 'public' })).toEqual([['access', 'depends_on']]);
    expect(await mistakes({ url: https, access: 'git_integration' })).toEqual([['git_integration_id', 'required']]);
    const unknown = 'gin_01h455vb4pex5vsknk084sn02q';
    expect(await mistakes({ url: https, git_integration_id: unknown })).toEqual([['git_integration_id', 'depends_on']]);
    expect(await mistakes({ url: https, access: 'git_integration', git_integration_id: unknown })).toBe(
      'reference_not_found',
    );
    expect(await mistakes({ url: 'https://ada:secret@git.example.com/x.git' })).toEqual([['url', 'invalid_format']]);
    expect(await mistakes({ url: 'file:///etc' })).toEqual([['url', 'invalid_format']]);
  });

  test('a public repository over http needs no key (createSharedRepository, updateSharedRepository)', async () => {
    git.makeRepository('open', { a: '1' });
    const made = await service.call('POST', '/v2/shared_repositories', { body: { url: git.url('open') } });
    expect(made.body).toMatchObject({ access: 'public', deploy_key: null, name: 'open' });
    const place = `/v2/shared_repositories/${made.body.id}`;
    expect((await service.call('POST', `${place}/verify`)).body).toMatchObject({ status: 'active' });
    expect((await service.call('POST', `${place}/deploy_key/rotate`)).body.code).toBe('invalid_state');
    git.intercept = () => ({ status: 500 });
    const down = await service.call('POST', `${place}/verify`);
    git.intercept = null;
    expect([down.status, down.body.code]).toEqual([502, 'provider_error']);
    expect((await service.call('PATCH', place, { body: { name: 'Open', default_branch: 'dev' } })).body).toMatchObject({
      ...{ name: 'Open', default_branch: 'dev', status: 'active' },
    });
    const twin = await service.call('POST', '/v2/shared_repositories', { body: { url: git.url('open') } });
    expect([twin.status, twin.body.code, twin.body.field]).toEqual([409, 'already_exists', 'url']);
  });
});
