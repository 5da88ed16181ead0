// Activity beyond the calls that succeed: what the platform did by itself, and calls that were refused.
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService({ worker: true });
});
afterAll(() => service.close());

const entries = async (query: string): Promise<Record<string, unknown>[]> =>
  (await service.call('GET', `/v2/projects/${service.project}/activity?${query}`)).body.data;

test('a change that the platform made is an entry of its own, in the name of the platform', async () => {
  const { body } = await service.call('POST', '/v2/volumes', { body: { name: 'uploads', size_gb: 1 } });
  await service.settle(`/v2/volumes/${body.id}`);
  const [made, asked] = await entries(`resource_id=${body.id}`);
  expect(made).toMatchObject({
    action: 'volume.available',
    outcome: 'succeeded',
    actor: { type: 'system', id: null },
    key_id: null,
    request_id: null,
    resource: { type: 'volume', id: body.id, name: 'uploads' },
  });
  expect(asked).toMatchObject({
    action: 'volume.created',
    actor: { type: 'user' },
    changed_fields: ['name', 'size_gb'],
  });
});

test('refused calls are summed up per key and code, when the minute is over or the process ends', async () => {
  const key = await service.mintKey({ scopes: ['read'] });
  for (let turn = 0; turn < 3; turn += 1)
    expect((await service.call('POST', '/v2/volumes', { key, body: { name: 'no', size_gb: 1 } })).status).toBe(403);
  await service.platform.refusals.close();
  const found = await service.sql<{ outcome: string; resource_name: string; key_id: string }>(
    `select outcome, resource_name, key_id from activity where action = 'request.refused'`,
  );
  expect(found).toEqual([
    { outcome: 'refused', resource_name: 'insufficient_scope (3)', key_id: expect.stringMatching(/^key_/) },
  ]);
});

test('a refused call stands in the activity of the project that it was meant for, on both faces', async () => {
  const key = await service.mintKey({ role: 'viewer' });
  expect((await service.call('POST', '/v2/volumes', { key, body: { name: 'no', size_gb: 1 } })).body.code).toBe(
    'role_not_permitted',
  );
  const { errors } = await service.graphql(
    'mutation { createVolume(input: {name: "no-no", size_gb: 1}) { id } }',
    {},
    { key },
  );
  expect(errors?.[0].extensions.code).toBe('role_not_permitted');
  await service.platform.refusals.close();
  const [entry] = await entries('action=request.refused');
  expect(entry).toMatchObject({
    project_id: service.project,
    outcome: 'refused',
    resource: { type: 'api_key', name: 'role_not_permitted (2)' },
  });
});

test('a change is reverted over GraphQL too, and the answer says by which entry', async () => {
  const { body: volume } = await service.call('POST', '/v2/volumes', { body: { name: 'before', size_gb: 1 } });
  await service.call('PATCH', `/v2/volumes/${volume.id}`, { body: { name: 'after' } });
  const [changed] = await entries(`resource_id=${volume.id}&action=volume.updated`);
  const mutation = 'mutation ($id: ID!) { revertActivity(id: $id) { revertible revert_obstacle reverted_by } }';
  const { data } = await service.graphql(mutation, { id: changed?.id });
  const [revert] = await entries(`resource_id=${volume.id}&action=activity.reverted`);
  expect(data.revertActivity).toEqual({ revertible: false, revert_obstacle: 'reverted', reverted_by: revert?.id });
  expect((await service.call('GET', `/v2/volumes/${volume.id}`)).body.name).toBe('before');
});
