// Previews as a request sees them (docs/contract/resources.md §4): made and read. Redeployed and deleted:
// preview_change.test.ts. What the jobs make of the rows is in test/deploy/.
import { labelOf } from '../models/preview/hostname';
import { startGitServer, type GitServer } from './support/git_server';
import { startService, type Answer, type CallOptions, type TestService } from './support/service';

let git: GitServer;
let service: TestService;
let application: string;
let [feature, proposed] = ['', ''];
let serial = 0;

beforeAll(async () => {
  git = await startGitServer();
  git.makeRepository('shop', { 'index.html': 'one' });
  feature = git.commit('shop', { 'index.html': 'two' }, { branch: 'feature/Basket_2' });
  proposed = git.commit('shop', { 'index.html': 'three' }, { branch: 'other' });
  git.setRef('shop', 'refs/pull/7/head', proposed);
  git.setRef('shop', 'refs/merge-requests/8/head', feature);
  git.makeRepository('empty', {});
  const quotas = '{"applications": 1000, "previews": 1000}';
  service = await startService({
    settings: {
      ALLOW_HTTP_GIT: '1',
      ALLOW_PRIVATE_ADDRESSES: '1',
      QUOTAS: quotas,
      APPS_DOMAIN: 'apps.example.com',
      INGRESS_PORT: '8000',
    },
  });
});

afterAll(async () => {
  await service?.close();
  await git?.close();
});

beforeEach(async () => {
  git.intercept = null;
  application = await newApplication();
});

async function newApplication(
  body: Record<string, unknown> = { source: { type: 'git', repository_url: git.url('shop') } },
): Promise<string> {
  const made = await service.call('POST', '/v2/applications', { body: { name: `shop-${(serial += 1)}`, ...body } });
  if (made.status !== 201) throw new Error(made.text);
  return made.body.id;
}

const place = (rest = '', id = application): string => `/v2/applications/${id}/previews${rest}`;
const post = (body: object, options: CallOptions = {}): Promise<Answer> =>
  service.call('POST', place(), { body, ...options });
const become = (id: string, status: string): Promise<unknown> =>
  service.sql('update previews set status = $2, status_reason = $3 where id = $1', [id, status, 'As it was.']);

async function created(body: object = { branch: 'main' }): Promise<Answer['body']> {
  const answer = await post(body);
  if (answer.status !== 201) throw new Error(answer.text);
  return answer.body;
}

interface DeploymentRow {
  preview_id: string;
  branch: string;
  commit_sha: string;
  trigger: string;
  status: string;
  created_by: object;
  number: number;
}
const deployments = (): Promise<DeploymentRow[]> =>
  service.sql('select * from deployments where application_id = $1 order by number', [application]);

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

describe('creation', () => {
  it('answers everything that is promised, and queues a deployment of the head', async () => {
    const made = await post({ branch: 'feature/Basket_2' });
    const { body } = made;
    expect([made.status, made.headers.get('location')]).toEqual([201, `${service.url}${place(`/${body.id}`)}`]);
    expect(body).toEqual({
      id: expect.stringMatching(/^pvw_[0-9a-hjkmnp-tv-z]{26}$/),
      project_id: service.project,
      application_id: application,
      branch: 'feature/Basket_2',
      pull_request_number: null,
      expires_at: expect.any(String),
      commit_sha: null,
      url: expect.stringMatching(
        new RegExp(`^http://feature-basket-2-shop-${serial}-[0-9a-z]{6}\\.apps\\.example\\.com:8000$`),
      ),
      status: 'queued',
      status_reason: null,
      current_deployment_id: null,
      created_by: expect.objectContaining({ type: 'user', id: expect.stringMatching(/^usr_/) }),
      created_at: expect.any(String),
      updated_at: body.created_at,
    });
    expect((await service.call('GET', place(`/${body.id}`))).body).toEqual(body);
    expect(await deployments()).toEqual([
      expect.objectContaining({
        preview_id: body.id,
        branch: 'feature/Basket_2',
        commit_sha: feature,
        trigger: 'pull_request',
        status: 'queued',
        number: 1,
        created_by: body.created_by,
      }),
    ]);
    expect((await service.call('GET', `/v2/applications/${application}/deployments`)).body.data).toEqual([]);
    expect((await service.call('GET', `/v2/applications/${application}`)).body.status).toBe('new');
  });

  it.each([
    [7, 'refs/pull/7/head'],
    [8, 'refs/merge-requests/8/head'],
  ])('finds pull request %i at %s', async (pull_request_number, ref) => {
    const body = await created({ pull_request_number });
    expect(body).toMatchObject({ branch: ref, pull_request_number });
    expect(body.url).toMatch(new RegExp(`^http://pr-${pull_request_number}-shop-\\d+-`));
    expect((await deployments())[0]).toMatchObject({
      branch: ref,
      commit_sha: pull_request_number === 7 ? proposed : feature,
    });
  });

  it('expires as the settings say, as it is asked for, or never', async () => {
    const days = (body: { expires_at: string; created_at: string }): number =>
      (Date.parse(body.expires_at) - Date.parse(body.created_at)) / 86_400_000;
    expect(days(await created())).toBeCloseTo(7, 2);
    const expires_at = new Date(Date.now() + 2 * 3_600_000).toISOString();
    expect(await created({ branch: 'other', expires_at })).toMatchObject({ expires_at });
    expect(await created({ pull_request_number: 7, expires_at: null })).toMatchObject({ expires_at: null });
    await service.call('PATCH', `/v2/applications/${application}/settings`, {
      body: { previews: { expire_after_days: null } },
    });
    expect(await created({ pull_request_number: 8 })).toMatchObject({ expires_at: null });
  });

  it.each([
    [59 * 60_000, 'too_small'],
    [-1, 'too_small'],
    [30 * 86_400_000 + 60_000, 'too_large'],
  ])('refuses to expire in %i ms', async (ahead, code) => {
    await expectProblem(
      post({ branch: 'main', expires_at: new Date(Date.now() + ahead).toISOString() }),
      422,
      'validation_failed',
      { errors: [{ field: 'expires_at', code }] },
    );
  });

  const mistakes: [object, string, string][] = [
    [{}, 'branch', 'required'],
    [{ branch: 'main', pull_request_number: 7 }, 'branch', 'mutually_exclusive'],
    [{ branch: '' }, 'branch', 'too_short'],
    [{ branch: 'a..b' }, 'branch', 'invalid_format'],
    [{ branch: '--upload-pack=x' }, 'branch', 'invalid_format'],
    [{ branch: 'refs/pull/7/head' }, 'branch', 'invalid_format'],
    [{ pull_request_number: 0 }, 'pull_request_number', 'too_small'],
    [{ branch: 'main', expires_at: 'tomorrow' }, 'expires_at', 'invalid_format'],
    [{ branch: 'main', url: 'http://x' }, 'url', 'immutable'],
  ];

  it.each(mistakes)('refuses %j', async (body, field, code) => {
    const { errors } = await expectProblem(post(body), 422, 'validation_failed');
    expect(errors[0]).toMatchObject({ field, code });
  });

  it('needs a Git source', async () => {
    application = await newApplication({});
    await expectProblem(post({ branch: 'main' }), 422, 'source_not_configured');
    application = await newApplication({ preset: 'static-site' });
    await expectProblem(post({ branch: 'main' }), 422, 'source_not_configured');
  });

  it('needs a branch, or a pull request, that the remote has', async () => {
    await expectProblem(post({ branch: 'nowhere' }), 422, 'reference_not_found', { field: 'branch' });
    const { detail } = await expectProblem(post({ pull_request_number: 99 }), 422, 'reference_not_found', {
      field: 'pull_request_number',
    });
    expect(detail).toContain('no pull request 99');
    application = await newApplication({ source: { type: 'git', repository_url: git.url('empty') } });
    await expectProblem(post({ branch: 'main' }), 422, 'reference_not_found', { field: 'branch' });
    expect(await service.sql('select 1 from previews where application_id = $1', [application])).toEqual([]);
  });

  it('needs a remote that answers', async () => {
    git.intercept = () => ({ status: 500 });
    await expectProblem(post({ branch: 'main' }), 502, 'provider_error');
    await expectProblem(post({ pull_request_number: 7 }), 502, 'provider_error');
    application = await newApplication({ source: { type: 'git', repository_url: git.url('gone') } });
    await expectProblem(post({ branch: 'main' }), 502, 'provider_error');
  });

  it('does not wait for ever', async () => {
    git.intercept = () => 'hang';
    const before = Date.now();
    await expectProblem(post({ pull_request_number: 7 }), 502, 'provider_error');
    expect(Date.now() - before).toBeLessThan(20_000);
  }, 30_000);

  it('is there once per branch, however many ask at a time', async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => post({ branch: 'main' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
    for (const { status, body } of answers) if (status === 409) expect(body.code).toBe('already_exists');
    expect(await deployments()).toHaveLength(1);
    await created({ pull_request_number: 7 });
    await expectProblem(post({ pull_request_number: 7 }), 409, 'already_exists');
  });

  it('counts against the quota of the project', async () => {
    const { used } = (await service.call('GET', `/v2/projects/${service.project}/usage`)).body.quotas.find(
      ({ resource }: { resource: string }) => resource === 'previews',
    );
    await created();
    const quotas = (await service.call('GET', `/v2/projects/${service.project}/usage`)).body.quotas;
    expect(quotas).toContainEqual({ resource: 'previews', used: used + 1, limit: 1000 });
  });

  it('answers a repeated key from what it has done, also when the remote has gone', async () => {
    const headers = { 'Idempotency-Key': `preview-${application}` };
    const first = await post({ branch: 'main' }, { headers });
    git.intercept = () => ({ status: 500 });
    const again = await post({ branch: 'main' }, { headers });
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect(await deployments()).toHaveLength(1);
  });
});

describe('the host name', () => {
  const branch = (name: string): { branch: string; pull_request_number: null } => ({
    branch: name,
    pull_request_number: null,
  });

  it.each([
    [labelOf('shop', branch('feature/Basket_2'), 'abc123'), 'feature-basket-2-shop-abc123'],
    [labelOf('shop', branch('déjà--vu!'), 'abc123'), 'deja-vu-shop-abc123'],
    [labelOf('shop', branch('日本'), 'abc123'), 'preview-shop-abc123'],
    [
      labelOf('shop', { branch: 'refs/pull/2147483647/head', pull_request_number: 2_147_483_647 }, 'abc123'),
      'pr-2147483647-shop-abc123',
    ],
    [labelOf('x'.repeat(40), branch('a-long-name-of-a-branch'), 'abc123'), `a-long-name-of-${'x'.repeat(40)}-abc123`],
  ])('%s', (label, wanted) => {
    expect([label, label.length <= 63]).toEqual([wanted, true]);
    expect(label).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
  });
});

describe('reading', () => {
  it('filters and sorts', async () => {
    const first = await created({ branch: 'main', expires_at: null });
    const second = await created({ branch: 'other' });
    const third = await created({ pull_request_number: 7, expires_at: new Date(Date.now() + 4_000_000).toISOString() });
    await become(second.id, 'failed');
    const ids = async (query: string): Promise<string[]> =>
      (await service.call('GET', place(`?${query}`))).body.data.map(({ id }: { id: string }) => id);
    expect(await ids('')).toEqual([third.id, second.id, first.id]);
    expect(await ids('sort=expires_at')).toEqual([third.id, second.id, first.id]);
    expect(await ids('sort=-expires_at')).toEqual([second.id, third.id, first.id]);
    expect(await ids('branch=other')).toEqual([second.id]);
    expect(await ids('pull_request_number=7')).toEqual([third.id]);
    expect(await ids('status=failed')).toEqual([second.id]);
  });

  it('belongs to its application and its project', async () => {
    const { id } = await created();
    const other = await newApplication();
    const stranger = await service.newProject({ stranger: true });
    expect((await service.call('GET', place(`/${id}`, other))).status).toBe(404);
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', `/${id}`],
      ['DELETE', `/${id}`],
      ['POST', `/${id}/redeploy`],
    ] as const) {
      expect([
        method,
        rest,
        (await service.call(method, place(rest), { key: stranger.key, project: stranger.id })).status,
      ]).toEqual([method, rest, 404]);
    }
    expect((await service.call('POST', place(`/${id}/redeploy`, other))).status).toBe(404);
    expect((await service.call('DELETE', place(`/${id}`, other))).status).toBe(404);
  });

  it('is a relation of its application', async () => {
    const { id, url } = await created();
    const { data, errors } = await service.graphql(
      `{ getApplication(id: "${application}") { previews(limit: 5) {
        id url created_by { name } application { id } } } }`,
    );
    expect([errors, data.getApplication.previews]).toEqual([
      undefined,
      [{ id, url, created_by: { name: expect.any(String) }, application: { id: application } }],
    ]);
  });
});
