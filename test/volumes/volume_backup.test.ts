/** @tier heavy @quarter 2 @covers models/volumes jobs/volumes drivers/volume_backup drivers/volume */
// Backups of volumes from request to archive and back, with the worker running.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startService, type Answer, type TestService } from '../support/service';
import { until } from '../support/runner/workshop';
import { listing, makeOddFiles } from '../support/volumes/odd_tree';

let service: TestService;

beforeAll(async () => {
  service = await startService({ worker: true, settings: { RETENTION_OF_DELETED_DAYS: '7' } });
});
afterAll(() => service.close());

let serial = 0;
const filesOf = (id: string): string => path.join(service.dataDir, 'volumes', id, 'data');
const call = (method: string, place: string, body?: object): Promise<Answer> =>
  service.call(method, `/v2/volumes/${place}`, body ? { body } : {});

async function volume(body: object = {}): Promise<string> {
  const made = await service.call('POST', '/v2/volumes', {
    body: { name: `volume-${(serial += 1)}`, size_gb: 1, ...body },
  });
  expect(made.status).toBe(201);
  await service.settle(`/v2/volumes/${made.body.id}`);
  return made.body.id;
}

async function backup(id: string, body: object = {}): Promise<Answer['body']> {
  const made = await call('POST', `${id}/backups`, body);
  expect([made.status, made.body.status]).toEqual([201, 'pending']);
  return ended(id, made.body.id);
}

async function ended(id: string, backupId: string): Promise<Answer['body']> {
  let found: Answer['body'];
  await until('the backup has ended', async () => {
    found = (await call('GET', `${id}/backups/${backupId}`)).body;
    return found.status === 'completed' || found.status === 'failed';
  });
  return found;
}

test('a backup has the files of a volume, and gives them to another one and back', async () => {
  const id = await volume();
  makeOddFiles(filesOf(id));
  const before = listing(filesOf(id));
  const made = await backup(id, { note: 'Before the migration' });
  expect(made).toMatchObject({
    ...{ volume_id: id, type: 'manual', status: 'completed', status_reason: null, consistency: 'snapshot' },
    ...{ note: 'Before the migration', expires_at: null, volume_size_gb: 1, size_bytes: expect.any(Number) },
  });
  expect((await call('GET', `${id}/backups`)).body.data).toEqual([made]);

  const copy = await call('POST', `${id}/backups/${made.id}/restore`, { name: 'copy' });
  expect([copy.status, copy.body.status, copy.body.size_gb]).toEqual([202, 'provisioning', 1]);
  expect(await service.settle(`/v2/volumes/${copy.body.id}`)).toMatchObject({ status: 'available' });
  expect(listing(filesOf(copy.body.id))).toEqual(before);

  execFileSync('find', [filesOf(id), '-mindepth', '1', '-delete']);
  writeFileSync(path.join(filesOf(id), 'later'), 'later');
  const restored = await call('POST', `${id}/backups/${made.id}/restore`, { in_place: true });
  expect([restored.status, restored.body.status]).toEqual([202, 'restoring']);
  expect(await service.settle(`/v2/volumes/${id}`)).toMatchObject({ status: 'available', status_reason: null });
  expect(listing(filesOf(id))).toEqual(before);
  const left = readdirSync(path.dirname(filesOf(id))).filter((name) => name.startsWith('data.'));
  expect(left).toEqual([]);
});

test('the archive is encrypted on the disk, and a tar archive when it is downloaded, also by halves', async () => {
  const id = await volume();
  writeFileSync(path.join(filesOf(id), 'secret.txt'), 'planted secret\n'.repeat(100_000));
  const { id: backupId } = await backup(id);
  const directory = path.join(service.dataDir, 'volume-backups', id, backupId);
  const part = readFileSync(path.join(directory, 'part-00001.age'));
  expect([part.subarray(0, 21).toString(), part.includes('planted secret')]).toEqual(['age-encryption.org/v1', false]);
  const { body } = await call('GET', `${id}/backups/${backupId}/download`);
  const whole = await fetch(body.url);
  expect([whole.status, whole.headers.get('content-type')]).toEqual([200, 'application/gzip']);
  const content = Buffer.from(await whole.arrayBuffer());
  expect(content.length).toBe(Number(whole.headers.get('content-length')));
  const target = path.join(service.dataDir, 'unpacked');
  mkdirSync(target);
  execFileSync('tar', ['-xzf', '-', '-C', target], { input: content });
  expect(readFileSync(path.join(target, 'secret.txt'), 'utf8')).toMatch(/^planted secret/);
  const rest = await fetch(body.url, { headers: { Range: 'bytes=100-' } });
  expect([rest.status, rest.headers.get('content-range')]).toEqual([
    206,
    `bytes 100-${content.length - 1}/${content.length}`,
  ]);
  expect(Buffer.from(await rest.arrayBuffer()).equals(content.subarray(100))).toBe(true);
  const altered = await fetch(body.url.replace(/signature=./, 'signature=_'));
  expect([altered.status, (await altered.json()).code]).toEqual([404, 'not_found']);
});

test('a volume is restored in place only while its application is stopped', async () => {
  const application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
  const id = await volume({ application_id: application, mount_path: '/data' });
  const { id: backupId, consistency } = await backup(id);
  // It is attached, and whoever it is attached to may write at any time.
  expect(consistency).toBe('files');
  await service.sql(`update applications set status = 'running' where id = $1`, [application]);
  const restore = (): Promise<Answer> => call('POST', `${id}/backups/${backupId}/restore`, { in_place: true });
  expect(await restore()).toMatchObject({
    status: 409,
    body: { code: 'resource_in_use', dependents: [{ type: 'application', id: application }] },
  });
  await service.sql(`update applications set status = 'stopped' where id = $1`, [application]);
  expect((await restore()).status).toBe(202);
  expect(await service.settle(`/v2/volumes/${id}`)).toMatchObject({ status: 'in_use' });
});

test('what cannot be done is refused', async () => {
  const id = await volume();
  const made = await backup(id);
  const restore = (body: object): Promise<Answer> => call('POST', `${id}/backups/${made.id}/restore`, body);
  for (const body of [{}, { in_place: false }, { name: 'twice', in_place: true }, { size_gb: 2, in_place: true }])
    expect(await restore(body)).toMatchObject({ status: 422, body: { code: 'validation_failed' } });
  await service.sql('update volume_backups set content_bytes = 3 * 1024^3 where id = $1', [made.id]);
  expect(await restore({ name: 'small', size_gb: 2 })).toMatchObject({
    status: 422,
    body: { code: 'volume_size_out_of_range', min_gb: 3 },
  });
  const other = await volume();
  expect((await call('GET', `${other}/backups/${made.id}`)).status).toBe(404);
  expect((await call('POST', `${other}/backups/${made.id}/restore`, { name: 'stolen' })).status).toBe(404);
  await service.sql(`update volume_backups set status = 'running', next_at = null where id = $1`, [made.id]);
  expect(await restore({ name: 'early' })).toMatchObject({ status: 409, body: { code: 'backup_not_ready' } });
  expect(await call('POST', `${id}/backups`, {})).toMatchObject({ status: 409, body: { code: 'resource_busy' } });
  expect(await call('DELETE', `${id}/backups/${made.id}`)).toMatchObject({ status: 409 });
  await service.sql(`update volumes set driver = 'kubernetes' where id = $1`, [other]);
  expect(await call('POST', `${other}/backups`, {})).toMatchObject({
    status: 409,
    body: { code: 'engine_unavailable', detail: expect.stringContaining('in a cluster') },
  });
});

test('a deleted backup is in the bin, and its files go with a purge', async () => {
  const id = await volume({ deletion_protection: true });
  const made = await backup(id);
  const directory = path.join(service.dataDir, 'volume-backups', id, made.id);
  expect(await call('DELETE', `${id}/backups/${made.id}`)).toMatchObject({
    status: 409,
    body: { code: 'deletion_protected' },
  });
  await service.call('PATCH', `/v2/volumes/${id}`, { body: { deletion_protection: false } });
  expect((await call('DELETE', `${id}/backups/${made.id}`)).status).toBe(204);
  const bin = async (): Promise<Answer['body'][]> =>
    (await service.call('GET', `/v2/projects/${service.project}/bin`)).body.data;
  const entry = (await bin()).find(({ resource }) => resource.id === made.id);
  expect([entry?.resource.type, existsSync(directory)]).toEqual(['volume_backup', true]);
  expect((await service.call('POST', `/v2/bin/${entry?.id}/restore`, { body: {} })).status).toBe(200);
  expect((await call('GET', `${id}/backups/${made.id}`)).body.status).toBe('completed');
  expect((await call('DELETE', id)).status).toBe(204);
  const deleted = (await bin()).find(({ resource }) => resource.id === id);
  await service.sql(`update deleted_resources set purge_from = now() - interval '1 hour'`);
  expect((await service.call('DELETE', `/v2/bin/${deleted?.id}`)).status).toBe(204);
  await until('the files are gone', async () => !existsSync(directory) && !existsSync(filesOf(id)));
  await until(
    'the row is gone',
    async () => (await service.sql('select 1 from volumes where id = $1', [id])).length === 0,
  );
});

test('the schedule takes backups, and its retention takes them away', async () => {
  const id = await volume({ backup_schedule: '0 3 * * *', backup_retention_days: 2 });
  const [due] = await service.sql<{ next: Date }>('select next_backup_at as next from volumes where id = $1', [id]);
  expect(new Date(due?.next as Date).getUTCHours()).toBe(3);
  expect(
    (await service.call('PATCH', `/v2/volumes/${id}`, { body: { backup_schedule: 'at dawn' } })).body,
  ).toMatchObject({ code: 'validation_failed' });
  await service.sql(`update volumes set next_backup_at = now() - interval '3 days' where id = $1`, [id]);
  await service.sql(`update schedules set next_at = now() where id = 'schedule_volume_backups'`);
  const list = async (): Promise<Answer['body'][]> => (await call('GET', `${id}/backups`)).body.data;
  await until('one is taken', async () => (await list())[0]?.status === 'completed');
  const [taken, ...others] = await list();
  expect([taken?.type, others]).toEqual(['scheduled', []]);
  const directory = path.join(service.dataDir, 'volume-backups', id, taken?.id);
  expect(existsSync(directory)).toBe(true);
  const days = (Date.parse(taken?.expires_at) - Date.parse(taken?.created_at)) / 86_400_000;
  expect(days).toBe(2);
  await service.sql(`update volume_backups set expires_at = now() where volume_id = $1`, [id]);
  await service.sql(`update schedules set next_at = now() where id = 'expire_volume_backups'`);
  await until('it has expired', async () => (await list()).length === 0 && !existsSync(directory));
});

test('a spoiled backup changes nothing, and says so', async () => {
  const id = await volume();
  writeFileSync(path.join(filesOf(id), 'kept'), 'x'.repeat(300_000));
  const { id: backupId } = await backup(id);
  const part = path.join(service.dataDir, 'volume-backups', id, backupId, 'part-00001.age');
  const content = readFileSync(part);
  content[content.length - 40]! ^= 1;
  writeFileSync(part, content);
  writeFileSync(path.join(filesOf(id), 'later'), 'later');
  await call('POST', `${id}/backups/${backupId}/restore`, { in_place: true });
  expect(await service.settle(`/v2/volumes/${id}`)).toMatchObject({
    status: 'available',
    status_reason: expect.stringMatching(/^The restore failed, and the files are as before\. The backup is damaged/),
  });
  expect(readdirSync(filesOf(id)).sort()).toEqual(['kept', 'later']);
  const copy = (await call('POST', `${id}/backups/${backupId}/restore`, { name: 'spoiled' })).body;
  expect(await service.settle(`/v2/volumes/${copy.id}`)).toMatchObject({
    status: 'failed',
    status_reason: expect.stringContaining('damaged'),
  });
});
