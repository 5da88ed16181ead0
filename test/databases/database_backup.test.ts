// Backups as rows, and their downloads at signed addresses (docs/contract/resources.md §9.6). How they are taken:
// test/drivers.
import { firstIdAt } from '../../core/ids';
import { setStatus } from '../support/databases/databases';
import {
  fresh,
  MINUTE_MS,
  scheduled,
  service,
  setBackup,
  setUpBackups,
} from '../support/databases/database_backup_cases';

setUpBackups();

describe('taking one', () => {
  it('answers everything that is promised', async () => {
    const { id, post, get } = await fresh();
    const made = await post('backups', { note: 'Before the migration' });
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      `${service.url}/v2/databases/${id}/backups/${made.body.id}`,
    ]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^bkp_[0-9a-hjkmnp-tv-z]{26}$/),
      database_id: id,
      type: 'manual',
      note: 'Before the migration',
      engine_version: '17',
      size_bytes: null,
      started_at: null,
      finished_at: null,
      expires_at: null,
      status: 'pending',
      status_reason: null,
      ...{ proof_status: 'unproven', proven_at: null, proof_seconds: null, proof_rows: null, proof_failure: null },
      created_at: expect.stringMatching(/Z$/),
      updated_at: made.body.created_at,
    });
    expect((await get('backups', made.body.id)).body).toEqual(made.body);
    expect(
      await service.sql('select next_at is not null as due from database_backups where id = $1', [made.body.id]),
    ).toEqual([{ due: true }]);
  });

  it('needs no body', async () => {
    const { post } = await fresh();
    expect((await post('backups')).body).toMatchObject({ note: null, status: 'pending' });
  });

  it('refuses what does not fit', async () => {
    const { post } = await fresh();
    for (const [body, code] of [
      [{ note: 'x'.repeat(201) }, 'too_long'],
      [{ note: 1 }, 'invalid_type'],
      [{ type: 'scheduled' }, 'immutable'],
      [{ name: 'x' }, 'unknown_field'],
    ] as const) {
      expect(await post('backups', body)).toMatchObject({
        status: 422,
        body: { code: 'validation_failed', errors: [{ code }] },
      });
    }
    const { post: without } = await fresh({ engine_version: '18' });
    expect(await without('backups')).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'backups' },
    });
  });

  it('needs an available database', async () => {
    const { id, post } = await fresh();
    for (const [status, code] of [
      ['provisioning', 'resource_busy'],
      ['stopped', 'invalid_state'],
      ['failed', 'invalid_state'],
    ] as const) {
      await setStatus(service, id, status);
      expect(await post('backups')).toMatchObject({ status: 409, body: { code, resource_status: status } });
    }
  });

  it('is one at a time, the scheduled ones included', async () => {
    const { id, post } = await fresh();
    const answers = await Promise.all([post('backups'), post('backups'), post('backups')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({
      code: 'resource_busy',
      resource_status: 'pending',
    });
    await service.sql(`update database_backups set status = 'completed' where database_id = $1`, [id]);
    const running = await scheduled(id, { status: 'running' });
    expect(await post('backups')).toMatchObject({
      status: 409,
      body: { code: 'resource_busy', resource_status: 'running' },
    });
    await setBackup(running, 'failed');
    expect((await post('backups')).status).toBe(201);
  });

  it('stops at twenty manual ones; scheduled ones do not count', async () => {
    const { id, post, remove } = await fresh();
    await scheduled(id);
    const kept = await Promise.all(
      Array.from({ length: 20 }, () => scheduled(id, { type: 'manual', expires_at: null })),
    );
    expect(await post('backups')).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', resource: 'manual_backups', used: 20, limit: 20 },
    });
    expect((await remove('backups', kept[0] as string)).status).toBe(204);
    expect((await post('backups')).status).toBe(201);
  });

  it('happens once where the request comes twice', async () => {
    const { post, get } = await fresh();
    const headers = { 'Idempotency-Key': 'backup-1' };
    const [first, second] = [await post('backups', {}, headers), await post('backups', {}, headers)];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect((await get('backups')).body.data).toHaveLength(1);
  });
});

describe('deletion', () => {
  it('waits for one that is being taken', async () => {
    const { post, remove, get } = await fresh();
    const { id } = (await post('backups')).body;
    for (const status of ['pending', 'running']) {
      await setBackup(id, status);
      expect(await remove('backups', id)).toMatchObject({
        status: 409,
        body: { code: 'resource_busy', resource_status: status },
      });
    }
    await setBackup(id, 'completed');
    expect([
      (await remove('backups', id)).status,
      (await get('backups', id)).status,
      (await remove('backups', id)).status,
    ]).toEqual([204, 404, 404]);
    expect(
      await service.sql(
        'select deleted_at is not null as gone, next_at <= now() as due from database_backups where id = $1',
        [id],
      ),
    ).toEqual([{ gone: true, due: true }]);
  });
});

test('lists have filters and pages', async () => {
  const { id, get } = await fresh();
  const day = 24 * 60 * MINUTE_MS;
  const ago = (days: number): string => new Date(Date.now() - days * day).toISOString();
  const [old, middle, young] = [3, 2, 1].map((days) => firstIdAt('bkp', ago(days))) as [string, string, string];
  for (const [one, type, status] of [
    [old, 'scheduled', 'completed'],
    [middle, 'manual', 'failed'],
    [young, 'scheduled', 'completed'],
  ] as const)
    await scheduled(id, { id: one, type, status });
  const ids = async (query: string): Promise<string[]> =>
    (await get('backups', `?${query}`)).body.data.map((one: { id: string }) => one.id);
  expect(await ids('')).toEqual([young, middle, old]);
  expect(await ids('sort=created_at&limit=2')).toEqual([old, middle]);
  expect(await ids('type=manual')).toEqual([middle]);
  expect(await ids('status=completed')).toEqual([young, old]);
  expect(await ids(`since=${ago(2.5)}`)).toEqual([young, middle]);
  expect(await ids(`since=${ago(2.5)}&until=${ago(1.5)}`)).toEqual([middle]);
  const { next_cursor } = (await get('backups', '?limit=2')).body;
  expect(await ids(`limit=2&cursor=${next_cursor}`)).toEqual([old]);
  expect(await get('backups', '?sort=size_bytes')).toMatchObject({
    status: 400,
    body: { code: 'invalid_query_parameter' },
  });
});
