/** @user any */
// Auto-deploy and previews follow their branch: what is pushed before the first look is not lost.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openSource } from '../../drivers/source/git';
import { job as autoDeployJob } from '../../jobs/deployments/auto_deploy';
import type { HostDrivers } from '../../jobs/job';
import { startLoop, type Loop } from '../../jobs/loop';
import { job as previewJob } from '../../jobs/previews/preview';
import { listen } from '../../server/platform/listener';
import { startGitServer, type GitServer } from '../support/git/git_server';
import { startService, type Answer, type TestService } from '../support/service';
import { until } from '../support/runner/workshop';
import { anyAddress } from '../support/outbound';
import { withConfig } from '../support/config';

const SETTINGS = { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', ...withConfig({ gitPollSeconds: 2 }) };

let git: GitServer;
let service: TestService;
let loop: Loop;
let directory: string;
let application: string;
let repository: string;
let first: string;
let serial = 0;

beforeAll(async () => {
  git = await startGitServer();
  service = await startService({ settings: SETTINGS });
  directory = mkdtempSync(path.join(tmpdir(), 'platform-api-sources-'));
  const { database, config, secrets, probes, log, databaseUrl } = service.platform;
  const reach = { allowHttpGit: true, allowLocalGit: false, outbound: anyAddress };
  // Of all that a host has, these jobs take the sources alone.
  const host = { source: await openSource({ directory, sizeMb: 64, ...reach }) } as HostDrivers;
  const drivers = { volumes: undefined as never, host };
  const parts = { database, config, secrets, probes, log, drivers };
  loop = startLoop(
    { ...parts, listen: (handlers) => listen(databaseUrl, handlers, log) },
    { jobs: [autoDeployJob as never, previewJob as never], pollMs: 100 },
  );
});

afterAll(async () => {
  await loop?.stop();
  await service?.close();
  await git?.close();
  rmSync(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  repository = `shop-${(serial += 1)}`;
  first = git.makeRepository(repository, { 'index.html': 'one', 'docs/readme.md': 'one' });
  const body = { name: repository, source: { type: 'git', repository_url: git.url(repository) } };
  application = (await service.call('POST', '/v2/applications', { body })).body.id;
});

const push = (files: Record<string, string>): string => git.commit(repository, files, { branch: 'main' });
const deployments = async (): Promise<Answer['body'][]> =>
  service.sql('select * from deployments where application_id = $1 order by number', [application]);
const enable = (body: object = {}): Promise<Answer> =>
  service.call('PATCH', `/v2/applications/${application}/auto_deploy`, { body: { enabled: true, ...body } });
const count = (wanted: number): Promise<void> =>
  until(`${wanted} deployments`, async () => (await deployments()).length === wanted);
const checked = (): Promise<void> =>
  until('a look', async () => {
    const [row] = await service.sql('select last_checked_at from auto_deploys where id = $1', [application]);
    return row?.last_checked_at != null;
  });

/** The application runs the head of now. */
async function deployed(): Promise<void> {
  const { body } = await service.call('POST', `/v2/applications/${application}/deployments`, { body: {} });
  await service.sql(`update deployments set status = 'active' where id = $1`, [body.id]);
  await service.sql(`update applications set current_deployment_id = $2, status = 'running' where id = $1`, [
    application,
    body.id,
  ]);
}

/** No look before `release`. */
async function delayPolling(): Promise<() => Promise<unknown>> {
  await service.sql(
    `insert into auto_deploys (id, lease_owner, lease_until) values ($1, 'test', now() + interval '1 hour')`,
    [application],
  );
  return () =>
    service.sql('update auto_deploys set lease_owner = null, lease_until = null where id = $1', [application]);
}

test.each(['never deployed', 'deployed before'])(
  'a push between switching auto-deploy on and the first look is deployed (%s)',
  async (state) => {
    if (state === 'deployed before') await deployed();
    const before = (await deployments()).length;
    const release = await delayPolling();
    expect((await enable()).status).toBe(200);
    const sha = push({ 'index.html': 'two' });
    await release();
    await count(before + 1);
    expect((await deployments()).at(-1)).toMatchObject({ commit_sha: sha, trigger: 'push' });
  },
);

test('a head that differs from what runs is deployed when auto-deploy is switched on', async () => {
  await deployed();
  const sha = push({ 'index.html': 'two' });
  await enable();
  await count(2);
  expect((await deployments())[1]).toMatchObject({ commit_sha: sha, trigger: 'push' });
});

test('a head that runs already is not deployed again, nor one of which no watched path differs', async () => {
  await deployed();
  await enable({ paths: ['*.html'] });
  await checked();
  expect(await deployments()).toHaveLength(1);
  await service.sql(
    'update auto_deploys set enabled = false, last_seen_sha = null, last_checked_at = null where id = $1',
    [application],
  );
  push({ 'docs/readme.md': 'two' });
  await enable();
  await checked();
  expect(await deployments()).toHaveLength(1);
});

test('an application that has never been deployed is not deployed by switching auto-deploy on', async () => {
  await enable();
  await checked();
  expect(await deployments()).toEqual([]);
  expect(await service.sql('select last_seen_sha from auto_deploys where id = $1', [application])).toEqual([
    { last_seen_sha: first },
  ]);
});

test('a preview follows its branch within one poll', async () => {
  git.commit(repository, { 'index.html': 'idea' }, { branch: 'idea' });
  const { body } = await service.call('POST', `/v2/applications/${application}/previews`, { body: { branch: 'idea' } });
  await service.sql(`update deployments set status = 'active' where preview_id = $1`, [body.id]);
  await service.sql('update previews set next_at = now(), generation = generation + 1 where id = $1', [body.id]);
  await until(
    'it runs',
    async () => (await service.sql('select status from previews where id = $1', [body.id]))[0].status === 'running',
  );
  const sha = git.commit(repository, { 'index.html': 'a better idea' }, { branch: 'idea' });
  const pushedAt = Date.now();
  await until('it is deployed', async () => (await deployments()).length === 2, 8_000);
  // Two seconds is the poll; the rest is for a busy machine.
  expect(Date.now() - pushedAt).toBeLessThan(6_000);
  expect((await deployments())[1]).toMatchObject({ preview_id: body.id, commit_sha: sha, trigger: 'pull_request' });
});
