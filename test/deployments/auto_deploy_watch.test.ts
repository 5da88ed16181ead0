/** @tier heavy @quarter 4 @covers jobs/deployments models/deployments */
/** @user any */
// Auto-deploy at work: repositories are polled, and pushes deployed.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openSource } from '../../drivers/source/git';
import { job } from '../../jobs/deployments/auto_deploy';
import type { HostDrivers } from '../../jobs/job';
import { startLoop, type Loop } from '../../jobs/loop';
import { listen } from '../../server/platform/listener';
import { type Answer } from '../support/service';
import { until } from '../support/runner/workshop';
import {
  application,
  begin,
  get,
  git,
  patch,
  repository,
  service,
  setUpAutoDeploy,
} from '../support/deployments/auto_deploy_cases';
import { anyAddress } from '../support/outbound';

setUpAutoDeploy();

const deployments = async (): Promise<Answer['body'][]> =>
  (await service.call('GET', `/v2/applications/${application}/deployments?sort=number`)).body.data;

describe('watching', () => {
  let loop: Loop;
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'platform-api-sources-'));
    const { database, config, secrets, probes, log, databaseUrl } = service.platform;
    const source = await openSource({
      directory,
      sizeMb: 64,
      allowHttpGit: true,
      allowLocalGit: false,
      outbound: anyAddress,
    });
    // Of all that a host has, this job takes the sources alone.
    const host = { source } as HostDrivers;
    loop = startLoop(
      {
        database,
        config,
        secrets,
        probes,
        log,
        drivers: { volumes: undefined as never, host },
        listen: (handlers) => listen(databaseUrl, handlers, log),
      },
      { jobs: [job as never], pollMs: 100 },
    );
  });

  afterAll(async () => {
    await loop?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  beforeEach(begin);
  afterEach(() => service.sql('update auto_deploys set enabled = false, generation = generation + 1, next_at = null'));

  const checkedAt = async (): Promise<string | null> => (await get()).body.last_checked_at;
  const checked = (after: string | null): Promise<void> =>
    until('another look', async () => (await checkedAt()) !== after);
  /** Two looks: the first may have been under way. */
  const looked = async (): Promise<void> => {
    for (let turn = 0; turn < 2; turn += 1) await checked(await checkedAt());
  };
  const push = (files: Record<string, string>, branch = 'main'): string => git.commit(repository, files, { branch });
  const count = (wanted: number): Promise<void> =>
    until(`${wanted} deployments`, async () => (await deployments()).length === wanted);

  async function enable(body: object = {}): Promise<void> {
    const before = await checkedAt();
    expect((await patch({ enabled: true, ...body })).status).toBe(200);
    await checked(before);
  }

  test('deploys pushes, not what was there before', async () => {
    await enable();
    expect(await deployments()).toEqual([]);
    const sha = push({ 'index.html': 'two' });
    await count(1);
    expect((await deployments())[0]).toMatchObject({
      number: 1,
      trigger: 'push',
      branch: 'main',
      commit_sha: sha,
      status: 'queued',
      created_by: { type: 'system', id: null, name: 'Platform' },
    });
    await looked();
    expect(await deployments()).toHaveLength(1);
    const entries = await service.sql(
      `select action, actor from activity where resource_type = 'deployment' and resource_id = $1`,
      [(await deployments())[0].id],
    );
    expect(entries).toEqual([{ action: 'deployment.created', actor: { type: 'system', id: null, name: 'Platform' } }]);
  });

  test('a push takes the place of those that still wait, not of what was asked for or is under way', async () => {
    await enable();
    const manual = (await service.call('POST', `/v2/applications/${application}/deployments`, { body: {} })).body;
    push({ 'index.html': 'two' });
    await count(2);
    push({ 'index.html': 'three' });
    await count(3);
    await service.sql(`update deployments set status = 'building' where application_id = $1 and number = 3`, [
      application,
    ]);
    push({ 'index.html': 'four' });
    await count(4);
    expect((await deployments()).map(({ status, status_reason }) => [status, status_reason])).toEqual([
      ['queued', null],
      ['canceled', 'Canceled: a newer push is deployed instead (deployment 3).'],
      ['building', null],
      ['queued', null],
    ]);
    expect((await deployments())[0].id).toBe(manual.id);
  });

  test('does not deploy once more what somebody was quicker to deploy', async () => {
    await enable();
    await service.sql(`update auto_deploys set next_at = now() + interval '1 hour' where id = $1`, [application]);
    push({ 'index.html': 'two' });
    await service.call('POST', `/v2/applications/${application}/deployments`, { body: {} });
    await service.sql('update auto_deploys set next_at = now() where id = $1', [application]);
    await looked();
    expect(await deployments()).toHaveLength(1);
  });

  test('watches its own branch, and begins anew with another branch or repository', async () => {
    push({ 'index.html': 'staging' }, 'staging');
    await enable({ branch: 'staging' });
    push({ 'index.html': 'two' });
    await looked();
    expect(await deployments()).toEqual([]);
    const sha = push({ 'index.html': 'staging two' }, 'staging');
    await count(1);
    expect((await deployments())[0]).toMatchObject({ branch: 'staging', commit_sha: sha });
    await enable({ branch: null });
    git.makeRepository(`${repository}-new`, { 'index.html': 'another' });
    await service.call('PATCH', `/v2/applications/${application}`, {
      body: { source: { repository_url: git.url(`${repository}-new`) } },
    });
    await looked();
    expect(await deployments()).toHaveLength(1);
    git.commit(`${repository}-new`, { 'index.html': 'pushed' });
    await count(2);
  });

  test('deploys only pushes that change a path that counts', async () => {
    await enable({ paths: ['src/**', '*.html'] });
    push({ 'index.html': 'two' });
    await count(1);
    push({ 'docs/readme.md': 'two' });
    await looked();
    expect(await deployments()).toHaveLength(1);
    push({ 'docs/readme.md': 'three', 'src/app/main.js': 'one' });
    await count(2);
    git.commit(repository, { 'docs/readme.md': 'forced' }, { parent: null });
    await count(3);
  });

  test('goes on after a repository was away, and says so', async () => {
    await enable();
    git.intercept = () => ({ status: 503 });
    await until('a reason', async () => (await get()).body.status_reason !== null);
    expect((await get()).body.status_reason).toMatch(/^[A-Z].*\.$/);
    await until(
      'a second failure',
      async () =>
        (await service.sql('select failures from auto_deploys where id = $1', [application]))[0].failures >= 2,
    );
    const [row] = await service.sql(
      'select extract(epoch from next_at - now())::float8 as pause from auto_deploys where id = $1',
      [application],
    );
    expect(row.pause).toBeGreaterThan(2);
    git.intercept = null;
    push({ 'index.html': 'two' });
    await count(1);
    await until('no reason', async () => (await get()).body.status_reason === null);
  });

  test('waits ten minutes at most, and stops when it is switched off', async () => {
    await enable();
    git.intercept = () => ({ status: 503 });
    await service.sql('update auto_deploys set failures = 40, next_at = now() where id = $1', [application]);
    await until(
      'the longest pause',
      async () =>
        (
          await service.sql(
            `select next_at - now() between interval '8 minutes' and interval '12 minutes' as long from auto_deploys
              where id = $1`,
            [application],
          )
        )[0].long,
    );
    git.intercept = null;
    await patch({ enabled: false });
    await until(
      'rest',
      async () =>
        (await service.sql('select next_at from auto_deploys where id = $1', [application]))[0].next_at === null,
    );
    push({ 'index.html': 'two' });
    expect(await deployments()).toEqual([]);
  });
});
