// Volumes from request to directory and back, with the worker running: the states of docs/contract/resources.md §10.1.
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startService, type Answer, type TestService } from '../support/service';
import { until } from '../support/runner/workshop';

let service: TestService;
let application: string;

beforeAll(async () => {
  service = await startService({ worker: true });
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
});

afterAll(() => service.close());

let serial = 0;
const directoryOf = (id: string): string => path.join(service.dataDir, 'volumes', id);
const patch = (id: string, body: object): Promise<Answer> => service.call('PATCH', `/v2/volumes/${id}`, { body });
const settled = (id: string): Promise<Answer['body']> => service.settle(`/v2/volumes/${id}`);

async function make(body: object = {}): Promise<string> {
  const made = await service.call('POST', '/v2/volumes', {
    body: { name: `volume-${(serial += 1)}`, size_gb: 1, ...body },
  });
  expect([made.status, made.body.status]).toEqual([201, 'provisioning']);
  return made.body.id;
}

test('provisioning becomes available, with a directory and a soft limit', async () => {
  const id = await make();
  expect(await settled(id)).toMatchObject({
    status: 'available',
    status_reason: null,
    enforcement: 'soft',
    used_bytes: expect.any(Number),
    over_quota: false,
  });
  expect(existsSync(directoryOf(id))).toBe(true);
});

test('provisioning becomes in_use where an application is named', async () => {
  const id = await make({ application_id: application, mount_path: '/uploads' });
  expect(await settled(id)).toMatchObject({ status: 'in_use', application_id: application, mount_path: '/uploads' });
  expect((await patch(id, { application_id: null })).body.status).toBe('available');
  expect((await patch(id, { application_id: application, mount_path: '/uploads' })).body.status).toBe('in_use');
});

test('resizing comes back to what it was', async () => {
  const id = await make();
  await settled(id);
  expect((await patch(id, { size_gb: 2 })).body).toMatchObject({ status: 'resizing', size_gb: 2 });
  expect(await settled(id)).toMatchObject({ status: 'available', size_gb: 2 });
  await patch(id, { application_id: application, mount_path: '/resized' });
  expect((await patch(id, { size_gb: 3 })).body.status).toBe('resizing');
  expect(await settled(id)).toMatchObject({ status: 'in_use', size_gb: 3 });
});

test('a size sent while provisioning is the size it is made with', async () => {
  const id = await make();
  expect((await patch(id, { size_gb: 7 })).status).toBe(200);
  expect(await settled(id)).toMatchObject({ status: 'available', size_gb: 7 });
});

test('attached while it is made or resized, it settles as in use', async () => {
  const id = await make();
  expect((await patch(id, { application_id: application, mount_path: '/early' })).status).toBe(200);
  expect((await settled(id)).status).toBe('in_use');
  const grown = await patch(id, { size_gb: 2, application_id: null });
  expect(grown.body).toMatchObject({ status: 'resizing', application_id: null });
  expect((await settled(id)).status).toBe('available');
});

test('its application deleted, it is available again and keeps its data', async () => {
  const doomed = (await service.call('POST', '/v2/applications', { body: { name: 'doomed' } })).body.id;
  const id = await make({ application_id: doomed, mount_path: '/data' });
  await settled(id);
  const file = path.join(directoryOf(id), 'data', 'kept');
  writeFileSync(file, 'data');
  expect((await service.call('DELETE', `/v2/applications/${doomed}`)).status).toBe(204);
  expect((await service.call('GET', `/v2/volumes/${id}`)).body).toMatchObject({
    status: 'available',
    application_id: null,
    mount_path: null,
  });
  expect(existsSync(file)).toBe(true);
});

test('deleted in any state, its data are gone', async () => {
  const [young, old] = [await make(), await make()];
  await settled(old);
  await patch(old, { size_gb: 2 });
  for (const id of [young, old]) {
    expect((await service.call('DELETE', `/v2/volumes/${id}`)).status).toBe(204);
    expect((await service.call('GET', `/v2/volumes/${id}`)).status).toBe(404);
  }
  for (const id of [young, old])
    await until(
      `${id} is purged`,
      async () =>
        !existsSync(directoryOf(id)) && (await service.sql('select 1 from volumes where id = $1', [id])).length === 0,
    );
});

test('what the platform did stands in the activity log', async () => {
  const id = await make();
  await settled(id);
  await service.call('DELETE', `/v2/volumes/${id}`);
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${id}`);
  const entries = body.data.map(
    ({ action, actor }: { action: string; actor: { type: string } }) => `${action} by ${actor.type}`,
  );
  expect(entries).toEqual(expect.arrayContaining(['volume.created by user', 'volume.deleted by user']));
});
