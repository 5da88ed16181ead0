import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openSource } from '../drivers/source/git';
import { job } from '../jobs/auto_deploy';
import type { HostDrivers } from '../jobs/job';
import { startLoop, type Loop } from '../jobs/loop';
import { concerns } from '../models/auto_deploy/paths';
import { listen } from '../platform/listener';
import { startGitServer, type GitServer } from './support/git_server';
import { startService, type Answer, type CallOptions, type TestService } from './support/service';
import { until } from './support/workshop';

const SETTINGS = { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', GIT_POLL_SECONDS: '1' };

let git: GitServer;
let service: TestService;
let application: string;
let repository: string;
let serial = 0;

beforeAll(async () => {
  git = await startGitServer();
  service = await startService({ settings: SETTINGS });
});

afterAll(async () => {
  await service?.close();
  await git?.close();
});

/** An application with a repository of its own. */
async function begin(): Promise<void> {
  repository = `shop-${(serial += 1)}`;
  git.makeRepository(repository, { 'index.html': 'one', 'docs/readme.md': 'one' });
  application = await newApplication({ type: 'git', repository_url: git.url(repository) });
}

async function newApplication(source: object | null): Promise<string> {
  const { body } = await service.call('POST', '/v2/applications', {
    body: { name: `app-${(serial += 1)}`, ...(source && { source }) },
  });
  return body.id;
}

const pathOf = (id = application): string => `/v2/applications/${id}/auto_deploy`;
const get = async (options: CallOptions = {}): Promise<Answer> => service.call('GET', pathOf(), options);
const patch = (body: object, options: CallOptions = {}, id = application): Promise<Answer> =>
  service.call('PATCH', pathOf(id), { body, ...options });
const deployments = async (): Promise<Answer['body'][]> =>
  (await service.call('GET', `/v2/applications/${application}/deployments?sort=number`)).body.data;

describe('the configuration', () => {
  beforeEach(begin);

  const defaults = {
    enabled: false,
    branch: null,
    wait_for_checks: false,
    paths: [],
    status_reason: null,
    last_checked_at: null,
  };

  test('is off, and merges what is sent', async () => {
    expect((await get()).body).toEqual({ application_id: application, ...defaults });
    const changed = await patch({ enabled: true, branch: 'release', paths: ['src/**'] });
    expect([changed.status, changed.body]).toEqual([
      200,
      { application_id: application, ...defaults, enabled: true, branch: 'release', paths: ['src/**'] },
    ]);
    expect((await patch({ branch: null, paths: ['docs'] })).body).toMatchObject({
      enabled: true,
      branch: null,
      paths: ['docs'],
    });
    expect((await service.call('GET', `/v2/applications/${application}`)).body.auto_deploy_enabled).toBe(true);
    expect((await patch({ enabled: false })).body).toMatchObject({ enabled: false, paths: ['docs'] });
    expect((await service.call('GET', `/v2/applications/${application}`)).body.auto_deploy_enabled).toBe(false);
    const entries = await service.sql(
      `select action, changed_fields from activity where resource_id = $1 and action like 'auto%' order by id`,
      [application],
    );
    expect(entries[0]).toEqual({ action: 'auto_deploy.updated', changed_fields: ['enabled', 'branch', 'paths'] });
  });

  test('carries the version of the application', async () => {
    const etag = (await get()).headers.get('etag') as string;
    expect((await service.call('GET', `/v2/applications/${application}`)).headers.get('etag')).toBe(etag);
    expect((await get({ headers: { 'If-None-Match': etag } })).status).toBe(304);
    expect((await patch({ enabled: true }, { headers: { 'If-Match': etag } })).status).toBe(200);
    expect((await patch({ enabled: false }, { headers: { 'If-Match': etag } })).body.code).toBe('precondition_failed');
    const now = (await get()).headers.get('etag') as string;
    await service.sql('update auto_deploys set observed_generation = observed_generation + 1 where id = $1', [
      application,
    ]);
    expect((await get({ headers: { 'If-None-Match': now } })).status).toBe(200);
    expect((await patch({ enabled: false }, { headers: { 'If-Match': now } })).status).toBe(200);
  });

  test('needs a Git source to be on, and an integration for checks', async () => {
    for (const source of [null, { type: 'image', image: 'registry.example.com/shop:1' }]) {
      const bare = await newApplication(source);
      expect((await patch({ enabled: true }, {}, bare)).body).toMatchObject({
        status: 422,
        code: 'source_not_configured',
      });
      expect((await patch({ branch: 'main' }, {}, bare)).status).toBe(200);
    }
    expect((await patch({ wait_for_checks: true })).body).toMatchObject({
      status: 422,
      errors: [{ field: 'wait_for_checks', code: 'depends_on' }],
    });
    expect((await patch({ wait_for_checks: false })).status).toBe(200);
  });

  test('refuses what breaks its rules', async () => {
    for (const [body, field, code] of [
      [{}, '', 'required'],
      [{ enabled: null }, 'enabled', 'required'],
      [{ enabled: 'yes' }, 'enabled', 'invalid_type'],
      [{ branch: 'a..b' }, 'branch', 'invalid_format'],
      [{ branch: '' }, 'branch', 'too_short'],
      [{ paths: null }, 'paths', 'required'],
      [{ paths: Array.from({ length: 51 }, (_, index) => `p${index}`) }, 'paths', 'too_many'],
      [{ paths: ['a', 'a'] }, 'paths', 'duplicate'],
      [{ last_checked_at: null }, 'last_checked_at', 'immutable'],
    ] as const) {
      const answer = await patch(body);
      expect([
        body,
        answer.status,
        answer.body.errors?.map((error: { field: string; code: string }) => [error.field, error.code]),
      ]).toEqual([body, 422, [[field, code]]]);
    }
    expect(
      (await patch({ enabled: true }, { key: await service.mintKey({ scopes: ['read', 'deploy'] }) })).body,
    ).toMatchObject({ code: 'insufficient_scope', required_scope: 'write' });
  });

  test('is the same on GraphQL', async () => {
    const fields = 'application_id enabled branch wait_for_checks paths status_reason last_checked_at';
    const changed = await service.graphql(
      `mutation ($id: ID!) { updateAutoDeploy(id: $id, input: { enabled: true, paths: ["a"] }) { ${fields} } }`,
      { id: application },
    );
    expect(changed.data.updateAutoDeploy).toEqual((await get()).body);
  });
});

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
      allowPrivateAddresses: true,
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

describe('paths', () => {
  test.each([
    [[], ['a'], true],
    [['src/**'], ['src/a/b.js'], true],
    [['src/**'], ['source/a.js'], false],
    [['src/*.js'], ['src/a.js'], true],
    [['src/*.js'], ['src/a/b.js'], false],
    [['**/*.js'], ['a.js'], true],
    [['**/*.js'], ['a/b/c.js'], true],
    [['**/test/**'], ['a/test/b/c'], true],
    [['docs'], ['docs/a.md'], true],
    [['docs/'], ['docs/a/b.md'], true],
    [['./docs', '/package.json'], ['package.json'], true],
    [['package.json'], ['packages.json'], false],
    [['?.js'], ['ab.js'], false],
    [['a.c'], ['abc'], false],
    [['*'], ['a/b'], false],
    [['a*b*c'], ['axxbyyc'], true],
  ])('%j and %j: %s', (globs, paths, wanted) => {
    expect(concerns(globs, paths)).toBe(wanted);
  });

  test('no pattern takes long', () => {
    const begun = process.cpuUsage();
    expect(
      concerns([`${'*a'.repeat(120)}b`, `${'**/a/'.repeat(40)}b`], [`${'a/'.repeat(500)}c`, 'a'.repeat(4000)]),
    ).toBe(false);
    expect(process.cpuUsage(begun).user).toBeLessThan(500_000);
  });
});
