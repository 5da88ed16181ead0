// What moves a database: start, stop, restart, upgrade, restore (docs/contract/resources.md §9.1).
import { backup, database, describeHost, setStatus, setWindow } from '../support/databases/databases';
import { replica } from '../support/databases/database_children';
import { startService, type Answer, type TestService } from '../support/service';
import { withConfig } from '../support/config';

const STATES = [
  'provisioning',
  'available',
  'updating',
  'upgrading',
  'restoring',
  'restarting',
  'stopping',
  'stopped',
  'starting',
  'failed',
];
const SETTLED = ['available', 'stopped', 'failed'];
let service: TestService;

beforeAll(async () => {
  service = await startService({
    settings: {
      QUOTAS: '{"databases": null, "database_storage_gb": null}',
      ...withConfig({ operationWaitSeconds: 5 }),
    },
  });
  await describeHost(service);
});

afterAll(() => service?.close());

const act = (id: string, action: string, body?: unknown, options = {}): Promise<Answer> =>
  service.call('POST', `/v2/databases/${id}/${action}`, { body, ...options });
const row = async (id: string): Promise<Answer['body']> =>
  (await service.sql('select * from databases where id = $1', [id]))[0];
describe('the actions', () => {
  const actions: [action: string, from: string, to: string, running: boolean][] = [
    ['start', 'stopped', 'starting', true],
    ['stop', 'available', 'stopping', false],
    ['restart', 'available', 'restarting', true],
  ];

  it.each(actions)('%s leads from %s to %s', async (action, from, to, running) => {
    const { id } = await database(service, {}, from);
    const answer = await act(id, action);
    expect([answer.status, answer.body]).toEqual([
      202,
      expect.objectContaining({ id, status: to, status_reason: null }),
    ]);
    expect(await row(id)).toMatchObject({ status: to, running });
    expect(await act(id, action)).toMatchObject({ status: 409, body: { code: 'resource_busy', resource_status: to } });
  });

  it.each(actions)('%s needs %s', async (action, from) => {
    const { id } = await database(service);
    for (const status of STATES.filter((state) => state !== from)) {
      await setStatus(service, id, status);
      const code = SETTLED.includes(status) ? 'invalid_state' : 'resource_busy';
      expect(await act(id, action)).toMatchObject({ status: 409, body: { code, resource_status: status } });
    }
  });

  it('take no body, and nothing that they do not know', async () => {
    const { id } = await database(service);
    for (const action of ['start', 'stop', 'restart'])
      expect(await act(id, action, { force: true })).toMatchObject({
        status: 422,
        body: { code: 'validation_failed' },
      });
    expect((await act('db_01h455vb4pex5vsknk084sn02q', 'stop')).body.code).toBe('not_found');
  });

  it('of two at once, one counts', async () => {
    const { id } = await database(service);
    const answers = await Promise.all([act(id, 'stop'), act(id, 'restart'), act(id, 'stop'), act(id, 'restart')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409, 409, 409]);
  });

  it('answer a repeated key with what they did', async () => {
    const { id } = await database(service);
    const first = await act(id, 'stop', undefined, { headers: { 'Idempotency-Key': 'stop-it' } });
    const again = await act(id, 'stop', undefined, { headers: { 'Idempotency-Key': 'stop-it' } });
    expect([first.status, again.status, again.body]).toEqual([202, 202, first.body]);
  });
});

describe('upgrade', () => {
  it('goes to a newer version of the engine', async () => {
    const { id } = await database(service, { engine_version: '16' });
    expect((await act(id, 'upgrade', { engine_version: '18' })).body).toMatchObject({
      status: 'upgrading',
      engine_version: '16',
    });
    expect(await row(id)).toMatchObject({ wanted_version: '18' });
    expect(await act(id, 'upgrade', { engine_version: '17' })).toMatchObject({
      status: 409,
      body: { code: 'resource_busy' },
    });
  });

  it.each([
    ['15', ['18']],
    ['17', ['18']],
    ['nonsense', ['18']],
  ])('refuses %s', async (engine_version, available_versions) => {
    const { id } = await database(service, { engine_version: '17' });
    expect(await act(id, 'upgrade', { engine_version })).toMatchObject({
      status: 422,
      body: { code: 'engine_version_unsupported', available_versions },
    });
  });

  it('refuses a version in which its replicas could not be made anew', async () => {
    const { id } = await database(service, { engine_version: '16' });
    await replica(service, id);
    expect(await act(id, 'upgrade', { engine_version: '18' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'replicas' },
    });
    expect((await act(id, 'upgrade', { engine_version: '17' })).status).toBe(202);
  });

  it('compares versions as numbers, and needs an available database', async () => {
    const { id } = await database(service, { engine: 'mariadb', engine_version: '10.6' }, 'stopped');
    expect(await act(id, 'upgrade', { engine_version: '10.11' })).toMatchObject({
      status: 409,
      body: { code: 'invalid_state' },
    });
    await setStatus(service, id, 'available');
    expect((await act(id, 'upgrade', { engine_version: '10.11' })).status).toBe(202);
  });
});

describe('restore', () => {
  it('takes a backup or a moment, not both and not neither', async () => {
    const { id } = await database(service);
    const backup_id = await backup(service, id);
    await setWindow(service, id, '2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z');
    for (const body of [{}, { backup_id, point_in_time: '2026-01-01T12:00:00Z' }])
      expect((await act(id, 'restore', body)).body).toMatchObject({ code: 'validation_failed' });
    expect((await act(id, 'restore', { backup_id })).body).toMatchObject({ status: 'restoring' });
    expect(await row(id)).toMatchObject({ restoring_from: { backup_id, point_in_time: null } });
    await setStatus(service, id, 'available');
    expect((await act(id, 'restore', { point_in_time: '2026-01-01T12:00:00Z' })).status).toBe(202);
    expect(await row(id)).toMatchObject({
      restoring_from: { backup_id: null, point_in_time: '2026-01-01T12:00:00.000Z' },
    });
    expect(await act(id, 'restore', { backup_id })).toMatchObject({ status: 409, body: { code: 'resource_busy' } });
  });

  it('needs a whole backup of the same database and of its version, and a moment that is kept', async () => {
    const [one, two] = [await database(service, { engine_version: '16' }), await database(service)];
    const [running, old, foreign] = [
      await backup(service, one.id, 'running'),
      await backup(service, one.id),
      await backup(service, two.id),
    ];
    expect(await act(one.id, 'restore', { backup_id: running })).toMatchObject({
      status: 409,
      body: { code: 'backup_not_ready' },
    });
    expect(await act(one.id, 'restore', { backup_id: foreign })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'backup_id' },
    });
    expect(await act(one.id, 'restore', { point_in_time: '2026-01-01T12:00:00Z' })).toMatchObject({
      status: 422,
      body: { code: 'point_in_time_unavailable' },
    });
    await service.sql(`update databases set engine_version = '17' where id = $1`, [one.id]);
    expect(await act(one.id, 'restore', { backup_id: old })).toMatchObject({
      status: 422,
      body: { code: 'engine_version_unsupported' },
    });
    const { id } = await database(service, { engine: 'mariadb' });
    expect(await act(id, 'restore', { point_in_time: '2026-01-01T12:00:00Z' })).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', feature: 'point_in_time' },
    });
  });
});
