// Deployments as a request sees them. What the jobs make of the rows is in test/deployments/.
import { mintId } from '../../core/ids';
import { needs } from '../support/runner/programs';
import {
  application,
  deploy,
  deployed,
  expectProblem,
  feature,
  first,
  get,
  git,
  head,
  list,
  newApplication,
  pathOf,
  serial,
  service,
  useApplication,
  useDeployments,
} from '../support/deployments/deployments';

useDeployments();

describe('create', () => {
  test('queues the head of the default branch for whoever asked', async () => {
    const { status, body, headers } = await deploy();
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^dep_/),
      project_id: service.project,
      application_id: application,
      preview_id: null,
      number: 1,
      branch: 'main',
      commit_sha: head,
      image: null,
      source: { type: 'git', source_upload_id: null, sha256: null, bytes: null },
      clear_cache: false,
      trigger: 'manual',
      source_deployment_id: null,
      promoted_from: null,
      commit_message: null,
      commit_author: null,
      status: 'queued',
      status_reason: null,
      rollback_possible: false,
      steps: [],
      created_by: { type: 'user', id: expect.stringMatching(/^usr_/), name: expect.any(String) },
      started_at: null,
      finished_at: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect(headers.get('location')).toBe(`${service.url}${pathOf(application, `/${body.id}`)}`);
    expect(await get(body.id)).toEqual(body);
    const [row] = await service.sql(
      'select source, artifact_id, next_at <= now() as due from deployments where id = $1',
      [body.id],
    );
    expect(row).toMatchObject({
      source: { type: 'git', repository_url: git.url('shop') },
      artifact_id: body.id,
      due: true,
    });
    const entries = await service.sql(
      `select action, resource_type, resource_name from activity where resource_id = $1`,
      [body.id],
    );
    expect(entries).toEqual([
      { action: 'deployment.created', resource_type: 'deployment', resource_name: `shop-${serial} #1` },
    ]);
  });

  test('takes a branch, a commit of it, and an order to build anew', async () => {
    expect(await deployed({ branch: 'feature/basket' })).toMatchObject({
      branch: 'feature/basket',
      commit_sha: feature,
    });
    expect(await deployed({ commit_sha: first })).toMatchObject({ branch: 'main', commit_sha: first });
    expect(await deployed({ commit_sha: first.slice(0, 7).toUpperCase(), clear_cache: true })).toMatchObject({
      commit_sha: first,
      clear_cache: true,
      number: 3,
    });
    expect(await deployed({ branch: 'feature/basket', commit_sha: first })).toMatchObject({
      branch: 'feature/basket',
      commit_sha: first,
    });
  });

  test("uses the source's branch, and what is queued stays when the source changes", async () => {
    useApplication(await newApplication({ type: 'git', repository_url: git.url('shop'), branch: 'feature/basket' }));
    const made = await deployed();
    expect(made).toMatchObject({ branch: 'feature/basket', commit_sha: feature });
    await service.call('PATCH', `/v2/applications/${application}`, { body: { source: { branch: 'main' } } });
    expect((await service.sql('select source from deployments where id = $1', [made.id]))[0].source.branch).toBe(
      'feature/basket',
    );
  });

  test('a template needs no remote', async () => {
    useApplication(
      (await service.call('POST', '/v2/applications', { body: { name: 'from-preset', preset: 'static-site' } })).body
        .id,
    );
    expect(await deployed()).toMatchObject({ number: 1, branch: null, commit_sha: null });
    await expectProblem(deploy({ branch: 'main', commit_sha: head }), 422, 'validation_failed', {
      errors: [
        { field: 'branch', code: 'depends_on' },
        { field: 'commit_sha', code: 'depends_on' },
      ],
    });
  });

  test.each(['new', 'stopped', 'crashed', 'running'])('an application that is %s can be deployed', async (status) => {
    await service.sql('update applications set status = $2 where id = $1', [application, status]);
    expect((await deploy()).status).toBe(201);
  });

  needs('bwrap').test('queues an image, that of the source or another one, and needs a source', async () => {
    const image = await newApplication({ type: 'image', image: 'registry.example.com/shop:1' });
    const first = await deploy({}, image);
    expect([first.status, first.body.image, first.body.commit_sha]).toEqual([201, 'registry.example.com/shop:1', null]);
    const second = await deploy({ image: 'registry.example.com/shop:2' }, image);
    expect([second.status, second.body.image]).toEqual([201, 'registry.example.com/shop:2']);
    await expectProblem(deploy({ branch: 'main' }, image), 422, 'validation_failed', {
      errors: [{ field: 'branch', code: 'depends_on' }],
    });
    await expectProblem(deploy({ image: 'registry.example.com/shop:1' }), 422, 'validation_failed', {
      errors: [{ field: 'image', code: 'depends_on' }],
    });
    await expectProblem(deploy({}, await newApplication(null)), 422, 'source_not_configured');
  });

  test('says what the remote does not have', async () => {
    await expectProblem(deploy({ branch: 'nowhere' }), 422, 'reference_not_found', {
      field: 'branch',
      detail: 'The repository has no branch nowhere.',
    });
    await expectProblem(deploy({ commit_sha: 'abcdef0' }), 422, 'reference_not_found', { field: 'commit_sha' });
    await expectProblem(deploy({ commit_sha: feature }), 422, 'reference_not_found', { field: 'commit_sha' });
    await expectProblem(
      deploy({}, await newApplication({ type: 'git', repository_url: git.url('empty') })),
      422,
      'reference_not_found',
      { field: 'source.branch' },
    );
    await expectProblem(
      deploy({}, await newApplication({ type: 'git', repository_url: git.url('shop'), branch: 'gone' })),
      422,
      'reference_not_found',
      { field: 'source.branch' },
    );
    expect(await list()).toEqual([]);
  });

  test('says that the remote can not be asked', async () => {
    for (const address of ['http://127.0.0.1:9/shop.git', git.url('absent'), 'file:///nonexistent/shop.git']) {
      const { detail, retryable } = await expectProblem(
        deploy({}, await newApplication({ type: 'git', repository_url: address })),
        502,
        'provider_error',
      );
      expect([detail, retryable]).toEqual([expect.stringMatching(/^[A-Z].*\.$/), address.includes(':9/')]);
    }
    git.intercept = () => ({ status: 401 });
    await expectProblem(deploy(), 502, 'provider_error');
    git.intercept = () => 'hang';
    const started = performance.now();
    await expectProblem(deploy(), 502, 'provider_error');
    expect(performance.now() - started).toBeLessThan(20_000);
    git.intercept = null;
    expect(await list()).toEqual([]);
  }, 30_000);

  test('asks the remote last', async () => {
    const before = git.requests.length;
    const reader = await service.mintKey({ scopes: ['read', 'write'] });
    await expectProblem(deploy({}, application, { key: reader }), 403, 'insufficient_scope', {
      required_scope: 'deploy',
    });
    await expectProblem(
      deploy({}, application, { key: await service.mintKey({ role: 'viewer' }) }),
      403,
      'role_not_permitted',
    );
    const bad = await expectProblem(
      deploy({ branch: 'a..b', commit_sha: 'xyz', image: 'UPPER', clear_cache: null, number: 3, foo: 1 }),
      422,
      'validation_failed',
    );
    expect(bad.errors.map(({ field, code }: { field: string; code: string }) => `${field} ${code}`).sort()).toEqual([
      'branch invalid_format',
      'clear_cache required',
      'commit_sha invalid_format',
      'foo unknown_field',
      'image invalid_format',
      'number immutable',
    ]);
    await expectProblem(deploy({}, mintId('app')), 404, 'not_found');
    const stranger = await service.newProject({ stranger: true });
    await expectProblem(deploy({}, application, { key: stranger.key, project: stranger.id }), 404, 'not_found');
    expect(git.requests.length).toBe(before);
  });

  test('of many at once each has a number of its own, in the order of their ids', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => deploy()));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(201));
    const rows = answers
      .map(({ body }) => body as { id: string; number: number })
      .sort((a, b) => (a.id < b.id ? -1 : 1));
    expect(rows.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test('a repeated key gets the same deployment, also when the remote has gone', async () => {
    git.makeRepository('passing', { 'index.html': '' });
    useApplication(await newApplication({ type: 'git', repository_url: git.url('passing') }));
    const headers = { 'Idempotency-Key': 'deploy once' };
    const made = await deploy({}, application, { headers });
    git.remove('passing');
    const again = await deploy({}, application, { headers });
    expect([again.status, again.body, again.headers.get('idempotent-replayed')]).toEqual([201, made.body, 'true']);
    await expectProblem(deploy({ clear_cache: true }, application, { headers }), 422, 'idempotency_key_reused');
    expect(await list()).toHaveLength(1);
  });

  test('a project key deploys in its own name', async () => {
    const key = await service.mintKey({ kind: 'project' });
    expect((await deploy({}, application, { key })).body.created_by).toMatchObject({
      type: 'project_key',
      id: expect.stringMatching(/^key_/),
    });
  });
});

test('GraphQL does the same, and relates applications and deployments', async () => {
  const fields = 'id number branch commit_sha status trigger rollback_possible created_by { type } application { id }';
  const made = await service.graphql(
    `mutation ($id: ID!) { createDeployment(id: $id, input: { branch: "main" }) { ${fields} } }`,
    { id: application },
  );
  expect(made.data.createDeployment).toMatchObject({ number: 1, commit_sha: head, application: { id: application } });
  const second = await deployed();
  await service.sql('update applications set current_deployment_id = $2 where id = $1', [application, second.id]);
  const read = await service.graphql(
    'query ($id: ID!) { getApplication(id: $id) { current_deployment { number } deployments(limit: 1) { number } } }',
    { id: application },
  );
  expect(read.data.getApplication).toEqual({ current_deployment: { number: 2 }, deployments: [{ number: 2 }] });
  const refused = await service.graphql(
    'mutation ($id: ID!) { createDeployment(id: $id, input: { branch: "nowhere" }) { id } }',
    { id: application },
  );
  expect(refused.errors?.[0].extensions).toMatchObject({ code: 'reference_not_found', field: 'branch' });
});
