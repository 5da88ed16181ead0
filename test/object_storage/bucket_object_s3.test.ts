// Objects over the S3 endpoint, as the AWS SDK sees them with its defaults untouched.
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;

beforeAll(async () => {
  world = await startS3();
  client = world.client();
}, 60_000);

afterAll(() => world.close());

const put = (Bucket: string, Key: string, Body: string | Buffer, more: object = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ...more }));
const get = async (Bucket: string, Key: string, more: object = {}): Promise<Buffer> => {
  const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key, ...more }));
  return Buffer.from(await (Body as { transformToByteArray(): Promise<Uint8Array> }).transformToByteArray());
};
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const usage = async (id: string): Promise<Record<string, number>> =>
  (await world.service.sql('select * from bucket_usage where bucket_id = $1', [id]))[0];
/** Files below the directory of a bucket. */
const files = (id: string): string[] =>
  readdirSync(path.join(world.service.platform.config.s3Dir, id), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'bucket.json')
    .map(({ name }) => name);

test('an object comes back as it was, with its metadata, by range and by condition', async () => {
  const { name: Bucket } = await world.bucket();
  const content = randomBytes(300_000);
  const more = { ContentType: 'image/png', CacheControl: 'max-age=60', Metadata: { who: 'me' }, Tagging: 'a=1&b=2' };
  const { ETag, ChecksumCRC32 } = await put(Bucket, 'dir/a b+ü%.bin', content, more);
  const found = await client.send(new s3.GetObjectCommand({ Bucket, Key: 'dir/a b+ü%.bin', ChecksumMode: 'ENABLED' }));
  expect(found).toMatchObject({
    ...{ ETag, ChecksumCRC32, ContentType: 'image/png', CacheControl: 'max-age=60', Metadata: { who: 'me' } },
    ...{ ContentLength: 300_000, TagCount: 2, AcceptRanges: 'bytes' },
  });
  expect(Buffer.from(await found.Body!.transformToByteArray()).equals(content)).toBe(true);
  const Key = 'dir/a b+ü%.bin';
  expect((await get(Bucket, Key, { Range: 'bytes=10-19' })).equals(content.subarray(10, 20))).toBe(true);
  expect((await get(Bucket, Key, { Range: 'bytes=-5' })).equals(content.subarray(-5))).toBe(true);
  expect(await codeOf(get(Bucket, Key, { Range: 'bytes=300000-' }))).toBe('InvalidRange');
  expect(await codeOf(get(Bucket, Key, { IfMatch: '"other"' }))).toBe('PreconditionFailed');
  expect(await codeOf(client.send(new s3.GetObjectCommand({ Bucket, Key, IfNoneMatch: ETag })))).toBe(304);
  expect(await codeOf(put(Bucket, Key, 'x', { IfNoneMatch: '*' }))).toBe('PreconditionFailed');
  expect(await codeOf(put(Bucket, 'new', 'x', { IfNoneMatch: '*' }))).toBe('done');
  expect(await codeOf(put(Bucket, Key, 'x', { IfMatch: ETag }))).toBe('done');
  expect(await codeOf(get(Bucket, 'none'))).toBe('NoSuchKey');
});

test.each(['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const)(
  '%s is checked and returned',
  async (algorithm) => {
    const { name: Bucket } = await world.bucket();
    const content = randomBytes(70_001);
    const sent = await put(Bucket, 'a', content, { ChecksumAlgorithm: algorithm });
    const found = await client.send(new s3.HeadObjectCommand({ Bucket, Key: 'a', ChecksumMode: 'ENABLED' }));
    expect(found[`Checksum${algorithm}`]).toBe(sent[`Checksum${algorithm}`]);
    expect(found[`Checksum${algorithm}`]).toEqual(expect.any(String));
    // The SDK compares what it receives with the checksum.
    expect((await get(Bucket, 'a', { ChecksumMode: 'ENABLED' })).equals(content)).toBe(true);
    const wrong = {
      CRC32: 'AAAAAA==',
      CRC32C: 'AAAAAA==',
      CRC64NVME: 'AAAAAAAAAAA=',
      SHA1: `${'A'.repeat(27)}=`,
      SHA256: `${'A'.repeat(43)}=`,
    };
    expect(await codeOf(put(Bucket, 'b', content, { [`Checksum${algorithm}`]: wrong[algorithm] }))).toBe('BadDigest');
    expect(await codeOf(client.send(new s3.HeadObjectCommand({ Bucket, Key: 'b' })))).toBe(404);
  },
);

test('odd keys are keys like others', async () => {
  const { id, name: Bucket } = await world.bucket();
  const letters = Array.from({ length: 255 }, (_, index) => String.fromCharCode(index + 1));
  const keys = [
    '..',
    '../..',
    'a//b',
    '/a',
    'a/',
    '%2F',
    '%',
    '+',
    'a b',
    'ä',
    '\u{1f600}',
    'k'.repeat(1024),
    ...letters.map((c) => `c${c}`),
  ];
  await Promise.all(keys.filter((key) => !['..', '../..'].includes(key)).map((key) => put(Bucket, key, key)));
  // The SDK resolves dots in paths itself, so these are written without it.
  const shown: string[] = [];
  for await (const page of s3.paginateListObjectsV2({ client, pageSize: 50 }, { Bucket, EncodingType: 'url' }))
    shown.push(...(page.Contents ?? []).map(({ Key }) => decodeURIComponent(Key!)));
  const expected = [...new Set(keys)].filter((key) => !['..', '../..'].includes(key));
  expect(shown).toEqual(expected.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
  expect((await Promise.all(expected.map((key) => get(Bucket, key)))).map(String)).toEqual(expected);
  expect(await codeOf(put(Bucket, 'k'.repeat(1025), 'x'))).toBe('KeyTooLongError');
  const deleted = await client.send(
    new s3.DeleteObjectsCommand({ Bucket, Delete: { Objects: expected.map((Key) => ({ Key })) } }),
  );
  expect([deleted.Deleted?.length, deleted.Errors]).toEqual([expected.length, undefined]);
  expect(await usage(id)).toMatchObject({ object_count: 0, size_bytes: 0 });
  for (let turn = 0; turn < 100 && files(id).length; turn += 1) await wait(100);
  expect(files(id)).toEqual([]);
});

test('the files of an object in parts go with it, whether it is overwritten or deleted', async () => {
  const { id, name: Bucket } = await world.bucket();
  const upload = (Key: string): Promise<unknown> =>
    new Upload({ client, params: { Bucket, Key, Body: Buffer.alloc(6 * 2 ** 20) }, partSize: 5 * 2 ** 20 }).done();
  await Promise.all(['kept', 'deleted', 'written'].map(upload));
  expect(files(id)).toHaveLength(6);
  await client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'deleted' }));
  await put(Bucket, 'written', Buffer.alloc(100_000));
  for (let turn = 0; turn < 100 && files(id).length > 3; turn += 1) await wait(100);
  expect(files(id)).toHaveLength(3);
  expect((await get(Bucket, 'kept')).length).toBe(6 * 2 ** 20);
});

test('a multipart upload is one object, its parts can be read, and an aborted one leaves nothing', async () => {
  const { id, name: Bucket } = await world.bucket();
  const content = randomBytes(11 * 2 ** 20);
  await new Upload({ client, params: { Bucket, Key: 'big', Body: content }, partSize: 5 * 2 ** 20 }).done();
  expect((await get(Bucket, 'big')).equals(content)).toBe(true);
  expect(
    (await get(Bucket, 'big', { Range: 'bytes=5242870-10485770' })).equals(content.subarray(5242870, 10485771)),
  ).toBe(true);
  const head = await client.send(new s3.HeadObjectCommand({ Bucket, Key: 'big', PartNumber: 2 }));
  expect([head.ContentLength, head.PartsCount]).toEqual([5 * 2 ** 20, 3]);
  const attributes = await client.send(
    new s3.GetObjectAttributesCommand({
      Bucket,
      Key: 'big',
      ObjectAttributes: ['ETag', 'ObjectParts', 'ObjectSize', 'Checksum'],
    }),
  );
  expect(attributes).toMatchObject({
    ObjectSize: content.length,
    ObjectParts: { TotalPartsCount: 3 },
    ETag: expect.stringMatching(/-3$/),
  });
  await client.send(new s3.CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/big` }));
  expect((await get(Bucket, 'copy')).equals(content)).toBe(true);
  const { UploadId } = await client.send(
    new s3.CreateMultipartUploadCommand({ Bucket, Key: 'never', ChecksumAlgorithm: 'CRC64NVME' }),
  );
  const part = { Bucket, Key: 'never', UploadId, PartNumber: 1 };
  await client.send(
    new s3.UploadPartCommand({ ...part, Body: content.subarray(0, 100), ChecksumAlgorithm: 'CRC64NVME' }),
  );
  await client.send(
    new s3.UploadPartCopyCommand({
      ...part,
      PartNumber: 2,
      CopySource: `${Bucket}/big`,
      CopySourceRange: 'bytes=0-99',
    }),
  );
  const listed = await client.send(new s3.ListPartsCommand({ Bucket, Key: 'never', UploadId }));
  const { Parts, Owner, Initiator } = listed;
  const { Uploads } = await client.send(new s3.ListMultipartUploadsCommand({ Bucket }));
  expect(Uploads).toMatchObject([{ Key: 'never', UploadId, Owner, Initiator }]);
  expect([Owner, Initiator]).toEqual([{ ID: world.service.project }, { ID: world.service.project }]);
  expect(Parts?.map(({ Size, ChecksumCRC64NVME }) => [Size, ChecksumCRC64NVME])).toEqual([
    [100, Parts?.[1]?.ChecksumCRC64NVME],
    [100, expect.any(String)],
  ]);
  const parts = { Parts: Parts?.map(({ PartNumber, ETag }) => ({ PartNumber, ETag })) };
  expect(
    await codeOf(
      client.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key: 'never', UploadId, MultipartUpload: parts })),
    ),
  ).toBe('EntityTooSmall');
  expect((await usage(id)).upload_bytes).toBe(200);
  await client.send(new s3.AbortMultipartUploadCommand({ Bucket, Key: 'never', UploadId }));
  expect(await usage(id)).toMatchObject({ object_count: 2, size_bytes: 2 * content.length, upload_bytes: 0 });
  expect(await codeOf(client.send(new s3.ListPartsCommand({ Bucket, Key: 'never', UploadId })))).toBe('NoSuchUpload');
});

test('a checksum of the whole is put together from those of the parts', async () => {
  const { name: Bucket } = await world.bucket();
  const content = randomBytes(6 * 2 ** 20);
  for (const algorithm of ['CRC64NVME', 'CRC32', 'CRC32C'] as const) {
    const params = {
      Bucket,
      Key: algorithm,
      Body: content,
      ChecksumAlgorithm: algorithm,
      ChecksumType: 'FULL_OBJECT' as const,
    };
    await new Upload({ client, params, partSize: 5 * 2 ** 20 }).done();
    const whole = await put(Bucket, 'whole', content, { ChecksumAlgorithm: algorithm });
    const { [`Checksum${algorithm}` as const]: combined } = await client.send(
      new s3.HeadObjectCommand({ Bucket, Key: algorithm, ChecksumMode: 'ENABLED' }),
    );
    expect(combined).toBe(whole[`Checksum${algorithm}`]);
  }
});

test('versions are kept, marked as deleted, brought back and removed', async () => {
  const { id, name: Bucket } = await world.bucket({ versioning: true });
  const [first, second] = [await put(Bucket, 'a', 'one'), await put(Bucket, 'a', 'second')];
  expect((await get(Bucket, 'a', { VersionId: first.VersionId })).toString()).toBe('one');
  const marker = await client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a' }));
  expect(marker.DeleteMarker).toBe(true);
  expect(await codeOf(get(Bucket, 'a'))).toBe('NoSuchKey');
  const { Versions, DeleteMarkers } = await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
  expect(Versions?.map(({ VersionId, IsLatest }) => [VersionId, IsLatest])).toEqual([
    [second.VersionId, false],
    [first.VersionId, false],
  ]);
  expect(DeleteMarkers?.map(({ VersionId, IsLatest }) => [VersionId, IsLatest])).toEqual([[marker.VersionId, true]]);
  expect(await usage(id)).toMatchObject({ object_count: 0, size_bytes: 9, noncurrent_size_bytes: 9 });
  await client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a', VersionId: marker.VersionId }));
  expect((await get(Bucket, 'a')).toString()).toBe('second');
  expect(await usage(id)).toMatchObject({ object_count: 1, size_bytes: 9, noncurrent_size_bytes: 3 });
  await client.send(new s3.PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Suspended' } }));
  await wait(600);
  await put(Bucket, 'a', 'null');
  await put(Bucket, 'a', 'null again');
  expect(
    (await client.send(new s3.ListObjectVersionsCommand({ Bucket }))).Versions?.map(({ VersionId }) => VersionId),
  ).toEqual(['null', second.VersionId, first.VersionId]);
  expect(await usage(id)).toMatchObject({ object_count: 1, size_bytes: 19, noncurrent_size_bytes: 9 });
});

test('rights are those of the grants, at once, and end within a second', async () => {
  const { id, name: Bucket } = await world.bucket();
  const { name: Other } = await world.bucket();
  await put(Bucket, 'a', 'x');
  const key = await world.key({ grants: [{ bucket_id: id, permission: 'read' }] });
  const reader = world.client(key, { maxAttempts: 1 });
  const read = (Key = 'a', bucket = Bucket) => codeOf(reader.send(new s3.GetObjectCommand({ Bucket: bucket, Key })));
  const write = () => codeOf(reader.send(new s3.PutObjectCommand({ Bucket, Key: 'b', Body: 'x' })));
  expect([await read(), await write(), await read('a', Other)]).toEqual(['done', 'AccessDenied', 'AccessDenied']);
  expect((await reader.send(new s3.ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toEqual([Bucket]);
  const path = `/v2/bucket_access_keys/${key.id}`;
  await world.service.call('PATCH', path, { body: { grants: [{ bucket_id: id, permission: 'read_write' }] } });
  expect(await write()).toBe('done');
  await world.service.call('PATCH', path, { body: { enabled: false } });
  await wait(1000);
  expect([await read(), await write()]).toEqual(['InvalidAccessKeyId', 'InvalidAccessKeyId']);
  await world.service.call('PATCH', path, { body: { enabled: true } });
  const rotated = await world.service.call('POST', `${path}/rotate`);
  expect((await world.client(rotated.body).send(new s3.ListObjectsV2Command({ Bucket }))).KeyCount).toBe(2);
  await wait(1000);
  expect(await read()).toBe('SignatureDoesNotMatch');
  const deny = { effect: 'deny', principals: ['*'], actions: ['s3:GetObject'], resources: ['a'] };
  await world.service.call('PUT', `/v2/buckets/${id}/policy`, { body: { statements: [deny] } });
  await wait(600);
  expect(await codeOf(get(Bucket, 'a'))).toBe('AccessDenied');
  const late = world.client(undefined, { systemClockOffset: 16 * 60_000, maxAttempts: 1 });
  expect(await codeOf(late.send(new s3.ListObjectsV2Command({ Bucket })))).toBe('RequestTimeTooSkewed');
});

test('the API presigns URLs, and strangers get what is public', async () => {
  const { id, name: Bucket } = await world.bucket({ access: 'public_read', website: { error_document: '404.html' } });
  const presign = async (body: object): Promise<string> =>
    (await world.service.call('POST', `/v2/buckets/${id}/presign`, { body })).body.url;
  const url = await presign({ key: 'dir/ä +.txt', method: 'PUT', content_type: 'text/plain' });
  expect((await fetch(url, { method: 'PUT', body: 'hello', headers: { 'content-type': 'text/html' } })).status).toBe(
    403,
  );
  expect((await fetch(url, { method: 'PUT', body: 'hello', headers: { 'content-type': 'text/plain' } })).status).toBe(
    200,
  );
  expect((await fetch(url)).status).toBe(403);
  expect(await (await fetch(await presign({ key: 'dir/ä +.txt' }))).text()).toBe('hello');
  expect((await fetch(`${await presign({ key: 'dir/ä +.txt' })}&x=1`)).status).toBe(403);
  const plain = await fetch(`${world.endpoint}/${Bucket}/dir/${encodeURIComponent('ä +.txt')}`);
  expect([plain.status, await plain.text()]).toEqual([200, 'hello']);
  expect((await fetch(`${world.endpoint}/${Bucket}?list-type=2`)).status).toBe(403);
  expect((await fetch(`${world.endpoint}/${Bucket}/dir/x`, { method: 'PUT', body: 'x' })).status).toBe(403);
});

test('50 writers never pass a quota, and what was refused is not there', async () => {
  const { id, name: Bucket } = await world.bucket();
  await world.service.sql(`update bucket_totals set size_bytes = $2::bigint - 25 * 1000 where project_id = $1`, [
    world.service.project,
    world.service.platform.config.quotas.bucket_storage_bytes,
  ]);
  const ends = await Promise.all(
    Array.from({ length: 50 }, (_, index) => codeOf(put(Bucket, `k${index}`, Buffer.alloc(1000)))),
  );
  await world.service.sql('update bucket_totals set size_bytes = 0');
  expect(ends.filter((end) => end === 'done')).toHaveLength(25);
  expect(new Set(ends)).toEqual(new Set(['done', 'QuotaExceeded']));
  expect(await usage(id)).toMatchObject({ object_count: 25, size_bytes: 25_000 });
  expect(files(id)).toHaveLength(25);
});
