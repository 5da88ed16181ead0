/** @tier heavy @quarter 2 @covers engines/object_storage models/object_storage server/agents/object_storage */
// SIGKILL within CreateBucket, DeleteBucket and parts that a key of a client encrypts: a bucket is there as a whole,
// with its entry in the activity, or not at all, and a request that is sent again succeeds.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../../support/object_storage/s3';
import { killer, WITHIN_MS, type Killed } from '../../support/object_storage/s3_killed';

let world: S3Service;
let client: s3.S3Client;
let killed: Killed;
let serial = 0;
const MARK = 'what nobody may read on the disk';
const PART = MARK + 'p'.repeat(60_000);

beforeAll(async () => {
  world = await startS3();
  client = world.client(undefined, { region: 'local' });
  killed = await killer(world);
}, 180_000);
afterAll(() => world.close());

const exists = async (name: string): Promise<boolean> =>
  (await world.service.call('GET', `/v2/buckets?name=${name}`)).body.data.length === 1;
/** Entries of the activity about buckets of this name. */
async function entriesOf(name: string): Promise<string[]> {
  const path = `/v2/projects/${world.service.project}/activity?resource_type=bucket&limit=100`;
  const { data } = (await world.service.call('GET', path)).body as {
    data: { action: string; resource: { name: string } }[];
  };
  const own = data.filter(({ action, resource }) => resource.name === name && /created|deleted/.test(action));
  return own.map(({ action }) => action).reverse();
}

test(
  'CreateBucket',
  async () => {
    await killed('CreateBucket', async () => {
      const name = `killed-create-${(serial += 1)}`;
      return {
        ...{ id: '', step: { method: 'PUT', path: `/${name}`, platform: true } },
        async check() {
          const isThere = await exists(name);
          expect(await entriesOf(name)).toEqual(isThere ? ['bucket.created'] : []);
          const again = await codeOf(client.send(new s3.CreateBucketCommand({ Bucket: name })));
          expect(again).toBe(isThere ? 'BucketAlreadyOwnedByYou' : 'done');
          await client.send(new s3.PutObjectCommand({ Bucket: name, Key: 'a', Body: 'x' }));
          expect(await codeOf(client.send(new s3.GetPublicAccessBlockCommand({ Bucket: name })))).toBe('done');
        },
      };
    });
  },
  WITHIN_MS,
);

test(
  'DeleteBucket',
  async () => {
    await killed('DeleteBucket', async () => {
      const { id, name } = await world.bucket({ name: `killed-delete-${(serial += 1)}` });
      await client.send(new s3.CreateMultipartUploadCommand({ Bucket: name, Key: 'unfinished' }));
      return {
        ...{ id, step: { method: 'DELETE', path: `/${name}`, platform: true } },
        async check() {
          const isThere = await exists(name);
          expect(await entriesOf(name)).toEqual(['bucket.created', ...(isThere ? [] : ['bucket.deleted'])]);
          const again = await codeOf(client.send(new s3.DeleteBucketCommand({ Bucket: name })));
          expect(again).toBe(isThere ? 'done' : 'NoSuchBucket');
          // The files and the name are gone a moment later.
          expect(await codeOf(client.send(new s3.CreateBucketCommand({ Bucket: name })))).toBe('done');
        },
      };
    });
  },
  WITHIN_MS,
);

test(
  'a part that a key of a client encrypts',
  async () => {
    const { id, name: Bucket } = await world.bucket();
    const key = randomBytes(32);
    const SSECustomerKeyMD5 = createHash('md5').update(key).digest('base64');
    const ours = { SSECustomerAlgorithm: 'AES256', SSECustomerKey: key.toString('base64'), SSECustomerKeyMD5 };
    const header = 'x-amz-server-side-encryption-customer-';
    const more = { [`${header}key`]: ours.SSECustomerKey, [`${header}key-md5`]: SSECustomerKeyMD5 };
    const headers = { [`${header}algorithm`]: 'AES256', ...more };
    await killed('UploadPart with a key', async () => {
      const Key = `a-${(serial += 1)}`;
      const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key, ...ours }));
      const path = `/${Bucket}/${Key}?uploadId=${UploadId}&partNumber=1`;
      return {
        ...{ id, step: { method: 'PUT', path, body: PART, headers } },
        async check() {
          const part = { Bucket, Key, UploadId, PartNumber: 1, Body: PART, ...ours };
          const { ETag } = await client.send(new s3.UploadPartCommand(part));
          const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
          await client.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }));
          const found = await client.send(new s3.GetObjectCommand({ Bucket, Key, ...ours }));
          expect((await found.Body?.transformToString()) === PART).toBe(true);
        },
      };
    });
    expect(readable(id)).toBe(0);
  },
  WITHIN_MS + 60_000,
);

/** How many files of the bucket have the text of the parts in them. */
function readable(id: string): number {
  const root = path.join(world.service.platform.config.s3Dir, id);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.filter((entry) => readFileSync(path.join(entry.parentPath, entry.name)).includes(MARK)).length;
}
