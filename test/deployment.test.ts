// Deployments as a request sees them. What the jobs make of the rows is in test/deploy/.
import { mintId } from '../core/ids';
import { startGitServer, type GitServer } from './support/git_server';
import { startService, type Answer, type CallOptions, type TestService } from './support/service';

const ROOMY = { ALLOW_HTTP_GIT: '1', ALLOW_LOCAL_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' };

let git: GitServer;
let service: TestService;
/** Commits: two on main, one on the branch that goes out from them. */
let [first, head, feature] = ['', '', ''];
let application: string;
let serial = 0;

beforeAll(async () => {
  git = await startGitServer();
  first = git.makeRepository('shop', { 'index.html': 'one' });
  head = git.commit('shop', { 'index.html': 'two' });
  feature = git.commit('shop', { 'index.html': 'three' }, { branch: 'feature/basket' });
  git.makeRepository('empty', {});
  service = await startService({ settings: ROOMY });
});

afterAll(async () => {
  await service?.close();
  await git?.close();
});

beforeEach(async () => {
  application = await newApplication();
});

async function newApplication(
  source: object | null = { type: 'git', repository_url: git.url('shop') },
  options: CallOptions = {},
): Promise<string> {
  const { status, body } = await service.call('POST', '/v2/applications', {
    body: { name: `shop-${(serial += 1)}`, ...(source && { source }) },
    ...options,
  });
  expect(status).toBe(201);
  return body.id;
}

const pathOf = (id = application, rest = ''): string => `/v2/applications/${id}/deployments${rest}`;
const deploy = (body: object = {}, id = application, options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', pathOf(id), { body, ...options });
const get = async (id: string): Promise<Answer['body']> =>
  (await service.call('GET', pathOf(application, `/${id}`))).body;
const cancel = (id: string, of = application): Promise<Answer> => service.call('POST', pathOf(of, `/${id}/cancel`));
const rollBack = (deployment_id: string, of = application): Promise<Answer> =>
  service.call('POST', `/v2/applications/${of}/rollback`, { body: { deployment_id } });
const list = async (query = '', of = application): Promise<Answer['body'][]> =>
  (await service.call('GET', `${pathOf(of)}?${query}`)).body.data;

async function deployed(body: object = {}): Promise<Answer['body']> {
  const answer = await deploy(body);
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body;
}

/** As the job leaves a row. */
const become = (id: string, columns: string): Promise<unknown> =>
  service.sql(`update deployments set ${columns} where id = $1`, [id]);
const wasActive = (id: string): Promise<unknown> =>
  become(
    id,
    `status = 'superseded', activated_at = now(), finished_at = now(), artifact_kept = true, commit_message = 'Two', commit_author = 'Ada', plan = '{"processes": {}, "release_command": null}'`,
  );

async function expectProblem(
  answer: Answer | Promise<Answer>,
  status: number,
  code: string,
  members: object = {},
): Promise<Answer['body']> {
  const { body, ...rest } = await answer;
  expect({ status: rest.status, ...body }).toMatchObject({ status, code, ...members });
  return body;
}

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
      clear_cache: false,
      trigger: 'manual',
      source_deployment_id: null,
      commit_message: null,
      commit_author: null,
      status: 'queued',
      status_reason: null,
      rollback_possible: false,
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
    application = await newApplication({ type: 'git', repository_url: git.url('shop'), branch: 'feature/basket' });
    const made = await deployed();
    expect(made).toMatchObject({ branch: 'feature/basket', commit_sha: feature });
    await service.call('PATCH', `/v2/applications/${application}`, { body: { source: { branch: 'main' } } });
    expect((await service.sql('select source from deployments where id = $1', [made.id]))[0].source.branch).toBe(
      'feature/basket',
    );
  });

  test('a template needs no remote', async () => {
    application = (
      await service.call('POST', '/v2/applications', { body: { name: 'from-preset', preset: 'static-site' } })
    ).body.id;
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

  test('an image needs a runtime that is not there, and a source is needed', async () => {
    const image = await newApplication({ type: 'image', image: 'registry.example.com/shop:1' });
    expect((await expectProblem(deploy({}, image), 409, 'engine_unavailable')).detail).toContain('OCI runtime');
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
      expect([detail, retryable]).toEqual([expect.stringMatching(/^[A-Z].*\.$/), true]);
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
    application = await newApplication({ type: 'git', repository_url: git.url('passing') });
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

describe('cancel', () => {
  test.each(['queued', 'building', 'deploying'])(
    'ends one that is %s at once, for the job to clear away',
    async (status) => {
      const { id } = await deployed();
      await become(id, `status = '${status}', next_at = null, attempts = 3`);
      const answer = await cancel(id);
      expect([answer.status, answer.body]).toMatchObject([
        200,
        {
          status: 'canceled',
          status_reason: expect.stringMatching(/^Canceled by .+\.$/),
          finished_at: expect.any(String),
        },
      ]);
      expect(await get(id)).toEqual(answer.body);
      expect(
        (
          await service.sql('select next_at <= now() as due, attempts, generation from deployments where id = $1', [id])
        )[0],
      ).toEqual({ due: true, attempts: 0, generation: 2 });
      await expectProblem(cancel(id), 409, 'invalid_state', {
        resource_status: 'canceled',
        allowed_statuses: ['queued', 'building', 'deploying'],
      });
    },
  );

  test.each(['active', 'superseded', 'failed'])('refuses one that is %s', async (status) => {
    const { id } = await deployed();
    await become(id, `status = '${status}'`);
    await expectProblem(cancel(id), 409, 'invalid_state', { resource_status: status });
  });

  test('of many at once one cancels', async () => {
    const { id } = await deployed();
    const answers = await Promise.all(Array.from({ length: 6 }, () => cancel(id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  test('waits for an activation that is on its way, and loses against it', async () => {
    const { id } = await deployed();
    await become(id, `status = 'deploying'`);
    let canceling: Promise<Answer> | undefined;
    await service.platform.database.knex.transaction(async (trx) => {
      await trx.raw(`update deployments set status = 'active' where id = ? and status = 'deploying'`, [id]);
      canceling = cancel(id);
      await new Promise((resolve) => setTimeout(resolve, 150));
    });
    await expectProblem(canceling as Promise<Answer>, 409, 'invalid_state', { resource_status: 'active' });
  });

  test('finds only deployments of the application, for keys that may deploy', async () => {
    const { id } = await deployed();
    await expectProblem(cancel(id, await newApplication()), 404, 'not_found');
    await expectProblem(cancel(mintId('dep')), 404, 'not_found');
    await expectProblem(
      service.call('POST', pathOf(application, `/${id}/cancel`), {
        key: await service.mintKey({ scopes: ['read', 'write'] }),
      }),
      403,
      'insufficient_scope',
    );
    expect((await get(id)).status).toBe('queued');
  });
});

describe('rollback', () => {
  test('queues the files of the earlier one', async () => {
    const earlier = await deployed({ branch: 'feature/basket' });
    await wasActive(earlier.id);
    expect((await get(earlier.id)).rollback_possible).toBe(true);
    const { status, body, headers } = await rollBack(earlier.id);
    expect(status).toBe(201);
    expect(body).toMatchObject({
      number: 2,
      trigger: 'rollback',
      status: 'queued',
      source_deployment_id: earlier.id,
      branch: 'feature/basket',
      commit_sha: feature,
      commit_message: 'Two',
      commit_author: 'Ada',
    });
    expect(headers.get('location')).toBe(`${service.url}${pathOf(application, `/${body.id}`)}`);
    await wasActive(body.id);
    const again = await rollBack(body.id);
    const rows = await service.sql('select artifact_id, plan from deployments where id = any($1)', [
      [body.id, again.body.id],
    ]);
    expect(rows).toEqual(Array(2).fill({ artifact_id: earlier.id, plan: { processes: {}, release_command: null } }));
    expect(await service.sql(`select action, resource_type from activity where resource_id = $1`, [body.id])).toEqual([
      { action: 'application.rolled_back', resource_type: 'deployment' },
    ]);
  });

  test('refuses what never was active, what is not kept, and what is unknown', async () => {
    const { id } = await deployed();
    await expectProblem(rollBack(id), 409, 'deployment_not_rollbackable', {
      detail: expect.stringContaining('never active'),
    });
    await wasActive(id);
    await become(id, 'artifact_kept = false');
    await expectProblem(rollBack(id), 409, 'deployment_not_rollbackable', {
      detail: expect.stringContaining('no longer kept'),
    });
    await become(id, 'artifact_kept = true');
    const other = await newApplication();
    const stranger = await service.newProject({ stranger: true });
    const foreign = await deploy(
      {},
      await newApplication(
        { type: 'git', repository_url: git.url('shop') },
        { key: stranger.key, project: stranger.id },
      ),
      { key: stranger.key, project: stranger.id },
    );
    for (const [deployment, of] of [
      [id, other],
      [mintId('dep'), application],
      [foreign.body.id, application],
      ['nonsense', application],
    ] as const) {
      await expectProblem(rollBack(deployment, of), 422, 'reference_not_found', { field: 'deployment_id' });
    }
    await expectProblem(rollBack(id, mintId('app')), 404, 'not_found');
    await expectProblem(
      service.call('POST', `/v2/applications/${application}/rollback`, { body: {} }),
      422,
      'validation_failed',
      { errors: [{ field: 'deployment_id', code: 'required' }] },
    );
    await expectProblem(
      service.call('POST', `/v2/applications/${application}/rollback`, {
        body: { deployment_id: id },
        key: await service.mintKey({ scopes: ['write'] }),
      }),
      403,
      'insufficient_scope',
    );
  });
});

describe('lists', () => {
  test('are newest first, and filter, sort and page', async () => {
    for (const branch of ['main', 'feature/basket', 'main']) await deployed({ branch });
    const [three, two, one] = await list();
    expect([three?.number, two?.number, one?.number]).toEqual([3, 2, 1]);
    await cancel(two.id);
    const numbers = async (query: string): Promise<number[]> => (await list(query)).map(({ number }) => number);
    expect(await numbers('sort=number')).toEqual([1, 2, 3]);
    expect(await numbers('sort=-number&limit=2')).toEqual([3, 2]);
    expect(await numbers('status=canceled')).toEqual([2]);
    expect(await numbers('trigger=manual')).toEqual([3, 2, 1]);
    expect(await numbers('trigger=push')).toEqual([]);
    expect(await numbers('branch=feature/basket')).toEqual([2]);
    expect(await numbers(`commit_sha=${head.toUpperCase()}`)).toEqual([3, 1]);
    const page = (await service.call('GET', `${pathOf()}?limit=2`)).body;
    expect((await list(`limit=2&cursor=${page.next_cursor}`)).map(({ number }) => number)).toEqual([1]);
    await expectProblem(service.call('GET', `${pathOf()}?status=sleepy`), 400, 'invalid_query_parameter');
    await expectProblem(service.call('GET', pathOf(mintId('app'))), 404, 'not_found');
  });

  test('leave previews apart', async () => {
    const own = await deployed();
    const preview = mintId('pvw');
    await service.sql(
      `insert into previews (id, created_at, updated_at, project_id, application_id, branch, hostname, created_by) values ($1, now(), now(), $2, $3, 'main', $1, '{}')`,
      [preview, service.project, application],
    );
    const { id } = await deployed();
    await become(id, `preview_id = '${preview}', activated_at = now(), artifact_kept = true`);
    expect((await list()).map((row) => row.id)).toEqual([own.id]);
    expect((await list(`preview_id=${preview}`)).map((row) => row.id)).toEqual([id]);
    expect(await list(`preview_id=${mintId('pvw')}`)).toEqual([]);
    expect(await get(id)).toMatchObject({ preview_id: preview, rollback_possible: false });
    await expectProblem(rollBack(id), 409, 'deployment_not_rollbackable', {
      detail: expect.stringContaining('preview'),
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
