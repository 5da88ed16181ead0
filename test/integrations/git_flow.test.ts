/** @tier heavy @quarter 2 @covers models/integrations jobs/deployments */
/** @user any */
// The whole way with a private repository: webhook, push, preview of a pull request, merge, live. The provider is a
// peer (test/support/git/git_peer.ts); git, builds and instances are real.
import { createHmac } from 'node:crypto';
import { execFileSync } from 'node:child_process';
import { variablesOfRelease } from '../../models/deployments/release';
import { startGitPeer, type GitPeer } from '../support/git/git_peer';
import { pasteDocument } from '../support/processes/tour';
import { startService, type Answer, type TestService } from '../support/service';
import { storm, until } from '../support/email/receivers';
import { withConfig } from '../support/config';

const TOKEN = 'good-token-of-the-flow';
const WAIT_MS = 60_000;
let peer: GitPeer;
let service: TestService;
let application: string;

beforeAll(async () => {
  peer = await startGitPeer('github');
  peer.tokens = new Set([TOKEN]);
  peer.repositories = ['acme/shop', 'acme/lib'].map((full_name, index) => ({
    ...{ id: index + 1, full_name, private: true, default_branch: 'main' },
  }));
  // A private submodule of the same host, by ssh as people write it.
  const lib = peer.git.makeRepository('acme/lib', { 'lib.html': 'from the submodule' });
  peer.git.makeRepository('acme/shop', {
    'index.html': 'one',
    '.gitmodules': '[submodule "lib"]\n\tpath = lib\n\turl = git@127.0.0.1:acme/lib.git\n',
    lib: { mode: '160000', content: lib },
  });
  // No poll comes in the time of the test: what happens is set off by webhooks.
  const settings = { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', ...withConfig({ gitPollSeconds: 3600 }) };
  service = await startService({ worker: true, settings });
  // The lines of the documentation, as somebody pastes them.
  const variables = { BASE: service.url, KEY: service.key, PROJECT: service.project };
  const given = { GIT_URL: peer.url, GIT_TOKEN: TOKEN };
  const outputs = await pasteDocument('docs/INTEGRATIONS.md', { ...variables, ...given });
  expect(outputs.at(-1)).toMatch(/^(queued|building|deploying|active)\n[^]*"auto_create":true[^]*"enabled":true/);
  const [made] = (await service.call('GET', '/v2/applications')).body.data;
  application = `/v2/applications/${made.id}`;
  await service.call('PUT', `${application}/env/SECRET`, { body: { value: 'of the application' } });
  await service.call('PATCH', `${application}/settings`, { body: { health_check: { interval_seconds: 5 } } });
  await until(() => peer.hooks.length > 0, WAIT_MS);
  await until(async () => (await deployments())[0]?.status === 'active', WAIT_MS);
}, 120_000);

afterAll(async () => {
  // What runs would outlive the test.
  await service?.call('DELETE', application);
  await until(async () => !(await service.sql('select 1 from applications limit 1')).length, WAIT_MS);
  await service?.close();
  await peer?.close();
  expect(peer.mistakes).toEqual([]);
}, 120_000);

const deployments = async (): Promise<Answer['body'][]> =>
  (await service.call('GET', `${application}/deployments?limit=100`)).body.data;
const previews = async (): Promise<Answer['body'][]> =>
  (await service.call('GET', `${application}/previews`)).body.data;
const deployed = (sha: string): Promise<Answer['body']> =>
  until(async () => (await deployments()).find((one) => one.commit_sha === sha), WAIT_MS);

async function deliver(event: string, payload: object, secret = peer.hooks[0]?.secret ?? ''): Promise<number> {
  const body = JSON.stringify(payload);
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  const headers = { 'content-type': 'application/json', 'x-github-event': event, 'x-hub-signature-256': signature };
  // The worker was started before the port was known, which only a test does.
  const { pathname } = new URL(peer.hooks[0]?.url ?? '');
  return (await fetch(service.url + pathname, { method: 'POST', headers, body })).status;
}

const push = (branch = 'main'): Promise<number> => deliver('push', { ref: `refs/heads/${branch}` });

function openPull(number: number, files: Record<string, string>, more: object = {}): string {
  const sha = peer.git.commit('acme/shop', files, { branch: `feature-${number}` });
  peer.git.setRef('acme/shop', `refs/pull/${number}/head`, sha);
  const pull = { number, title: 'Change', state: 'open' as const, source: `feature-${number}`, target: 'main' };
  peer.pulls.set(number, { ...pull, author: 'ada', fork: false, ...peer.pulls.get(number), sha, ...more });
  return sha;
}

test('a push is deployed when its webhook comes, a delivery with a wrong signature is refused', async () => {
  const first = peer.git.commit('acme/shop', { 'index.html': 'two' });
  expect(await deliver('push', { ref: 'refs/heads/main' }, 'wrong')).toBe(401);
  const startedAt = Date.now();
  expect(await push()).toBe(202);
  const { trigger, branch } = await deployed(first);
  expect([trigger, branch]).toEqual(['push', 'main']);
  expect(Date.now() - startedAt).toBeLessThan(20_000);
  await until(async () => (await deployed(first)).status === 'active', WAIT_MS);
});

test('a thousand deliveries, replays among them, deploy the newest head once', async () => {
  peer.git.commit('acme/shop', { 'index.html': 'three' });
  const newest = peer.git.commit('acme/shop', { 'index.html': 'four' });
  const before = (await deployments()).length;
  expect(await storm(1000, () => push())).toEqual(new Set([202]));
  await until(async () => (await deployed(newest)).status === 'active', WAIT_MS);
  expect(await push()).toBe(202);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect((await deployments()).length).toBe(before + 1);
});

test('a push that asks not to be deployed is not', async () => {
  const skipped = peer.git.commit('acme/shop', { 'index.html': 'five' }, { message: 'Docs [skip ci]' });
  await push();
  const reason = async (): Promise<string | null> =>
    (await service.call('GET', `${application}/auto_deploy`)).body.status_reason;
  await until(async () => (await reason())?.includes(skipped.slice(0, 10)), WAIT_MS);
  expect((await deployments()).some((one) => one.commit_sha === skipped)).toBe(false);
});

test('with wait_for_checks a push waits until they pass, and is not deployed when they fail', async () => {
  await service.call('PATCH', `${application}/auto_deploy`, { body: { wait_for_checks: true } });
  const bad = peer.git.commit('acme/shop', { 'index.html': 'bad' });
  peer.checks.set(bad, [{ name: 'unit', state: 'failure' }]);
  await push();
  const reason = async (): Promise<string | null> =>
    (await service.call('GET', `${application}/auto_deploy`)).body.status_reason;
  await until(async () => (await reason())?.includes('the check unit failed'), 20_000);
  const good = peer.git.commit('acme/shop', { 'index.html': 'good' });
  peer.checks.set(good, [{ name: 'unit', state: 'pending' }]);
  await push();
  await until(async () => (await reason())?.includes('the check unit has not finished'), WAIT_MS);
  expect((await deployments()).some((one) => [bad, good].includes(one.commit_sha))).toBe(false);
  peer.checks.set(good, [{ name: 'unit', state: 'success' }]);
  await deliver('check_suite', { action: 'completed' });
  await deployed(good);
  await service.call('PATCH', `${application}/auto_deploy`, { body: { wait_for_checks: false } });
}, 120_000);

describe('pull requests', () => {
  test('opened, pushed to, and merged: one preview, its status, and one comment', async () => {
    const sha = openPull(7, { 'index.html': 'proposed' });
    // In the wrong order, and twice.
    await deliver('pull_request', { action: 'synchronize', number: 7 });
    await deliver('pull_request', { action: 'opened', number: 7 });
    const [preview] = await until(async () => ((await previews()).length ? previews() : null), WAIT_MS);
    expect(preview).toMatchObject({
      pull_request_number: 7,
      branch: 'refs/pull/7/head',
      created_by: { type: 'system' },
    });
    const success = (wanted: string) =>
      until(() => peer.statuses.find((one) => one.sha === wanted && one.state === 'success'), WAIT_MS);
    const { hostname } = new URL(preview.url);
    expect(await success(sha)).toMatchObject({
      ...{ context: 'platform/shop/preview', url: expect.stringContaining(hostname) },
    });
    await until(() => peer.comments[0]?.text.includes(hostname), WAIT_MS);
    const next = openPull(7, { 'index.html': 'proposed again' });
    await deliver('pull_request', { action: 'synchronize', number: 7 });
    await success(next);
    await until(() => peer.comments[0]?.text.includes(next.slice(0, 10)), WAIT_MS);
    expect([peer.comments.length, (await previews()).length]).toEqual([1, 1]);
    const merged = peer.git.commit('acme/shop', { 'index.html': 'merged' });
    openPull(7, { 'index.html': 'merged' }, { state: 'merged' });
    await deliver('pull_request', { action: 'closed', number: 7 });
    await push();
    await until(async () => !(await previews()).length, WAIT_MS);
    await until(async () => (await deployed(merged)).status === 'active', WAIT_MS);
  }, 180_000);

  test('whose preview fails: the status and the comment have the reason', async () => {
    const sha = openPull(9, { 'package.json': '{"broken' });
    await deliver('pull_request', { action: 'opened', number: 9 });
    const failed = await until(() => peer.statuses.find((one) => one.sha === sha && one.state === 'failure'), WAIT_MS);
    expect(failed).toMatchObject({ context: 'platform/shop/preview', url: null });
    expect(failed.description).toMatch(/package\.json/);
    const comment = await until(
      () => peer.comments.find(({ number, text }) => number === 9 && text.includes('The preview failed.')),
      WAIT_MS,
    );
    expect(comment.text).toContain(failed.description.slice(0, 60));
    openPull(9, {}, { state: 'closed' });
    await deliver('pull_request', { action: 'closed', number: 9 });
    await until(async () => !(await previews()).length, WAIT_MS);
  }, 120_000);

  test('from a fork: no preview by itself, and no variables in one that a member creates', async () => {
    openPull(8, { 'index.html': 'of a stranger' }, { fork: true });
    await deliver('pull_request', { action: 'opened', number: 8 });
    await until(() => peer.comments.some(({ number, text }) => number === 8 && text.includes('from a fork')), WAIT_MS);
    expect(await previews()).toEqual([]);
    const made = await service.call('POST', `${application}/previews`, { body: { pull_request_number: 8 } });
    expect([made.status, made.body.detail]).toEqual([201, undefined]);
    const place = `${application}/previews/${made.body.id}`;
    await until(async () => (await service.call('GET', place)).body.status === 'running', WAIT_MS);
    const releases = await service.sql<{ id: string; variables: string }>(
      'select id, variables from releases where preview_id = $1',
      [made.body.id],
    );
    const opened = releases.map((release) => variablesOfRelease(service.platform.secrets, release));
    expect([opened.length, opened.some((variables) => 'SECRET' in variables)]).toEqual([1, false]);
    const pushed = openPull(8, { 'index.html': 'of a stranger, later' }, { fork: true });
    await deliver('pull_request', { action: 'synchronize', number: 8 });
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect((await deployments()).some((one) => one.commit_sha === pushed)).toBe(false);
    const closed = await service.call('POST', `${application}/previews`, { body: { pull_request_number: 7 } });
    expect([closed.status, closed.body.field]).toEqual([422, 'pull_request_number']);
  }, 120_000);
});

test('the submodule of the same host was read with the token', () => {
  const files = execFileSync('find', [service.dataDir, '-path', '*/lib/lib.html']).toString();
  expect(files).toContain('/releases/');
});

test('the token is in no file of the platform', () => {
  const found = execFileSync('sh', ['-c', `grep -rlF ${TOKEN} ${service.dataDir} || true`]).toString();
  expect(found).toBe('');
});
