// Projects, their usage and their activity log (docs/contract/resources.md §2).
import { projectQuotas } from '../../core/limits';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const post = (body: unknown, key?: string): Promise<Answer> =>
  service.call('POST', '/v2/projects', { body, project: null, ...(key && { key }) });
const patch = (id: string, body: unknown, key?: string): Promise<Answer> =>
  service.call('PATCH', `/v2/projects/${id}`, { body, project: null, ...(key && { key }) });
const get = (place: string, key?: string): Promise<Answer> =>
  service.call('GET', place, { project: null, ...(key && { key }) });
const fieldsOf = ({ body }: Answer): [string, string][] =>
  body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe('projects', () => {
  it('are made with defaults, and their maker owns them', async () => {
    const made = await post({ name: '  Web shop  ' });
    expect([made.status, made.headers.get('location')]).toEqual([201, `${service.url}/v2/projects/${made.body.id}`]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^prj_/),
      name: 'Web shop',
      description: null,
      approval_required_for: 'none',
      deletion_protection: false,
      deleted_retention_days: 0,
      default_region: 'local',
      role: 'owner',
      created_at: expect.any(String),
      updated_at: made.body.created_at,
    });
    expect((await get(`/v2/projects/${made.body.id}`)).body).toEqual(made.body);
    expect((await post({ name: 'Web shop' })).status).toBe(201);
  });

  it('refuse what is wrong', async () => {
    const cases: [unknown, [string, string][]][] = [
      [{}, [['name', 'required']]],
      [{ name: '   ' }, [['name', 'too_short']]],
      [{ name: 'x'.repeat(101) }, [['name', 'too_long']]],
      [{ name: 'a\nb' }, [['name', 'invalid_format']]],
      [{ name: 'a', description: 'x'.repeat(501) }, [['description', 'too_long']]],
      [{ name: 'a', default_region: null }, [['default_region', 'required']]],
      [{ name: 'a', role: 'owner' }, [['role', 'immutable']]],
    ];
    for (const [body, wanted] of cases) expect([body, fieldsOf(await post(body))]).toEqual([body, wanted]);
    expect(await post({ name: 'a', default_region: 'mars' })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'default_region' },
    });
  });

  it('are changed by owners and by their own key', async () => {
    const { body } = await post({ name: 'Old', description: 'Text' });
    expect((await patch(body.id, { name: 'New', description: null })).body).toMatchObject({
      name: 'New',
      description: null,
      role: 'owner',
    });
    expect(fieldsOf(await patch(body.id, {}))).toEqual([['', 'required']]);
    expect(await patch(body.id, { default_region: 'mars' })).toMatchObject({
      status: 422,
      body: { field: 'default_region' },
    });
    const own = await service.mintKey({ kind: 'project', project_id: body.id });
    expect((await patch(body.id, { name: 'By key' }, own)).body).toMatchObject({ name: 'By key', role: null });
    expect((await get(`/v2/projects/${body.id}`, own)).body).toMatchObject({ name: 'By key', role: null });
    expect((await get('/v2/me', own)).body.project).toEqual({ id: body.id, name: 'By key' });
  });

  it('are deleted when empty, and their keys stop', async () => {
    const { body } = await post({ name: 'Doomed' });
    const own = await service.mintKey({ kind: 'project', project_id: body.id });
    expect((await get('/v2/me', own)).status).toBe(200);
    const place = `/v2/projects/${body.id}`;
    const volume = (await service.call('POST', `${place}/volumes`, { body: { name: 'last', size_gb: 1 } })).body;
    await service.call('POST', `${place}/applications`, { body: { name: 'last' } });
    const refused = await service.call('DELETE', place);
    expect([refused.status, refused.body.code, refused.body.resources]).toEqual([
      409,
      'project_not_empty',
      expect.arrayContaining([
        { resource: 'volumes', count: 1 },
        { resource: 'applications', count: 1 },
      ]),
    ]);
    const [application] = (await get(`${place}/applications`)).body.data;
    for (const path of [`/v2/volumes/${volume.id}`, `/v2/applications/${application.id}`])
      expect((await service.call('DELETE', path, { project: body.id })).status).toBe(204);
    expect((await service.call('DELETE', place)).status).toBe(204);
    expect(await get(place)).toMatchObject({ status: 404, body: { code: 'project_not_found' } });
    expect(await get('/v2/me', own)).toMatchObject({ status: 401, body: { code: 'token_invalid' } });
    expect((await get('/v2/projects')).body.data.map(({ id }: { id: string }) => id)).not.toContain(body.id);
  });

  it('are listed with filters, within what the key reaches', async () => {
    const { body } = await post({ name: 'Only one of this name' });
    expect((await get('/v2/projects?name=Only%20one%20of%20this%20name')).body.data).toEqual([body]);
    expect((await get('/v2/projects?role=viewer')).body.data).toEqual([]);
    expect((await get('/v2/projects?role=owner')).body.data.length).toBeGreaterThan(1);
    const restricted = await service.mintKey({ project_ids: [body.id] });
    expect((await get('/v2/projects', restricted)).body.data).toEqual([body]);
    const own = await service.mintKey({ kind: 'project', project_id: body.id });
    expect((await get('/v2/projects', own)).body.data).toEqual([{ ...body, role: null }]);
  });

  it('are limited in number for each account, under a race too', async () => {
    const stranger = await service.newProject({ stranger: true });
    const [account] = await service.sql<{ account_id: string }>('select account_id from projects where id = $1', [
      stranger.id,
    ]);
    const fill = `insert into projects (id, account_id, name, default_region, created_at, updated_at)
      select 'prj_' || lpad(n::text, 26, '0'), $1, 'Filler', 'local', now(), now() from generate_series(1, 97) n`;
    await service.sql(fill, [account?.account_id]);
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, index) => post({ name: `Race ${index}` }, stranger.key)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 403, 403, 403, 403]);
    expect(answers.find(({ status }) => status === 403)?.body).toMatchObject({
      code: 'quota_exceeded',
      resource: 'projects',
      used: 100,
      limit: 100,
    });
  });
});

test('usage shows every quota, used and limit', async () => {
  const { id } = await service.newProject();
  for (const size_gb of [3, 4])
    await service.call('POST', `/v2/projects/${id}/volumes`, { body: { name: `usage-${size_gb}`, size_gb } });
  const { body } = await get(`/v2/projects/${id}/usage`);
  expect(body).toMatchObject({ project_id: id, measured_at: expect.stringMatching(/Z$/) });
  expect(body.quotas.map(({ resource }: { resource: string }) => resource)).toEqual(Object.keys(projectQuotas));
  expect(body.quotas).toEqual(
    expect.arrayContaining([
      { resource: 'volumes', used: 2, limit: 100 },
      { resource: 'volume_storage_gb', used: 7, limit: 2000 },
      { resource: 'applications', used: 0, limit: 100 },
    ]),
  );
});

describe('activity', () => {
  it('has one entry for each change, with names and no values', async () => {
    const { id } = await service.newProject();
    const place = `/v2/projects/${id}`;
    const volume = (await service.call('POST', `${place}/volumes`, { body: { name: 'logged', size_gb: 1 } })).body;
    await service.call('PATCH', `/v2/volumes/${volume.id}`, { project: id, body: { size_gb: 2 } });
    expect(
      (await service.call('PATCH', `/v2/volumes/${volume.id}`, { project: id, body: { size_gb: 1 } })).status,
    ).toBe(422);
    await service.call('PATCH', place, { body: { description: 'a secret text' } });
    await service.call('DELETE', `/v2/volumes/${volume.id}`, { project: id });
    const { body, text } = await get(`${place}/activity`);
    const me = (await get('/v2/me')).body;
    expect(
      body.data.map(
        ({ action, changed_fields, outcome }: { action: string; changed_fields: string[]; outcome: string }) => [
          action,
          changed_fields,
          outcome,
        ],
      ),
    ).toEqual([
      ['volume.deleted', [], 'succeeded'],
      ['project.updated', ['description'], 'succeeded'],
      ['volume.updated', ['size_gb'], 'succeeded'],
      ['volume.created', ['name', 'size_gb'], 'succeeded'],
    ]);
    expect(body.data[3]).toEqual({
      id: expect.stringMatching(/^act_/),
      project_id: id,
      action: 'volume.created',
      outcome: 'succeeded',
      actor: { type: 'user', id: me.user.id, name: me.user.name },
      key_id: me.token.id,
      resource: { type: 'volume', id: volume.id, name: 'logged' },
      changed_fields: ['name', 'size_gb'],
      revertible: false,
      revert_obstacle: 'created',
      reverts: null,
      reverted_by: null,
      request_id: expect.stringMatching(/^req_/),
      created_at: expect.stringMatching(/Z$/),
    });
    expect(text).not.toContain('a secret text');
  });

  it('is filtered by who, what and when', async () => {
    const { id } = await service.newProject();
    const place = `/v2/projects/${id}`;
    const own = await service.mintKey({ kind: 'project', project_id: id });
    const one = (await service.call('POST', `${place}/volumes`, { body: { name: 'one', size_gb: 1 } })).body;
    await pause();
    const between = new Date().toISOString();
    await pause();
    await service.call('POST', `${place}/applications`, { body: { name: 'two' }, key: own, project: null });
    const actions = async (query: string): Promise<string[]> =>
      (await get(`${place}/activity?${query}`)).body.data.map(({ action }: { action: string }) => action);
    const keyId = (await get('/v2/me', own)).body.token.id;
    expect(await actions('')).toEqual(['application.created', 'volume.created']);
    expect(await actions('action=volume.created')).toEqual(['volume.created']);
    expect(await actions(`actor_id=${keyId}`)).toEqual(['application.created']);
    expect(await actions('resource_type=volume')).toEqual(['volume.created']);
    expect(await actions(`resource_id=${one.id}`)).toEqual(['volume.created']);
    expect(await actions(`since=${between}`)).toEqual(['application.created']);
    expect(await actions(`until=${between}`)).toEqual(['volume.created']);
    expect(await actions('since=1900-01-01T00:00:00.000Z&until=9999-12-31T23:59:59.999Z')).toHaveLength(2);
    const [{ created_at, actor }] = (await get(`${place}/activity?limit=1`)).body.data;
    expect(actor).toMatchObject({ type: 'project_key', id: keyId });
    expect(await actions(`since=${created_at}`)).toEqual(['application.created']);
    expect(await actions(`until=${created_at}`)).toEqual(['volume.created']);
  });

  it('stays when the project is deleted', async () => {
    const { body } = await post({ name: 'Short' });
    await service.call('DELETE', `/v2/projects/${body.id}`);
    expect(await service.sql('select action from activity where project_id = $1 order by id', [body.id])).toEqual([
      { action: 'project.created' },
      { action: 'project.deleted' },
    ]);
  });
});
