// Who a key is, and the catalog of error codes (docs/contract/resources.md §1).
import { errors } from '../../core/errors';
import { scopes } from '../../core/accounts/scopes';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe('getMe', () => {
  it('describes a personal key and its person', async () => {
    const { status, body } = await service.call('GET', '/v2/me', { project: null });
    expect(status).toBe(200);
    expect(body).toEqual({
      token: {
        id: expect.stringMatching(/^key_/),
        kind: 'personal',
        name: expect.any(String),
        prefix: service.key.slice(0, 12),
        scopes: Object.keys(scopes),
        project_ids: null,
        may_destroy: true,
        paused_at: null,
        created_at: time,
        expires_at: null,
        last_used_at: body.token.last_used_at,
      },
      user: { id: expect.stringMatching(/^usr_/), name: expect.any(String), email: 'owner@example.com' },
      project: null,
    });
  });

  it('describes a project key and its project', async () => {
    const { body } = await service.call('GET', '/v2/me', {
      key: await service.mintKey({ kind: 'project' }),
      project: null,
    });
    expect(body).toMatchObject({
      token: { kind: 'project', scopes: null, project_ids: null, prefix: expect.stringMatching(/^svc_proj_/) },
      user: null,
      project: { id: service.project },
    });
  });

  it('answers whatever the scopes are, and shows restriction and end', async () => {
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    const key = await service.mintKey({ scopes: [], project_ids: [service.project], expires_at });
    const { status, body } = await service.call('GET', '/v2/me', { key });
    expect([status, body.token]).toMatchObject([200, { scopes: [], project_ids: [service.project], expires_at }]);
  });

  it('shows the last use within some seconds, and never the value', async () => {
    const key = await service.mintKey();
    expect((await service.call('GET', '/v2/me', { key })).body.token.last_used_at).toBeNull();
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    const { body, text } = await service.call('GET', '/v2/me', { key });
    expect(body.token.last_used_at).toEqual(time);
    expect(text).not.toContain(key);
  });

  it('a key stops at its end, also while its identity is cached', async () => {
    const key = await service.mintKey({ expires_at: new Date(Date.now() + 400).toISOString() });
    expect((await service.call('GET', '/v2/me', { key })).status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await service.call('GET', '/v2/me', { key })).toMatchObject({
      status: 401,
      body: { code: 'token_expired' },
    });
  });
});

describe('listMyProjects', () => {
  it('shows the projects of a person with the role in each', async () => {
    const other = await service.newProject();
    const { body } = await service.call('GET', '/v2/me/projects', { project: null });
    expect(body).toEqual({
      data: [
        { id: other.id, name: 'Other project', role: 'owner', created_at: time },
        { id: service.project, name: expect.any(String), role: 'owner', created_at: time },
      ],
      next_cursor: null,
    });
    const viewer = await service.mintKey({ role: 'viewer' });
    expect((await service.call('GET', '/v2/me/projects', { key: viewer })).body.data).toMatchObject([
      { id: service.project, role: 'viewer' },
    ]);
  });

  it('shows a restricted key its projects only, and a project key its one', async () => {
    const restricted = await service.mintKey({ project_ids: [service.project] });
    expect((await service.call('GET', '/v2/me/projects', { key: restricted })).body.data).toMatchObject([
      { id: service.project, role: 'owner' },
    ]);
    const own = await service.mintKey({ kind: 'project' });
    expect((await service.call('GET', '/v2/me/projects', { key: own, project: null })).body.data).toEqual([
      { id: service.project, name: expect.any(String), role: null, created_at: time },
    ]);
  });
});

describe('error codes', () => {
  const get = (place: string): Promise<Answer> => service.call('GET', place, { key: null, project: null });

  it('are public, complete and sorted by code', async () => {
    const { body } = await get('/v2/errors');
    expect(body.next_cursor).toBeNull();
    expect(body.data.map(({ code }: { code: string }) => code)).toEqual(Object.keys(errors).sort());
    for (const entry of body.data) {
      const { meaning, remedy, ...rest } = errors[entry.code as keyof typeof errors];
      expect(entry).toEqual({ code: entry.code, ...rest, description: `${meaning} ${remedy}` });
    }
  });

  it('are filtered and sorted by status', async () => {
    const { body } = await get('/v2/errors?status=401');
    expect(body.data.map(({ code }: { code: string }) => code)).toEqual([
      'credentials_invalid',
      'session_required',
      'token_expired',
      'token_invalid',
      'token_missing',
      'two_factor_required',
    ]);
    const statuses = (await get('/v2/errors?sort=-status')).body.data.map(({ status }: { status: number }) => status);
    expect(statuses).toEqual([...statuses].sort((a, b) => b - a));
  });

  it('are found one by one', async () => {
    for (const code of Object.keys(errors))
      expect(await get(`/v2/errors/${code}`)).toMatchObject({ status: 200, body: { code } });
    expect(await get('/v2/errors/no_such_code')).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect(await get('/v2/errors/toString')).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });

  it('are public over GraphQL too', async () => {
    const { data } = await service.graphql(
      '{ getError(code: "rate_limited") { status retryable } listErrors(limit: 1) { data { code } } }',
      {},
      { key: null, project: null },
    );
    expect(data).toMatchObject({
      getError: { status: 429, retryable: true },
      listErrors: { data: [{ code: expect.any(String) }] },
    });
  });
});
