import { concerns } from '../../models/deployments/auto_deploy/paths';
import {
  application,
  begin,
  get,
  newApplication,
  patch,
  service,
  setUpAutoDeploy,
} from '../support/deployments/auto_deploy_cases';

setUpAutoDeploy();

describe('the configuration', () => {
  beforeEach(begin);

  const defaults = {
    enabled: false,
    branch: null,
    wait_for_checks: false,
    paths: [],
    status_reason: null,
    last_checked_at: null,
    webhook_url: null,
    webhook_reason: null,
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
    const digest = `sha256:${'0'.repeat(64)}`;
    for (const source of [null, { type: 'image', image: `registry.example.com/shop@${digest}` }]) {
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
    const fields =
      'application_id enabled branch wait_for_checks paths status_reason last_checked_at webhook_url webhook_reason';
    const changed = await service.graphql(
      `mutation ($id: ID!) { updateAutoDeploy(id: $id, input: { enabled: true, paths: ["a"] }) { ${fields} } }`,
      { id: application },
    );
    expect(changed.data.updateAutoDeploy).toEqual((await get()).body);
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
