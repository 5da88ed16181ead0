// Variables are taken back: set, changed, removed, by each key with its rights.
import { trimUndos } from '../../models/projects/activity/keep_undo';
import { startService, type TestService } from '../support/service';

let service: TestService;
let application: string;
let path: string;
beforeAll(async () => {
  service = await startService();
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
  path = `/v2/applications/${application}/env`;
});
afterAll(() => service.close());

const put = (key: string, value: string): ReturnType<TestService['call']> =>
  service.call('PUT', `${path}/${key}`, { body: { value } });
const valueOf = async (key: string): Promise<string | undefined> =>
  (await service.call('GET', `${path}?key=${key}`)).body.data[0]?.value;
// oxlint-disable-next-line typescript/no-explicit-any -- the OpenAPI check types it
const newest = async (): Promise<any> =>
  (await service.call('GET', `/v2/projects/${service.project}/activity?limit=1`)).body.data[0];
const revert = (id: string, key?: string): ReturnType<TestService['call']> =>
  service.call('POST', `/v2/activity/${id}/revert`, { ...(key && { key }) });

test('a changed variable has its value from before, and the revert can be reverted', async () => {
  await put('URL', 'first');
  await put('URL', 'second');
  const changed = await newest();
  expect(changed).toMatchObject({ action: 'environment_variable.set', revertible: true, revert_obstacle: null });
  const back = await revert(changed.id);
  expect(back.status).toBe(200);
  expect(await valueOf('URL')).toBe('first');
  const entry = await newest();
  expect(entry).toMatchObject({
    action: 'activity.reverted',
    reverts: changed.id,
    revertible: true,
    resource: { type: 'environment_variable', name: 'URL' },
  });
  expect(back.body).toMatchObject({
    id: changed.id,
    revertible: false,
    revert_obstacle: 'reverted',
    reverted_by: entry.id,
  });
  expect((await revert(entry.id)).status).toBe(200);
  expect(await valueOf('URL')).toBe('second');
  const again = await revert(changed.id);
  expect([again.status, again.body.code, again.body.reason]).toEqual([409, 'not_revertible', 'reverted']);
});

test('a removed variable comes back, a new one goes, and several at once too', async () => {
  await put('KEEP', 'a value');
  await service.call('DELETE', `${path}/KEEP`);
  const removed = await newest();
  expect((await revert(removed.id)).status).toBe(200);
  expect(await valueOf('KEEP')).toBe('a value');
  await put('NEW', 'x');
  const made = await newest();
  expect((await revert(made.id)).status).toBe(200);
  expect(await valueOf('NEW')).toBeUndefined();
  const mutation = `mutation ($id: ID!, $input: SetEnvironmentVariablesInput!) {
    setEnvironmentVariables(id: $id, input: $input) { key } }`;
  const variables = [
    { key: 'KEEP', value: 'another' },
    { key: 'ONE', value: '1' },
    { key: 'TWO', value: '2', available_at: 'build' },
  ];
  await service.graphql(mutation, { id: application, input: { variables } });
  const batch = await newest();
  expect((await revert(batch.id)).status).toBe(200);
  expect([await valueOf('KEEP'), await valueOf('ONE'), await valueOf('TWO')]).toEqual([
    'a value',
    undefined,
    undefined,
  ]);
  expect((await revert((await newest()).id)).status).toBe(200);
  expect([await valueOf('KEEP'), await valueOf('ONE'), await valueOf('TWO')]).toEqual(['another', '1', '2']);
});

test('variables that a program has emptied come back by one revert; a deleted application does not', async () => {
  const { body: other } = await service.call('POST', '/v2/applications', { body: { name: 'wiped' } });
  const at = `/v2/applications/${other.id}/env`;
  const mutation = `mutation ($id: ID!, $input: SetEnvironmentVariablesInput!) {
    setEnvironmentVariables(id: $id, input: $input) { key } }`;
  const keys = Array.from({ length: 40 }, (_, index) => `KEY_${index}`);
  const setAll = (value: string): Promise<unknown> =>
    service.graphql(mutation, { id: other.id, input: { variables: keys.map((key) => ({ key, value })) } });
  const values = async (): Promise<unknown[]> =>
    (await service.call('GET', at)).body.data.map(({ value }: { value: string }) => value);
  await setAll('good');
  await setAll('');
  const wiped = await newest();
  expect((await revert(wiped.id)).status).toBe(200);
  expect(new Set(await values())).toEqual(new Set(['good']));
  await setAll('');
  const last = await newest();
  await service.call('DELETE', `/v2/applications/${other.id}`);
  const { status, body } = await revert(last.id);
  expect([status, body.conflicts]).toEqual([412, [{ type: 'application', id: other.id, field: null }]]);
});

test('a value that no key opens any more can be overwritten, and is not kept', async () => {
  await put('LOST', 'one');
  await service.sql(`update environment_variables set value = 'v1.lost.AAAA' where key = 'LOST'`);
  expect((await put('LOST', 'two')).status).toBe(200);
  expect(await newest()).toMatchObject({ revertible: false, revert_obstacle: 'not_kept' });
  expect(await valueOf('LOST')).toBe('two');
});

test('a request that is sent again is answered once', async () => {
  await put('AGAIN', 'one');
  await put('AGAIN', 'two');
  const { id } = await newest();
  const headers = { 'Idempotency-Key': 'undo-1' };
  const once = await service.call('POST', `/v2/activity/${id}/revert`, { headers });
  const again = await service.call('POST', `/v2/activity/${id}/revert`, { headers });
  expect([once.status, again.status]).toEqual([200, 200]);
  expect(again.headers.get('idempotent-replayed')).toBe('true');
});

test('a variable that has changed since is left alone, and only who may read values sees both', async () => {
  await put('RACE', 'one');
  await put('RACE', 'two');
  const entry = await newest();
  await put('RACE', 'three');
  const { status, body } = await revert(entry.id);
  expect([status, body.code]).toEqual([412, 'precondition_failed']);
  expect(body.conflicts).toEqual([
    { type: 'environment_variable', id: expect.any(String), field: 'value', expected: 'two', current: 'three' },
  ]);
  const writer = await service.mintKey({ scopes: ['read', 'env:write'] });
  const blind = await revert(entry.id, writer);
  expect(blind.status).toBe(412);
  expect(blind.text).not.toMatch(/two|three/);
  expect(blind.body.conflicts).toEqual([{ type: 'environment_variable', id: expect.any(String), field: 'value' }]);
  expect(await valueOf('RACE')).toBe('three');
  // As it was left, it can be taken back after all.
  await put('RACE', 'two');
  expect((await revert(entry.id, writer)).status).toBe(200);
  expect(await valueOf('RACE')).toBe('one');
});

test('it needs the scope of the change, and a key that may destroy where something is deleted', async () => {
  await put('SCOPED', 'one');
  const made = await newest();
  await put('SCOPED', 'two');
  const changed = await newest();
  for (const scopes of [
    ['read', 'write'],
    ['read', 'write', 'deploy', 'env:read', 'logs:read'],
  ]) {
    const { status, body } = await revert(changed.id, await service.mintKey({ scopes }));
    expect([status, body.code, body.required_scope]).toEqual([403, 'insufficient_scope', 'env:write']);
  }
  const viewer = await revert(changed.id, await service.mintKey({ role: 'viewer' }));
  expect([viewer.status, viewer.body.code]).toEqual([403, 'role_not_permitted']);
  const careful = await service.mintKey({ may_destroy: false });
  expect((await revert(changed.id, careful)).status).toBe(200);
  const refused = await revert(made.id, careful);
  expect([refused.status, refused.body.code]).toEqual([403, 'destroy_not_allowed']);
  expect(await valueOf('SCOPED')).toBe('one');
  const only = await service.mintKey({ scopes: ['env:write'] });
  expect((await revert(made.id, only)).status).toBe(200);
  expect(await valueOf('SCOPED')).toBeUndefined();
});

test('of two who revert at once one does, and what another project did is not found', async () => {
  await put('TWICE', 'one');
  await put('TWICE', 'two');
  const entry = await newest();
  const answers = await Promise.all([1, 2, 3, 4].map(() => revert(entry.id)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
  expect(await valueOf('TWICE')).toBe('one');
  const stranger = await service.newProject({ stranger: true });
  await put('TWICE', 'three');
  const { id } = await newest();
  const answer = await service.call('POST', `/v2/activity/${id}/revert`, { key: stranger.key, project: stranger.id });
  expect(answer.status).toBe(404);
  const headerless = await service.graphql(
    `mutation { revertActivity(id: "${id}") { reverted_by } }`,
    {},
    { project: null },
  );
  expect(headerless.data.revertActivity.reverted_by).toMatch(/^act_/);
  expect((await revert('act_01h455vb4pex5vsknk084sn02q')).status).toBe(404);
  expect((await revert('nonsense')).status).toBe(404);
});

test('a dry run says what would be, and leaves all as it is', async () => {
  await put('DRY', 'one');
  await put('DRY', 'two');
  const entry = await newest();
  const dry = await service.call('POST', `/v2/activity/${entry.id}/revert`, { headers: { 'Dry-Run': 'true' } });
  expect([dry.status, dry.body.reverted_by]).toEqual([200, expect.stringMatching(/^act_/)]);
  expect(await valueOf('DRY')).toBe('two');
  expect((await newest()).id).toBe(entry.id);
  expect((await revert(entry.id)).status).toBe(200);
});

test('old values are sealed, and where they have gone, the revert says so', async () => {
  const secret = 'correct-horse-battery-staple';
  await put('SEALED', secret);
  await put('SEALED', 'other');
  const entry = await newest();
  const [row] = await service.sql<{ undo: string }>('select undo from activity_undos where id = $1', [entry.id]);
  expect(row?.undo).toMatch(/^v1\./);
  expect(row?.undo).not.toContain(Buffer.from(secret).toString('base64').slice(0, 20));
  await service.sql('delete from activity_undos where id = $1', [entry.id]);
  const { body } = await revert(entry.id);
  expect([body.code, body.reason]).toEqual(['not_revertible', 'expired']);
});

test('a project keeps old values within its bytes: many of one thing push out each other alone', async () => {
  await put('OLDEST', 'one');
  await put('OLDEST', 'two');
  const oldest = await newest();
  await service.sql(
    `insert into activity (id, project_id, account_id, action, actor, actor_id, resource_type, resource_id, created_at,
        revert_obstacle)
      select 'act_7' || lpad(n::text, 25, '0'), project_id, account_id, action, actor, actor_id, resource_type, 'flood',
        now(), null from activity, generate_series(1, 40) n where id = $1`,
    [oldest.id],
  );
  await service.sql(
    `insert into activity_undos (id, project_id, undo, created_at)
      select 'act_7' || lpad(n::text, 25, '0'), $1, repeat('x', 1048576), now() from generate_series(1, 40) n`,
    [service.project],
  );
  const { id: other } = await service.newProject();
  await service.sql(
    `insert into activity_undos (id, project_id, undo, created_at) values ('act_of_another', $1, 'x', now())`,
    [other],
  );
  expect(await trimUndos(service.platform.database)).toBe(1);
  const kept = await service.sql<{ id: string }>(
    'select id from activity_undos where project_id = $1 and octet_length(undo) > 1e6 order by id',
    [service.project],
  );
  // The newest of them. What a person wants back was changed once, before them.
  const ids = Array.from({ length: 31 }, (_, index) => `act_7${String(index + 10).padStart(25, '0')}`);
  expect(kept.map(({ id }) => id)).toEqual(ids);
  expect(await service.sql('select 1 from activity_undos where project_id = $1', [other])).toHaveLength(1);
  const [flood] = await service.sql(`select revert_obstacle from activity where id like 'act_7%01'`);
  expect(flood.revert_obstacle).toBe('expired');
  expect((await revert(oldest.id)).status).toBe(200);
  expect(await trimUndos(service.platform.database)).toBe(0);
});
