import { scopes as allScopes } from '../../core/accounts/scopes';
import { startService, type TestService } from '../support/service';
import { newBrowser, type Browser } from '../support/identity/browser';

let service: TestService;
let owner: Awaited<ReturnType<typeof newBrowser>>;
let developer: Awaited<ReturnType<typeof newBrowser>>;
let viewer: Awaited<ReturnType<typeof newBrowser>>;
let stranger: Awaited<ReturnType<typeof newBrowser>>;
beforeAll(async () => {
  service = await startService();
  owner = await newBrowser(service, 'owner2@example.com', 'owner');
  developer = await newBrowser(service, 'developer@example.com', 'developer');
  viewer = await newBrowser(service, 'viewer@example.com', 'viewer');
  stranger = await newBrowser(service, 'stranger@example.com');
});
afterAll(() => service.close());

const CREATE = `mutation ($input: CreatePersonalKeyInput!) {
  createPersonalKey(input: $input) { key { id kind name prefix scopes project_ids project_id created_by expires_at
    last_used_at } token } }`;
const REVOKE = 'mutation ($id: ID!) { revokePersonalKey(id: $id) }';
const CREATE_PROJECT = `mutation ($id: ID!, $input: CreateProjectKeyInput!) {
  createProjectKey(project_id: $id, input: $input) { key { id kind project_id scopes created_by prefix } token } }`;
const REVOKE_PROJECT = 'mutation ($project: ID!, $id: ID!) { revokeProjectKey(project_id: $project, id: $id) }';
const LIST = '{ listPersonalKeys { data { id name last_used_at } next_cursor } }';
const LIST_PROJECT = 'query ($id: ID!) { listProjectKeys(project_id: $id) { data { id } next_cursor } }';

const input = (more: object = {}): { input: object } => ({ input: { name: 'CI', scopes: ['read', 'write'], ...more } });
const create = async (
  one: Browser,
  more: object = {},
): Promise<{ key: { id: string; prefix: string }; token: string }> =>
  (await one.data(CREATE, input(more))).createPersonalKey;
const volumes = (key: string): Promise<number> =>
  service.call('GET', '/v2/volumes', { key }).then(({ status }) => status);

test('a personal key works from its creation to its revocation, to the moment', async () => {
  const { createPersonalKey } = await owner.data(CREATE, input());
  const { key, token } = createPersonalKey;
  expect(key).toEqual({
    id: expect.stringMatching(/^key_/),
    kind: 'personal',
    name: 'CI',
    prefix: token.slice(0, 12),
    scopes: ['read', 'write'],
    project_ids: null,
    project_id: null,
    created_by: owner.user.id,
    expires_at: null,
    last_used_at: null,
  });
  expect(token).toMatch(/^svc_[0-9A-Za-z]{39}$/);
  expect(await volumes(token)).toBe(200);
  const { body } = await service.call('GET', '/v2/me', { key: token });
  expect(body).toMatchObject({ token: { id: key.id, scopes: ['read', 'write'] }, user: { id: owner.user.id } });
  expect((await owner.data(LIST)).listPersonalKeys.data.map(({ id }: { id: string }) => id)).toContain(key.id);
  await owner.data(REVOKE, { id: key.id });
  const refused = await service.call('GET', '/v2/volumes', { key: token });
  expect([refused.status, refused.body.code]).toEqual([401, 'token_invalid']);
  expect((await owner.data(LIST)).listPersonalKeys.data.map(({ id }: { id: string }) => id)).not.toContain(key.id);
  expect((await owner.refused(REVOKE, { id: key.id })).code).toBe('not_found');
});

test('the scopes of a key are what it may do', async () => {
  const { token } = await create(developer, { scopes: ['read'] });
  expect(await volumes(token)).toBe(200);
  const { status, body } = await service.call('POST', '/v2/volumes', {
    key: token,
    body: { name: 'scoped', size_gb: 1 },
  });
  expect([status, body.code]).toEqual([403, 'insufficient_scope']);
});

test('a restricted key reaches its projects only, and only projects of the person can be named', async () => {
  const other = await service.newProject();
  await service.sql(`insert into members (project_id, user_id, role) values ($1, $2, 'developer')`, [
    other.id,
    developer.user.id,
  ]);
  const { token } = await create(developer, { project_ids: [other.id] });
  expect((await service.call('GET', '/v2/volumes', { key: token, project: other.id })).status).toBe(200);
  const refused = await service.call('GET', '/v2/volumes', { key: token });
  expect([refused.status, refused.body.code]).toEqual([403, 'project_not_allowed']);
  const foreign = await service.newProject({ stranger: true });
  const wrong = await developer.refused(CREATE, input({ project_ids: [other.id, foreign.id] }));
  expect(wrong).toMatchObject({ code: 'reference_not_found', extensions: { field: 'project_ids.1' } });
});

test('a key without restriction reaches what its person reaches, with the role there', async () => {
  const { token } = await create(viewer);
  expect(await volumes(token)).toBe(200);
  const { status, body } = await service.call('POST', '/v2/volumes', {
    key: token,
    body: { name: 'viewed', size_gb: 1 },
  });
  expect([status, body.code]).toEqual([403, 'role_not_permitted']);
  const lonely = await create(stranger);
  expect(await volumes(lonely.token)).toBe(404);
});

test('a key ends at its date', async () => {
  const expires_at = new Date(Date.now() + 1_500).toISOString();
  const { token } = await create(owner, { expires_at });
  expect(await volumes(token)).toBe(200);
  await new Promise((resolve) => setTimeout(resolve, 1_600));
  const refused = await service.call('GET', '/v2/volumes', { key: token });
  expect([refused.status, refused.body.code]).toEqual([401, 'token_expired']);
});

test.each([
  [{ scopes: [] }, 'scopes', 'too_few'],
  [{ scopes: ['read', 'read'] }, 'scopes', 'duplicate'],
  [{ scopes: ['read', 'root'] }, 'scopes.1', 'not_in_enum'],
  [{ name: ' ' }, 'name', 'too_short'],
  [{ project_ids: [] }, 'project_ids', 'too_few'],
  [{ expires_at: '2020-01-01T00:00:00Z' }, 'expires_at', 'too_small'],
])('%j is refused', async (more, field, code) => {
  const { code: problem, extensions } = await owner.refused(CREATE, input(more));
  expect(problem).toBe('validation_failed');
  expect(extensions.errors).toMatchObject([{ field, code }]);
});

test('every scope can be chosen', async () => {
  const { createPersonalKey } = await owner.data(CREATE, input({ scopes: Object.keys(allScopes) }));
  expect(createPersonalKey.key.scopes).toEqual(Object.keys(allScopes));
});

test('nobody revokes the key of another', async () => {
  const { key, token } = await create(owner);
  expect((await developer.refused(REVOKE, { id: key.id })).code).toBe('not_found');
  expect((await developer.refused(REVOKE_PROJECT, { project: service.project, id: key.id })).code).toBe('not_found');
  expect(await volumes(token)).toBe(200);
});

test('owners create project keys, developers revoke them, viewers see them, strangers see no project', async () => {
  const { createProjectKey } = await owner.data(CREATE_PROJECT, {
    id: service.project,
    input: { name: 'Deploys' },
  });
  const { key, token } = createProjectKey;
  expect(key).toMatchObject({
    kind: 'project',
    project_id: service.project,
    scopes: null,
    created_by: owner.user.id,
  });
  expect(token).toMatch(/^svc_proj_[0-9A-Za-z]{39}$/);
  expect((await service.call('GET', '/v2/volumes', { key: token, project: null })).status).toBe(200);
  expect(
    (await viewer.data(LIST_PROJECT, { id: service.project })).listProjectKeys.data.map(({ id }: { id: string }) => id),
  ).toContain(key.id);
  const refusals: [Browser, string][] = [
    [viewer, 'role_not_permitted'],
    [stranger, 'project_not_found'],
  ];
  for (const [one, code] of refusals) {
    expect((await one.refused(CREATE_PROJECT, { id: service.project, input: { name: 'No' } })).code).toBe(code);
    expect((await one.refused(REVOKE_PROJECT, { project: service.project, id: key.id })).code).toBe(code);
  }
  expect((await stranger.refused(LIST_PROJECT, { id: service.project })).code).toBe('project_not_found');
  // A project key may also change the project itself, which a developer may not.
  expect(await developer.refused(CREATE_PROJECT, { id: service.project, input: { name: 'No' } })).toMatchObject({
    code: 'role_not_permitted',
    extensions: { required_role: 'owner' },
  });
  await developer.data(REVOKE_PROJECT, { project: service.project, id: key.id });
  expect((await service.call('GET', '/v2/volumes', { key: token, project: null })).status).toBe(401);
});

test('a project key survives the departure of its maker', async () => {
  const leaver = await newBrowser(service, 'leaver@example.com', 'owner');
  const { token } = (await leaver.data(CREATE_PROJECT, { id: service.project, input: { name: 'Stays' } }))
    .createProjectKey;
  const personal = await create(leaver);
  await owner.data('mutation ($project: ID!, $user: ID!) { removeMember(project_id: $project, user_id: $user) }', {
    project: service.project,
    user: leaver.user.id,
  });
  expect((await service.call('GET', '/v2/volumes', { key: token, project: null })).status).toBe(200);
  expect(await volumes(personal.token)).toBe(404);
});

test('the number of keys is limited', async () => {
  const full = await newBrowser(service, 'full@example.com');
  await service.sql(
    `insert into api_keys (id, kind, name, prefix, hash, user_id, scopes)
      select 'key_' || n, 'personal', 'x', 'x', 'hash ' || n, $1, '{read}' from generate_series(1, 99) n`,
    [full.user.id],
  );
  const { key } = await create(full);
  expect(await full.refused(CREATE, input())).toMatchObject({
    code: 'quota_exceeded',
    extensions: { resource: 'personal_keys', used: 100, limit: 100 },
  });
  await full.data(REVOKE, { id: key.id });
  const two = await Promise.all([full.run(CREATE, input()), full.run(CREATE, input())]);
  expect(two.filter(({ errors }) => !errors)).toHaveLength(1);
});

test('the value of a key is stored nowhere, and its life is in the activity', async () => {
  const { key, token } = await create(owner);
  await owner.data(REVOKE, { id: key.id });
  const stored = JSON.stringify([
    await service.sql('select * from api_keys'),
    await service.sql('select * from activity'),
  ]);
  expect(stored).not.toContain(token);
  expect(stored).not.toContain(token.slice(13));
  const entries = await service.sql('select action, changed_fields from activity where resource_id = $1 order by id', [
    key.id,
  ]);
  expect(entries).toEqual([
    { action: 'api_key.created', changed_fields: ['name', 'scopes'] },
    { action: 'api_key.revoked', changed_fields: [] },
  ]);
});
