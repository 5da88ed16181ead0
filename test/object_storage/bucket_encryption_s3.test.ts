// Objects that are encrypted at rest (SSE-S3), and others beside them: they read alike, whole, in ranges and in parts.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { loadKeyRing, secretBox } from '../../core/secrets';
import { openBlobStore, reencryptFiles } from '../../engines/object_storage/files/blobs';
import { encryptedFiles } from '../../models/object_storage/bucket_object/encrypted_files';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;
const ENCRYPTED = { ServerSideEncryption: 'AES256' } as const;
const MARK = 'what nobody may read on the disk';

beforeAll(async () => {
  world = await startS3();
  client = world.client();
}, 60_000);

afterAll(() => world.close());

const put = (Bucket: string, Key: string, Body: string | Buffer, more: object = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ...more }));
const read = async (Bucket: string, Key: string, more: object = {}) => {
  const found = await client.send(new s3.GetObjectCommand({ Bucket, Key, ...more }));
  return { found, body: Buffer.from(await found.Body!.transformToByteArray()) };
};
/** How many files of the bucket have the text in them. */
const readable = (id: string): number => {
  const root = path.join(world.service.platform.config.s3Dir, id);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.filter((entry) => readFileSync(path.join(entry.parentPath, entry.name)).includes(MARK)).length;
};

test('what asks for it is encrypted in its file, and reads as it was written', async () => {
  const { id, name: Bucket } = await world.bucket();
  const content = Buffer.concat([Buffer.from(MARK), randomBytes(300_000)]);
  const made = await put(Bucket, 'a', content, ENCRYPTED);
  expect([made.ServerSideEncryption, readable(id)]).toEqual(['AES256', 0]);
  const { found, body } = await read(Bucket, 'a');
  expect([found.ServerSideEncryption, body.equals(content)]).toEqual(['AES256', true]);
  for (const [start, end] of [
    [0, 1],
    [15, 17],
    [1, 299_000],
    [299_990, 300_031],
  ] as const) {
    const part = await read(Bucket, 'a', { Range: `bytes=${start}-${end - 1}` });
    expect([start, part.body.equals(content.subarray(start, end))]).toEqual([start, true]);
  }
  const plain = await put(Bucket, 'b', content);
  expect([plain.ServerSideEncryption, plain.ETag, readable(id)]).toEqual([undefined, made.ETag, 1]);
  expect(await codeOf(put(Bucket, 'c', 'x', { ServerSideEncryption: 'aws:kms' }))).toBe('NotImplemented');
});

test('copies stay encrypted, and become it', async () => {
  const { id, name: Bucket } = await world.bucket();
  await put(Bucket, 'plain', MARK);
  const copy = (from: string, Key: string, more: object = {}) =>
    client.send(new s3.CopyObjectCommand({ Bucket, Key, CopySource: `${Bucket}/${from}`, ...more }));
  expect((await copy('plain', 'sealed', ENCRYPTED)).ServerSideEncryption).toBe('AES256');
  expect((await copy('sealed', 'again')).ServerSideEncryption).toBe('AES256');
  expect((await copy('sealed', 'replaced', { MetadataDirective: 'REPLACE' })).ServerSideEncryption).toBe('AES256');
  for (const Key of ['sealed', 'again', 'replaced']) expect(String((await read(Bucket, Key)).body)).toBe(MARK);
  expect(readable(id)).toBe(1);
});

test('uploads in parts are encrypted part by part, also those that copy a range', async () => {
  const { id, name: Bucket } = await world.bucket();
  const large = Buffer.concat([Buffer.from(MARK), randomBytes(5 * 2 ** 20)]);
  await put(Bucket, 'source', large, ENCRYPTED);
  const Key = 'parts';
  const { UploadId, ServerSideEncryption } = await client.send(
    new s3.CreateMultipartUploadCommand({ Bucket, Key, ...ENCRYPTED, ChecksumAlgorithm: 'SHA256' }),
  );
  expect(ServerSideEncryption).toBe('AES256');
  const part = { Bucket, Key, UploadId };
  const first = await client.send(
    new s3.UploadPartCommand({ ...part, PartNumber: 1, Body: large, ChecksumAlgorithm: 'SHA256' }),
  );
  const CopySourceRange = 'bytes=0-99';
  const second = await client.send(
    new s3.UploadPartCopyCommand({ ...part, PartNumber: 2, CopySource: `${Bucket}/source`, CopySourceRange }),
  );
  const Parts = [
    { PartNumber: 1, ETag: first.ETag },
    { PartNumber: 2, ETag: second.CopyPartResult?.ETag },
  ];
  await client.send(new s3.CompleteMultipartUploadCommand({ ...part, MultipartUpload: { Parts } }));
  const whole = await read(Bucket, Key);
  expect(whole.body.equals(Buffer.concat([large, large.subarray(0, 100)]))).toBe(true);
  const one = await read(Bucket, Key, { PartNumber: 1, ChecksumMode: 'ENABLED' });
  expect(one.found).toMatchObject({ PartsCount: 2, ChecksumSHA256: first.ChecksumSHA256, ChecksumType: 'COMPOSITE' });
  expect(one.body.equals(large)).toBe(true);
  await client.send(new s3.CopyObjectCommand({ Bucket, Key: 'copied', CopySource: `${Bucket}/${Key}` }));
  const copied = await read(Bucket, 'copied', { Range: 'bytes=5242900-5242999' });
  expect(copied.body.equals(whole.body.subarray(5_242_900, 5_243_000))).toBe(true);
  expect(readable(id)).toBe(0);
});

test('a rotation of the secret key reads rows, and not what content looks like', async () => {
  const { id, name: Bucket } = await world.bucket();
  const { dataDir, platform } = world.service;
  const ring = loadKeyRing({ setting: null, dataDir });
  const added = { id: 'added', key: randomBytes(32) };
  const rotate = () => {
    const files = encryptedFiles(platform.database);
    return reencryptFiles(platform.config.s3Dir, secretBox([added, ...ring]), files);
  };
  await rotate();
  await put(Bucket, 'whole', MARK, ENCRYPTED);
  await client.send(new s3.CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/whole` }));
  const upload = async (Key: string, more: object = {}) => {
    const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key, ...more }));
    const part = { Bucket, Key, UploadId };
    const { ETag } = await client.send(new s3.UploadPartCommand({ ...part, PartNumber: 1, Body: content }));
    return { ...part, MultipartUpload: { Parts: [{ PartNumber: 1, ETag }] } };
  };
  // As a file begins that is encrypted with the key of the installation.
  const content = `v1.${ring[0]?.id}.${'A'.repeat(90)}`.padEnd(512);
  await client.send(new s3.CompleteMultipartUploadCommand(await upload('parts', ENCRYPTED)));
  await upload('waiting', ENCRYPTED);
  await put(Bucket, 'plain', content);
  await client.send(new s3.CompleteMultipartUploadCommand(await upload('plain parts')));
  await upload('plain waiting');

  // A copy is another name of its file.
  expect(await rotate()).toMatchObject({ reencrypted: 3, unreadable: 0 });
  expect(await rotate()).toMatchObject({ reencrypted: 0, unreadable: 0 });
  const [copy] = await world.service.sql<{ file_id: string }>(
    `select file_id from bucket_objects where key = 'copy' and bucket_id = $1`,
    [id],
  );
  const blobs = openBlobStore(platform.config.s3Dir, secretBox([added]));
  const opened = await blobs.open(id, copy?.file_id as string, 'AES256');
  const bytes = Buffer.alloc(MARK.length);
  await opened.read(bytes, bytes.length, 0);
  opened.release();
  expect(String(bytes)).toBe(MARK);
  expect(String((await read(Bucket, 'plain')).body)).toBe(content);
  expect(String((await read(Bucket, 'plain parts')).body)).toBe(content);
});
