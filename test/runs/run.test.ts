// Runs as rows and requests. What happens to their processes is in test/runs/running.test.ts.
import { mintId } from '../../core/ids';
import { limits } from '../../core/limits';
import { sweepRuns } from '../../models/runs/run/job_queries';
import { deployed, runOf, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;
let serial = 0;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.close());
beforeEach(async () => {
  application = await deployed(service, await newApplication());
});

async function newApplication(): Promise<string> {
  const made = await service.call('POST', '/v2/applications', { body: { name: `runs-${(serial += 1)}` } });
  expect(made.status).toBe(201);
  return made.body.id;
}

const create = (body: unknown, id = application.id, options: object = {}): Promise<Answer> =>
  service.call('POST', `/v2/applications/${id}/runs`, { body, ...options });
const get = (id: string): Promise<Answer> => service.call('GET', `/v2/applications/${application.id}/runs/${id}`);
const cancel = (id: string): Promise<Answer> =>
  service.call('POST', `/v2/applications/${application.id}/runs/${id}/cancel`);
const finish = (): Promise<unknown> =>
  service.sql(`update runs set status = 'succeeded', finished_at = now() where application_id = $1`, [application.id]);

describe('a command', () => {
  test('waits for its host with the release in service and the size of its process type', async () => {
    const { status, body } = await create({ command: 'npm run migrate' });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: expect.stringMatching(/^run_/),
      project_id: service.project,
      application_id: application.id,
      preview_id: null,
      instance_id: null,
      release_id: application.release,
      deployment_id: application.deployment,
      command: 'npm run migrate',
      process_type: 'web',
      env: [],
      application_type: 's-512mb',
      timeout_seconds: 3600,
      tty: false,
      detached: true,
      status: 'queued',
      status_reason: null,
      exit_code: null,
      signal: null,
      trigger: { type: 'api', id: null },
      started_at: null,
      finished_at: null,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await get(body.id)).body).toEqual(body);
  });

  test('takes a size, a time and variables, whose values stay secret', async () => {
    const value = 'only the host may know';
    const { body } = await create({
      command: 'env',
      application_type: 'm-1gb',
      timeout_seconds: 60,
      env: [
        { key: 'TO', value },
        { key: 'FROM', value: '' },
      ],
    });
    expect(body).toMatchObject({ application_type: 'm-1gb', timeout_seconds: 60, env: ['FROM', 'TO'] });
    expect(JSON.stringify(await service.sql('select * from runs where id = $1', [body.id]))).not.toContain(value);
    expect(JSON.stringify(body)).not.toContain(value);
  });

  test('takes its size from the process type that it names', async () => {
    await service.call('POST', `/v2/applications/${application.id}/processes`, {
      body: { type: 'worker', application_type: 'm-1gb' },
    });
    await service.sql(`update releases set processes = processes || '{"worker": {"command": "work"}}' where id = $1`, [
      application.release,
    ]);
    const { body } = await create({ command: 'true', process_type: 'worker' });
    expect(body).toMatchObject({ process_type: 'worker', application_type: 'm-1gb' });
  });

  test.each([
    ['an empty command', { command: '' }],
    ['a blank command', { command: ' \n' }],
    ['no command', {}],
    ['NUL', { command: 'echo a\u0000b' }],
    ['100 kB', { command: `echo ${'x'.repeat(100_000)}` }],
    ['no time', { command: 'true', timeout_seconds: 0 }],
    ['more than a day', { command: 'true', timeout_seconds: 86_401 }],
    ['half a second', { command: 'true', timeout_seconds: 0.5 }],
    ['a list as the command', { command: ['true'] }],
    ['a field that it does not have', { command: 'true', user: 'root' }],
    ['a variable without a name', { command: 'true', env: [{ key: '', value: 'a' }] }],
    ['a name with an equals sign', { command: 'true', env: [{ key: 'A=B', value: 'a' }] }],
    ['NUL in a value', { command: 'true', env: [{ key: 'A', value: 'a\u0000' }] }],
    [
      'a variable twice',
      {
        command: 'true',
        env: [
          { key: 'A', value: '1' },
          { key: 'A', value: '2' },
        ],
      },
    ],
  ])('is refused with %s', async (_, body) => {
    expect(await create(body)).toMatchObject({ status: 422, body: { code: 'validation_failed' } });
  });

  test('may have 65,536 bytes, and as many lines as it likes', async () => {
    const command = `echo ${'é\n'.repeat(21_843)}x`;
    expect(Buffer.byteLength(command)).toBeLessThanOrEqual(65_536);
    expect((await create({ command })).body).toMatchObject({ command });
  });

  test('cannot set variables of the platform', async () => {
    const answer = await create({ command: 'true', env: [{ key: 'SVC_APPLICATION_ID', value: 'app' }] });
    expect(answer).toMatchObject({ status: 422, body: { code: 'env_key_reserved', keys: ['SVC_APPLICATION_ID'] } });
  });

  test.each([
    ['application_type', { application_type: 'huge' }],
    ['process_type', { process_type: 'nobody' }],
    ['preview_id', { preview_id: mintId('pvw') }],
  ])('is refused where %s names nothing', async (field, more) => {
    expect(await create({ command: 'true', ...more })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field },
    });
  });
});

describe('an application', () => {
  test('without a release in service runs nothing', async () => {
    const answer = await create({ command: 'true' }, await newApplication());
    expect(answer).toMatchObject({ status: 409, body: { code: 'invalid_state', resource_status: 'new' } });
    expect(answer.body.detail).toBe('The application has no release in service. Deploy it first.');
  });

  test('that is stopped runs commands too', async () => {
    const stopped = await deployed(service, await newApplication(), 'stopped');
    expect((await create({ command: 'true' }, stopped.id)).status).toBe(201);
  });

  test('has ten unfinished runs at most', async () => {
    for (let count = 0; count < limits.unfinishedRunsPerApplication; count += 1)
      expect((await create({ command: 'true' })).status).toBe(201);
    expect(await create({ command: 'true' })).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', resource: 'runs', used: 10, limit: 10 },
    });
    await finish();
    expect((await create({ command: 'true' })).status).toBe(201);
  });

  test('counts its unfinished runs in the usage of the project', async () => {
    const used = async (): Promise<unknown> =>
      (await service.call('GET', `/v2/projects/${service.project}/usage`)).body.quotas.find(
        ({ resource }: { resource: string }) => resource === 'runs',
      );
    await service.sql(`update runs set status = 'succeeded'`);
    await create({ command: 'true' });
    expect(await used()).toEqual({ resource: 'runs', used: 1, limit: 50 });
    await finish();
    expect(await used()).toEqual({ resource: 'runs', used: 0, limit: 50 });
  });
});

describe('a list', () => {
  test('has the runs of the application, newest first, by status and by what started them', async () => {
    const ids = [await runOf(service, application), await runOf(service, application)];
    await service.sql(
      `update runs set status = 'failed', trigger_type = 'schedule', trigger_id = 'sch_1', finished_at = now()
        where id = $1`,
      [ids[0]],
    );
    const list = async (query = ''): Promise<string[]> =>
      (await service.call('GET', `/v2/applications/${application.id}/runs${query}`)).body.data.map(
        ({ id }: { id: string }) => id,
      );
    expect(await list()).toEqual([...ids].reverse());
    expect(await list('?status=failed')).toEqual([ids[0]]);
    expect(await list('?trigger_type=schedule')).toEqual([ids[0]]);
    expect(await list('?trigger_type=api')).toEqual([ids[1]]);
    expect(await list('?process_type=worker')).toEqual([]);
  });
});

describe('cancel', () => {
  test('ends a run that has not begun at once, and says who it was', async () => {
    const { body } = await create({ command: 'true' });
    const answer = await cancel(body.id);
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({
      status: 'canceled',
      status_reason: expect.stringMatching(/^Canceled by .+\.$/),
      finished_at: expect.any(String),
      exit_code: null,
    });
    expect(await cancel(body.id)).toMatchObject({
      status: 409,
      body: { code: 'invalid_state', resource_status: 'canceled', allowed_statuses: ['queued', 'starting', 'running'] },
    });
  });

  test('leaves a running one to its job', async () => {
    const id = await runOf(service, application);
    await service.sql(`update runs set status = 'running', next_at = null where id = $1`, [id]);
    expect((await cancel(id)).body).toMatchObject({ status: 'running', finished_at: null });
    const [row] = await service.sql('select cancel_requested_at, next_at from runs where id = $1', [id]);
    expect(row).toEqual({ cancel_requested_at: expect.anything(), next_at: expect.anything() });
  });
});

describe('strangers', () => {
  test('a run of another application or project is not found', async () => {
    const { id } = (await create({ command: 'true' })).body;
    const other = await newApplication();
    for (const place of ['', '/logs'])
      expect((await service.call('GET', `/v2/applications/${other}/runs/${id}${place}`)).status).toBe(404);
    expect((await service.call('POST', `/v2/applications/${other}/runs/${id}/cancel`)).status).toBe(404);
    const foreign = await service.newProject();
    const options = { project: foreign.id };
    expect((await create({ command: 'true' }, application.id, options)).status).toBe(404);
    expect((await service.call('GET', `/v2/applications/${application.id}/runs/${id}`, options)).status).toBe(404);
  });

  test('only `deploy` starts and cancels, only `logs:read` reads the log', async () => {
    const { id } = (await create({ command: 'true' })).body;
    const key = await service.mintKey({ scopes: ['read', 'write'] });
    const options = { key };
    expect(await create({ command: 'true' }, application.id, options)).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope' },
    });
    const place = `/v2/applications/${application.id}/runs/${id}`;
    expect((await service.call('GET', place, options)).status).toBe(200);
    expect((await service.call('GET', `${place}/logs`, options)).status).toBe(403);
    expect((await service.call('POST', `${place}/cancel`, options)).status).toBe(403);
  });
});

test('the activity names the run that was created, without its command', async () => {
  const { id } = (await create({ command: 'echo secret-argument' })).body;
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`);
  expect(body.data).toMatchObject([{ action: 'run.created', resource: { type: 'run', id } }]);
  expect(JSON.stringify(body)).not.toContain('secret-argument');
});

test('finished runs go after thirty days', async () => {
  const [old, young] = [await runOf(service, application), await runOf(service, application)];
  await service.sql(
    `update runs set status = 'succeeded', finished_at = now() - interval '1 day' * case id when $1 then 31 else 29 end
      where id in ($1, $2)`,
    [old, young],
  );
  await sweepRuns(service.platform.database);
  expect([(await get(old)).status, (await get(young as string)).status]).toEqual([404, 200]);
});
