// Deleted credentials of programs: they open nothing at once, and are the same after a restore. Names of buckets in the
// bin are nobody else's.
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { binCalls } from '../support/bin_calls';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let s3: S3Service;
const bin = binCalls(() => s3.service);
beforeAll(async () => {
  s3 = await startS3({ RETENTION_OF_DELETED_DAYS: '7' });
});
afterAll(() => s3?.close());

test('a deleted bucket access key opens nothing, and works again with its secret', async () => {
  const bucket = await s3.bucket();
  const key = await s3.key({ grants: [{ bucket_id: bucket.id, permission: 'read' }] });
  const list = (): Promise<string | number> =>
    codeOf(s3.client(key).send(new ListObjectsV2Command({ Bucket: bucket.name })));
  expect(await list()).toBe('done');
  const entry = await bin.deleted(`/v2/bucket_access_keys/${key.id}`);
  expect(await list()).toBe('InvalidAccessKeyId');
  expect(await bin.restored(entry)).toEqual([]);
  expect(await list()).toBe('done');
  const second = await bin.deleted(`/v2/bucket_access_keys/${key.id}`);
  expect((await bin.purge(second)).status).toBe(204);
  expect([await list(), (await bin.restore(second)).status]).toEqual(['InvalidAccessKeyId', 404]);
});

test('a key in the bin keeps its grants on what is there again, and none on what is gone', async () => {
  const [first, second] = [await s3.bucket(), await s3.bucket()];
  const grant = ({ id }: { id: string }) => ({ bucket_id: id, permission: 'read' });
  const place = async (...grants: object[]): Promise<string> =>
    `/v2/bucket_access_keys/${(await s3.key({ grants })).id}`;
  const granted = async (key: string) => (await s3.service.call('GET', key)).body.grants;
  const key = await place(grant(first), grant(second));
  const bucketFirst = await bin.deleted(`/v2/buckets/${first.id}`);
  const kept = await bin.deleted(key);
  expect((await bin.purge(await bin.deleted(`/v2/buckets/${second.id}`))).status).toBe(204);
  expect(await bin.restored(bucketFirst)).toEqual([]);
  expect(await bin.restored(kept)).toEqual([]);
  expect(await granted(key)).toEqual([grant(first)]);
  await bin.purge(await bin.deleted(key));
  expect(await bin.restored(await bin.deleted(`/v2/buckets/${first.id}`))).toEqual([]);
});

test('a key that may not destroy makes none that removes versions', async () => {
  const { service } = s3;
  const key = await service.mintKey({ may_destroy: false });
  const body = (permission: string): object => ({ name: 'ci', grants: [{ permission }] });
  const made = await service.call('POST', '/v2/bucket_access_keys', { key, body: body('read_write') });
  expect(made.status).toBe(201);
  const refused = [
    await service.call('POST', '/v2/bucket_access_keys', { key, body: body('full') }),
    await service.call('PATCH', `/v2/bucket_access_keys/${made.body.id}`, { key, body: body('full') }),
  ];
  for (const { status, body: answer } of refused) expect([status, answer.code]).toEqual([403, 'destroy_not_allowed']);
});

test('the name of a bucket in the bin is not for other projects', async () => {
  const { service } = s3;
  const bucket = await s3.bucket();
  const entry = await bin.deleted(`/v2/buckets/${bucket.id}`);
  const them = await bin.stranger();
  const take = () => service.call('POST', '/v2/buckets', { body: { name: bucket.name }, ...them });
  // Also when the engine has given it up.
  await service.sql('update buckets set parked_at = now() where id = $1', [bucket.id]);
  const taken = await take();
  expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'name_taken', 'name']);
  expect(await bin.restored(entry)).toEqual([]);
  await bin.purge(await bin.deleted(`/v2/buckets/${bucket.id}`));
});
