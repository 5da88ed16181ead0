// Previews as a request sees them (docs/contract/resources.md §4): made and read. Redeployed and deleted:
// preview_change.test.ts. What the jobs make of the rows is in test/deployments/.
import { type Answer } from '../support/service';
import {
  actOn,
  application,
  created,
  feature,
  git,
  newApplication,
  place,
  post,
  proposed,
  serial,
  service,
  setUpPreviews,
} from '../support/deployments/preview_cases';

setUpPreviews();

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
    actOn(await newApplication({}));
    await expectProblem(post({ branch: 'main' }), 422, 'source_not_configured');
    actOn(await newApplication({ preset: 'static-site' }));
    await expectProblem(post({ branch: 'main' }), 422, 'source_not_configured');
  });

  it('needs a branch, or a pull request, that the remote has', async () => {
    await expectProblem(post({ branch: 'nowhere' }), 422, 'reference_not_found', { field: 'branch' });
    const { detail } = await expectProblem(post({ pull_request_number: 99 }), 422, 'reference_not_found', {
      field: 'pull_request_number',
    });
    expect(detail).toContain('no pull request 99');
    actOn(await newApplication({ source: { type: 'git', repository_url: git.url('empty') } }));
    await expectProblem(post({ branch: 'main' }), 422, 'reference_not_found', { field: 'branch' });
    expect(await service.sql('select 1 from previews where application_id = $1', [application])).toEqual([]);
  });

  it('needs a remote that answers', async () => {
    git.intercept = () => ({ status: 500 });
    await expectProblem(post({ branch: 'main' }), 502, 'provider_error');
    await expectProblem(post({ pull_request_number: 7 }), 502, 'provider_error');
    actOn(await newApplication({ source: { type: 'git', repository_url: git.url('gone') } }));
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
