// Conditions of deletes and uploads, and the owner that is expected: what does not hold changes nothing.
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;

beforeAll(async () => {
  world = await startS3();
  client = world.client(undefined, { maxAttempts: 1 });
}, 120_000);
afterAll(() => world.close());

const put = (Bucket: string, Key: string, Body = Key) => client.send(new s3.PutObjectCommand({ Bucket, Key, Body }));
const head = (Bucket: string, Key: string) => codeOf(client.send(new s3.HeadObjectCommand({ Bucket, Key })));
const OTHER = '"00000000000000000000000000000000"';
const PAST = new Date('2001-02-03T04:05:06Z');

test.each([false, true])('DELETE removes what is as it is said to be, versioning %s', async (versioning) => {
  const { name: Bucket } = await world.bucket({ versioning });
  const remove = (more: object) => codeOf(client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a', ...more })));
  const { ETag } = await put(Bucket, 'a');
  const { LastModified } = await client.send(new s3.HeadObjectCommand({ Bucket, Key: 'a' }));
  for (const wrong of [
    { IfMatch: OTHER },
    { IfMatch: ETag, IfMatchSize: 2 },
    { IfMatchSize: 0 },
    { IfMatchLastModifiedTime: PAST },
    { IfMatch: ETag, IfMatchSize: 1, IfMatchLastModifiedTime: PAST },
  ])
    expect([wrong, await remove(wrong), await head(Bucket, 'a')]).toEqual([wrong, 'PreconditionFailed', 'done']);
  expect(await remove({ IfMatch: ETag, IfMatchSize: 1, IfMatchLastModifiedTime: LastModified })).toBe('done');
  expect(await head(Bucket, 'a')).toBe(404);
  await put(Bucket, 'a');
  expect([await remove({ IfMatch: '*' }), await head(Bucket, 'a')]).toEqual(['done', 404]);
  const never = { Bucket, Key: 'never', IfMatch: OTHER };
  const { DeleteMarker } = await client.send(new s3.DeleteObjectCommand(never));
  expect(DeleteMarker).toBeUndefined();
});

test('a version is compared, not the latest one', async () => {
  const { name: Bucket } = await world.bucket({ versioning: true });
  const first = await put(Bucket, 'a', 'one');
  const second = await put(Bucket, 'a', 'two');
  const remove = (IfMatch?: string) =>
    codeOf(client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a', VersionId: first.VersionId, IfMatch })));
  expect([await remove(second.ETag), await remove(first.ETag)]).toEqual(['PreconditionFailed', 'done']);
  const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
  expect(Versions.map(({ VersionId, Owner }) => [VersionId, typeof Owner?.ID])).toEqual([[second.VersionId, 'string']]);
});

test('DeleteObjects leaves those of whom a condition does not hold, and says so', async () => {
  const { name: Bucket } = await world.bucket();
  const etags: Record<string, string | undefined> = {};
  for (const Key of ['etag', 'size', 'time', 'good', 'plain']) etags[Key] = (await put(Bucket, Key)).ETag;
  const { Deleted = [], Errors = [] } = await client.send(
    new s3.DeleteObjectsCommand({
      Bucket,
      Delete: {
        Objects: [
          { Key: 'etag', ETag: OTHER },
          { Key: 'size', Size: 5 },
          { Key: 'time', LastModifiedTime: PAST },
          { Key: 'good', ETag: etags.good, Size: 4 },
          { Key: 'plain' },
        ],
      },
    }),
  );
  expect(Deleted.map(({ Key }) => Key)).toEqual(['good', 'plain']);
  expect(Errors.map(({ Key, Code }) => [Key, Code])).toEqual(
    ['etag', 'size', 'time'].map((Key) => [Key, 'PreconditionFailed']),
  );
  const { Contents = [] } = await client.send(new s3.ListObjectsCommand({ Bucket }));
  expect(Contents.map(({ Key }) => Key)).toEqual(['etag', 'size', 'time']);
});

test('conditional deletes of many clients remove an object once', async () => {
  const { name: Bucket, id } = await world.bucket();
  const { ETag } = await put(Bucket, 'a');
  const calls = Array.from({ length: 12 }, (_, index) =>
    index % 3 === 0
      ? put(Bucket, 'a', `new ${index}`)
      : client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a', IfMatch: ETag })),
  );
  await Promise.allSettled(calls);
  // Whatever came last, a delete of the first content removed nothing else.
  expect(await head(Bucket, 'a')).toBe('done');
  const [usage] = await world.service.sql('select * from bucket_usage where bucket_id = $1', [id]);
  expect(usage).toMatchObject({ object_count: 1 });
});

test('another owner than the expected one is refused, of the source of a copy too', async () => {
  const { name: Bucket } = await world.bucket();
  await put(Bucket, 'a');
  const mine = world.service.project;
  const owner = (ExpectedBucketOwner: string) => ({ Bucket, ExpectedBucketOwner });
  const calls = (id: string): (() => Promise<unknown>)[] => [
    () => client.send(new s3.GetObjectCommand({ ...owner(id), Key: 'a' })),
    () => client.send(new s3.PutObjectCommand({ ...owner(id), Key: 'b', Body: 'x' })),
    () => client.send(new s3.ListObjectsV2Command(owner(id))),
    () => client.send(new s3.GetBucketPolicyStatusCommand(owner(id))),
    () =>
      client.send(
        new s3.CopyObjectCommand({ Bucket, Key: 'c', CopySource: `${Bucket}/a`, ExpectedSourceBucketOwner: id }),
      ),
    () => client.send(new s3.DeleteObjectCommand({ ...owner(id), Key: 'a' })),
  ];
  for (const call of calls('123456789012')) expect(await codeOf(call())).toBe('AccessDenied');
  expect([await head(Bucket, 'a'), await head(Bucket, 'b'), await head(Bucket, 'c')]).toEqual(['done', 404, 404]);
  for (const call of calls(mine)) expect(await codeOf(call())).toBe('done');
});

test('an upload is completed as its client says it is', async () => {
  const { name: Bucket } = await world.bucket();
  const Key = 'u';
  const { UploadId } = await client.send(
    new s3.CreateMultipartUploadCommand({ Bucket, Key, ChecksumAlgorithm: 'CRC32C' }),
  );
  const { ETag, ChecksumCRC32C } = await client.send(
    new s3.UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'hello', ChecksumAlgorithm: 'CRC32C' }),
  );
  const part = { PartNumber: 1, ETag, ChecksumCRC32C };
  const complete = (Part: object, more: object = {}) =>
    client.send(
      new s3.CompleteMultipartUploadCommand({
        ...{ Bucket, Key, UploadId, ...more },
        MultipartUpload: { Parts: [Part as s3.CompletedPart] },
      }),
    );
  for (const [one, more, code] of [
    [{ ...part, ChecksumCRC32C: 'AAAAAA==' }, {}, 'InvalidPart'],
    [{ ...part, ChecksumSHA1: '2jmj7l5rSw0yVb/vlWAYkK/YBwk=' }, {}, 'InvalidPart'],
    [part, { MpuObjectSize: 6 }, 'InvalidRequest'],
    [part, { ChecksumType: 'FULL_OBJECT' }, 'InvalidRequest'],
    [part, { ChecksumCRC32C: 'AAAAAA==-1' }, 'BadDigest'],
    [part, { ChecksumCRC32: 'AAAAAA==' }, 'InvalidRequest'],
  ] as const)
    expect([more, await codeOf(complete(one, more))]).toEqual([more, code]);
  // CRC-32C of the CRC-32C of `hello`.
  const done = await complete(part, { MpuObjectSize: 5, ChecksumType: 'COMPOSITE' });
  const given = done.ChecksumCRC32C as string;
  expect(given).toMatch(/^[\w+/]{6}==-1$/);
  const attributes = await client.send(
    new s3.GetObjectAttributesCommand({ Bucket, Key, ObjectAttributes: ['ObjectParts', 'Checksum'] }),
  );
  expect(attributes.Checksum).toMatchObject({ ChecksumCRC32C: given, ChecksumType: 'COMPOSITE' });
  expect(attributes.ObjectParts?.Parts).toEqual([{ PartNumber: 1, Size: 5, ChecksumCRC32C }]);
  expect(await codeOf(complete(part, { ChecksumCRC32C: given }))).toBe('done');
});
