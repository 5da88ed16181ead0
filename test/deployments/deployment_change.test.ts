// Canceled deployments, rollbacks, and lists, as a request sees them.
import { mintId } from '../../core/ids';
import {
  application,
  become,
  cancel,
  deploy,
  deployed,
  expectProblem,
  feature,
  get,
  git,
  head,
  list,
  newApplication,
  pathOf,
  rollBack,
  service,
  useDeployments,
  wasActive,
} from '../support/deployments/deployments';
import type { Answer } from '../support/service';

useDeployments();

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
      `insert into previews (id, created_at, updated_at, project_id, application_id, branch, hostname, created_by)
        values ($1, now(), now(), $2, $3, 'main', $1, '{}')`,
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
