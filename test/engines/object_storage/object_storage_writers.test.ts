/** @tier heavy @quarter 3 @covers engines/object_storage/object_storage models/object_storage/bucket_object */
// Many writers of one bucket at once, and clients that go away in the middle of what they write.
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { UNSIGNED_PAYLOAD, signedHeaders } from '../../../core/protocols/sigv4';
import { codeOf, startS3, type S3Service } from '../../support/object_storage/s3';
import { retryCheck } from '../../support/wait_for';

jest.setTimeout(120_000);

let world: S3Service;
let client: s3.S3Client;
let credentials: { accessKeyId: string; secretAccessKey: string };

beforeAll(async () => {
  world = await startS3();
  const key = await world.key();
  client = world.client(key, { maxAttempts: 1 });
  credentials = { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
}, 180_000);
afterAll(() => world.close());

const usage = async (id: string) => (await world.service.call('GET', `/v2/buckets/${id}/usage`)).body;

function files(id: string): string[] {
  const found = readdirSync(path.join(world.service.platform.config.s3Dir, id), {
    recursive: true,
    withFileTypes: true,
  });
  return found.filter((entry) => entry.isFile() && entry.name !== 'bucket.json').map(({ name }) => name);
}

test('60 writers at once: one of those that want a new key has it, and those beside them lose nothing', async () => {
  const { id, name: Bucket } = await world.bucket({ versioning: true });
  const put = (Key: string, Body: string, more: object = {}) =>
    client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ...more }));
  const [claims, others, same] = await Promise.all(
    [
      (index: number) => put('claimed', `claim ${index}`, { IfNoneMatch: '*' }),
      (index: number) => put(`other/${index}`, `other ${index}`),
      (index: number) => put('same', `same ${index}`),
    ].map((write) => Promise.all(Array.from({ length: 20 }, (_, index) => codeOf(write(index))))),
  );
  expect(claims!.sort()).toEqual([...Array<string>(19).fill('PreconditionFailed'), 'done']);
  expect(new Set([...others!, ...same!])).toEqual(new Set(['done']));
  for (let index = 0; index < 20; index += 1) {
    const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key: `other/${index}` }));
    expect(await Body!.transformToString()).toBe(`other ${index}`);
  }
  const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket, Prefix: 'same' }));
  expect(new Set(Versions.map(({ VersionId }) => VersionId)).size).toBe(20);
  expect(Versions.filter(({ IsLatest }) => IsLatest)).toHaveLength(1);
  const sizes = Versions.reduce((sum, { Size = 0 }) => sum + Size, 0);
  const sizesOfOthers = Array.from({ length: 20 }, (_, index) => `other ${index}`.length).reduce((a, b) => a + b);
  const { ContentLength = 0 } = await client.send(new s3.HeadObjectCommand({ Bucket, Key: 'claimed' }));
  const { size_bytes, object_count } = await usage(id);
  expect({ size_bytes, object_count }).toEqual({ size_bytes: sizes + sizesOfOthers + ContentLength, object_count: 22 });
  await retryCheck(async () => {
    await Promise.resolve();
    expect(files(id)).toHaveLength(41);
  });
});

/** Begins a request whose body is `length` bytes, sends fewer and goes away when the endpoint is writing. */
async function breakOff(place: string, length: number, sent: Buffer, isWriting: () => void): Promise<void> {
  const method = 'PUT';
  const url = new URL(`${world.endpoint}${place}`);
  const headers = signedHeaders({ method, url, payloadHash: UNSIGNED_PAYLOAD, region: 'local', credentials });
  const request = http.request(url, { method, headers: { ...headers, 'content-length': length } });
  request.on('error', () => undefined);
  const closed = new Promise((resolve) => request.once('close', resolve));
  await new Promise((resolve) => request.write(sent, resolve));
  await retryCheck(() => Promise.resolve().then(isWriting));
  request.destroy();
  await closed;
}

test('a client that goes in the middle of a PUT or of a part: what was there stays, and no file is left', async () => {
  const { id, name: Bucket } = await world.bucket();
  await client.send(new s3.PutObjectCommand({ Bucket, Key: 'kept', Body: 'before' }));
  const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: 'parts' }));
  const half = randomBytes(3 * 2 ** 20);
  for (const place of ['kept', 'new', `parts?partNumber=1&uploadId=${UploadId}`]) {
    await breakOff(`/${Bucket}/${place}`, 2 * half.length, half, () => expect(files(id)).toHaveLength(2));
    await retryCheck(() => Promise.resolve().then(() => expect(files(id)).toHaveLength(1)));
    const { Contents } = await client.send(new s3.ListObjectsV2Command({ Bucket }));
    expect(Contents!.map(({ Key }) => Key)).toEqual(['kept']);
  }
  const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key: 'kept' }));
  expect(await Body!.transformToString()).toBe('before');
  const { Parts } = await client.send(new s3.ListPartsCommand({ Bucket, Key: 'parts', UploadId }));
  expect(Parts ?? []).toEqual([]);
  expect(await usage(id)).toMatchObject({ size_bytes: 6, object_count: 1 });
});

test('a client that goes in the middle of a GET costs nobody else anything', async () => {
  const { name: Bucket } = await world.bucket();
  const content = randomBytes(24 * 2 ** 20);
  await client.send(new s3.PutObjectCommand({ Bucket, Key: 'large', Body: content }));
  const url = new URL(`${world.endpoint}/${Bucket}/large`);
  const headers = signedHeaders({ method: 'GET', url, payloadHash: UNSIGNED_PAYLOAD, region: 'local', credentials });
  const leave = () =>
    new Promise<void>((resolve) => {
      const request = http.get(url, { headers }, (response) =>
        response.once('data', () => {
          request.destroy();
          resolve();
        }),
      );
      request.on('error', () => undefined);
    });
  const read = async () => {
    const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key: 'large' }));
    expect(Buffer.from(await Body!.transformToByteArray()).equals(content)).toBe(true);
  };
  for (let round = 0; round < 4; round += 1) await Promise.all([leave(), read(), leave(), read(), leave()]);
});
