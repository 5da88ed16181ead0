/** @tier heavy @quarter 3 @covers engines/object_storage/object_storage models/object_storage/bucket_object */
// SIGKILL within one PUT, one completion of an upload, one DELETE (of an object, of a version, of several keys at once)
// and one pass of the lifecycle, at continuations of each. What was acknowledged stays, the rest is there as a whole or
// not at all, usage is exact, and the sweep leaves no file without a row and no row without a file.
import * as s3 from '@aws-sdk/client-s3';
import { startS3, type S3Service } from '../../support/object_storage/s3';
import { killer, WITHIN_MS, type Killed } from '../../support/object_storage/s3_killed';

const PART = 'p'.repeat(5 * 2 ** 20);

let world: S3Service;
let client: s3.S3Client;
let killed: Killed;

beforeAll(async () => {
  world = await startS3();
  client = world.client();
  killed = await killer(world);
}, 180_000);
afterAll(() => world.close());

async function contentOf(Bucket: string, Key: string): Promise<string | null> {
  const found = await client.send(new s3.GetObjectCommand({ Bucket, Key })).catch(() => null);
  return found ? ((await found.Body?.transformToString()) ?? null) : null;
}
const put = (Bucket: string, Key: string, Body: string) => client.send(new s3.PutObjectCommand({ Bucket, Key, Body }));

test(
  'PUT',
  async () => {
    const { id, name } = await world.bucket();
    await killed('PUT', async () => {
      await put(name, 'a', 'before');
      const body = `after ${'x'.repeat(100_000)}`;
      return {
        ...{ id, step: { method: 'PUT', path: `/${name}/a`, body } },
        check: async () => expect(['before', body]).toContain(await contentOf(name, 'a')),
      };
    });
  },
  WITHIN_MS,
);

test(
  'completion of a multipart upload',
  async () => {
    const { id, name: Bucket } = await world.bucket();
    await killed('complete', async () => {
      const Key = 'a';
      const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
      const parts: s3.CompletedPart[] = [];
      for (const [index, Body] of [PART, 'end'].entries()) {
        const PartNumber = index + 1;
        const { ETag } = await client.send(new s3.UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }));
        parts.push({ PartNumber, ETag });
      }
      const listed = parts.map(
        ({ PartNumber, ETag }) => `<Part><PartNumber>${PartNumber}</PartNumber><ETag>${ETag}</ETag></Part>`,
      );
      const body = `<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`;
      return {
        ...{ id, step: { method: 'POST', path: `/${Bucket}/${Key}?uploadId=${UploadId}`, body } },
        async check() {
          // Where it is not there yet, the upload is: it is completed again.
          if ((await contentOf(Bucket, Key)) === null) {
            const MultipartUpload = { Parts: parts };
            await client.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }));
          }
          expect(await contentOf(Bucket, Key)).toBe(`${PART}end`);
          await client.send(new s3.DeleteObjectCommand({ Bucket, Key }));
        },
      };
    });
  },
  WITHIN_MS + 60_000,
);

test(
  'DELETE',
  async () => {
    const { id, name } = await world.bucket();
    await killed('DELETE', async () => {
      await put(name, 'a', 'there');
      return {
        ...{ id, step: { method: 'DELETE', path: `/${name}/a` } },
        check: async () => expect(['there', null]).toContain(await contentOf(name, 'a')),
      };
    });
  },
  WITHIN_MS,
);

test(
  'DELETE of a version',
  async () => {
    const { id, name: Bucket } = await world.bucket({ versioning: true });
    await killed('DELETE of a version', async () => {
      const { VersionId: first } = await put(Bucket, 'a', 'first');
      const { VersionId: second } = await put(Bucket, 'a', 'second');
      return {
        ...{ id, step: { method: 'DELETE', path: `/${Bucket}/a?versionId=${second}` } },
        // With the latest one gone, the one before it is the latest.
        async check() {
          const isThere = (await contentOf(Bucket, 'a')) === 'second';
          const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
          expect(Versions.filter(({ IsLatest }) => IsLatest).map(({ VersionId }) => VersionId)).toEqual([
            isThere ? second : first,
          ]);
          if (!isThere) expect(await contentOf(Bucket, 'a')).toBe('first');
          for (const { Key, VersionId } of Versions)
            await client.send(new s3.DeleteObjectCommand({ Bucket, Key, VersionId }));
        },
      };
    });
  },
  WITHIN_MS,
);

test(
  'DeleteObjects',
  async () => {
    const { id, name: Bucket } = await world.bucket();
    const keys = ['a', 'b', 'c'];
    await killed('DeleteObjects', async () => {
      for (const Key of keys) await put(Bucket, Key, 'there');
      const body = `<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`;
      return {
        ...{ id, step: { method: 'POST', path: `/${Bucket}?delete`, body } },
        async check() {
          const found = await Promise.all(keys.map((key) => contentOf(Bucket, key)));
          expect([
            ['there', 'there', 'there'],
            [null, null, null],
          ]).toContainEqual(found);
        },
      };
    });
  },
  WITHIN_MS,
);

test(
  'a pass of the lifecycle',
  async () => {
    const { id, name: Bucket } = await world.bucket();
    const rule = { id: 'r', enabled: true, prefix: 'old/', expire_after_days: 1, expire_noncurrent_after_days: 1 };
    await killed('lifecycle', async () => {
      for (const Key of ['old/a', 'old/b', 'kept']) await put(Bucket, Key, Key);
      await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: 'old/upload' }));
      return {
        ...{ id, step: { lifecycle: [{ ...rule, abort_incomplete_uploads_after_days: 1 }] } },
        async check() {
          expect(await contentOf(Bucket, 'kept')).toBe('kept');
          for (const Key of ['old/a', 'old/b']) expect([Key, null]).toContain(await contentOf(Bucket, Key));
        },
      };
    });
  },
  WITHIN_MS,
);
