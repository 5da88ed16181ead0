// Objects that are encrypted with keys of clients (SSE-C): each key opens its own objects, and is stored nowhere.
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';
import { presignedUrl, sendSigned } from '../support/object_storage/s3_signed';

let world: S3Service;
let client: s3.S3Client;
const MARK = 'what nobody may read on the disk';
const PART_BYTES = 5 * 2 ** 20;
const HEADER = 'x-amz-server-side-encryption-customer-';

beforeAll(async () => {
  world = await startS3();
  client = world.client();
}, 60_000);

afterAll(() => world.close());

/** The key as it travels: the SDK encodes what it gets as bytes. */
const keyOf = (bytes: Buffer) => ({
  SSECustomerAlgorithm: 'AES256',
  SSECustomerKey: bytes.toString('base64'),
  SSECustomerKeyMD5: createHash('md5').update(bytes).digest('base64'),
});
const sourceOf = (bytes: Buffer) => ({
  CopySourceSSECustomerAlgorithm: 'AES256',
  CopySourceSSECustomerKey: bytes.toString('base64'),
  CopySourceSSECustomerKeyMD5: createHash('md5').update(bytes).digest('base64'),
});
const [ours, theirs] = [randomBytes(32), randomBytes(32)];
const put = (Bucket: string, Key: string, Body: string | Buffer, more: object = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body, ...more }));
const read = async (Bucket: string, Key: string, more: object = {}) => {
  const found = await client.send(new s3.GetObjectCommand({ Bucket, Key, ...more }));
  return { found, body: Buffer.from(await found.Body!.transformToByteArray()) };
};
const head = (Bucket: string, Key: string, more: object = {}) =>
  client.send(new s3.HeadObjectCommand({ Bucket, Key, ...more }));
/** How many files of the bucket have one of the texts in them. */
const readable = (id: string, ...texts: (string | Buffer)[]): number => {
  const root = path.join(world.service.platform.config.s3Dir, id);
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const contents = files.map((entry) => readFileSync(path.join(entry.parentPath, entry.name)));
  return contents.filter((content) => texts.some((text) => content.includes(text))).length;
};

test('an object reads with its key alone, whole and in ranges', async () => {
  const { id, name: Bucket } = await world.bucket();
  const content = Buffer.concat([Buffer.from(MARK), randomBytes(300_000)]);
  const made = await put(Bucket, 'a', content, keyOf(ours));
  const { SSECustomerKeyMD5 } = keyOf(ours);
  expect(made).toMatchObject({ SSECustomerAlgorithm: 'AES256', SSECustomerKeyMD5 });
  expect(made.ETag).not.toContain(createHash('md5').update(content).digest('hex'));
  expect(readable(id, MARK, ours, ours.toString('base64'))).toBe(0);
  const { found, body } = await read(Bucket, 'a', keyOf(ours));
  expect(found).toMatchObject({ SSECustomerAlgorithm: 'AES256', SSECustomerKeyMD5, ETag: made.ETag });
  expect(body.equals(content)).toBe(true);
  for (const [start, end] of [
    [0, 1],
    [15, 17],
    [299_990, 300_031],
  ] as const) {
    const part = await read(Bucket, 'a', { ...keyOf(ours), Range: `bytes=${start}-${end - 1}` });
    expect([start, part.body.equals(content.subarray(start, end))]).toEqual([start, true]);
  }
  expect(await head(Bucket, 'a', keyOf(ours))).toMatchObject({ ContentLength: content.length, SSECustomerKeyMD5 });
  expect(await codeOf(read(Bucket, 'a'))).toBe('InvalidRequest');
  expect(await codeOf(read(Bucket, 'a', keyOf(theirs)))).toBe('AccessDenied');
  expect([await codeOf(head(Bucket, 'a')), await codeOf(head(Bucket, 'a', keyOf(theirs)))]).toEqual([400, 403]);
  const attributes = { Bucket, Key: 'a', ObjectAttributes: ['ETag' as const] };
  expect(await codeOf(client.send(new s3.GetObjectAttributesCommand(attributes)))).toBe('InvalidRequest');
  await client.send(new s3.GetObjectAttributesCommand({ ...attributes, ...keyOf(ours) }));
  await put(Bucket, 'plain', 'x');
  expect(await codeOf(read(Bucket, 'plain', keyOf(ours)))).toBe('InvalidRequest');
  // Nothing in the database is the key or its MD5.
  const rows = await world.service.platform.database.query<{ metadata: object }>(
    { name: 'metadata_of_test', text: 'select metadata from bucket_objects where bucket_id = $1' },
    [id],
  );
  const stored = JSON.stringify(rows);
  for (const secret of [ours.toString('base64'), ours.toString('hex'), SSECustomerKeyMD5])
    expect(stored).not.toContain(secret);
});

test.each<[string, object, string]>([
  ['another algorithm', { SSECustomerAlgorithm: 'AES128' }, 'InvalidEncryptionAlgorithmError'],
  ['an encryption of ours beside it', { ServerSideEncryption: 'AES256' }, 'InvalidArgument'],
])('a key with %s is refused', async (_, more, code) => {
  const { name: Bucket } = await world.bucket();
  expect(await codeOf(put(Bucket, 'a', 'x', { ...keyOf(ours), ...more }))).toBe(code);
  expect(await codeOf(read(Bucket, 'a'))).toBe('NoSuchKey');
});

/** Signs by itself, where the SDK would complete what is sent. */
const signing = async () => {
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = await world.key();
  return { endpoint: world.endpoint, credentials: { accessKeyId, secretAccessKey } };
};

test('keys that are short, repeated or incomplete are refused', async () => {
  const { name: Bucket } = await world.bucket();
  const side = await signing();
  const { SSECustomerKey: text, SSECustomerKeyMD5: md5 } = keyOf(ours);
  const short = keyOf(ours.subarray(0, 16));
  for (const headers of [
    { key: text, 'key-md5': md5 },
    { algorithm: 'AES256', 'key-md5': md5 },
    { algorithm: 'AES256', key: text },
    { algorithm: 'AES256', key: text, 'key-md5': keyOf(theirs).SSECustomerKeyMD5 },
    { algorithm: 'AES256', key: short.SSECustomerKey, 'key-md5': short.SSECustomerKeyMD5 },
    { algorithm: 'AES256', key: ours.toString('hex'), 'key-md5': md5 },
    { algorithm: 'AES256', key: `${text}, ${text}`, 'key-md5': md5 },
  ] as Record<string, string>[]) {
    const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [HEADER + name, value]));
    expect(await sendSigned(side, ['PUT', `/${Bucket}/a`, named], 'x')).toEqual({
      status: 400,
      code: 'InvalidArgument',
    });
  }
});

test('presigned URLs carry the key in headers', async () => {
  const { name: Bucket } = await world.bucket();
  const side = await signing();
  const { SSECustomerKey, SSECustomerKeyMD5 } = keyOf(ours);
  const key = { [`${HEADER}key`]: SSECustomerKey, [`${HEADER}key-md5`]: SSECustomerKeyMD5 };
  const headers = { [`${HEADER}algorithm`]: 'AES256', ...key };
  const made = await fetch(presignedUrl(side, ['PUT', `/${Bucket}/a`, headers]), {
    ...{ method: 'PUT', body: MARK, headers },
  });
  expect(made.status).toBe(200);
  const url = presignedUrl(side, ['GET', `/${Bucket}/a`, headers]);
  expect(await (await fetch(url, { headers })).text()).toBe(MARK);
  expect((await fetch(url)).status).toBe(403);
  // A key that was not signed changes nothing.
  expect((await fetch(presignedUrl(side, ['PUT', `/${Bucket}/b`]), { method: 'PUT', body: 'x', headers })).status).toBe(
    403,
  );
});

test('copies are encrypted with the key of the copy, and read with that of the source', async () => {
  const { id, name: Bucket } = await world.bucket();
  await put(Bucket, 'ours', MARK, keyOf(ours));
  await put(Bucket, 'plain', MARK);
  const copy = (from: string, Key: string, more: object = {}) =>
    client.send(new s3.CopyObjectCommand({ Bucket, Key, CopySource: `${Bucket}/${from}`, ...more }));
  expect(await codeOf(copy('ours', 'b'))).toBe('InvalidRequest');
  expect(await codeOf(copy('ours', 'b', keyOf(ours)))).toBe('InvalidRequest');
  expect(await codeOf(copy('ours', 'b', sourceOf(theirs)))).toBe('AccessDenied');
  expect(await codeOf(copy('plain', 'b', sourceOf(ours)))).toBe('InvalidRequest');
  const answer = await copy('ours', 'theirs', { ...sourceOf(ours), ...keyOf(theirs) });
  expect(answer.SSECustomerKeyMD5).toBe(keyOf(theirs).SSECustomerKeyMD5);
  expect(String((await read(Bucket, 'theirs', keyOf(theirs))).body)).toBe(MARK);
  expect(await codeOf(read(Bucket, 'theirs', keyOf(ours)))).toBe('AccessDenied');
  await copy('plain', 'taken', keyOf(ours));
  expect(String((await read(Bucket, 'taken', keyOf(ours))).body)).toBe(MARK);
  expect(readable(id, MARK)).toBe(1);
  await copy('ours', 'managed', { ...sourceOf(ours), ServerSideEncryption: 'AES256' });
  expect(String((await read(Bucket, 'managed')).body)).toBe(MARK);
  await copy('managed', 'back', keyOf(ours));
  expect(String((await read(Bucket, 'back', keyOf(ours))).body)).toBe(MARK);
  await copy('ours', 'open', sourceOf(ours));
  expect(String((await read(Bucket, 'open')).body)).toBe(MARK);
  expect(readable(id, MARK)).toBe(2);
  // A copy onto itself changes the key.
  await copy('ours', 'ours', { ...sourceOf(ours), ...keyOf(theirs) });
  expect(String((await read(Bucket, 'ours', keyOf(theirs))).body)).toBe(MARK);
});

test('uploads in parts need the key with each part', async () => {
  const { id, name: Bucket } = await world.bucket();
  const large = Buffer.concat([Buffer.from(MARK), randomBytes(PART_BYTES)]);
  await put(Bucket, 'source', large, keyOf(theirs));
  const Key = 'parts';
  const { UploadId, SSECustomerKeyMD5 } = await client.send(
    new s3.CreateMultipartUploadCommand({ Bucket, Key, ...keyOf(ours) }),
  );
  expect(SSECustomerKeyMD5).toBe(keyOf(ours).SSECustomerKeyMD5);
  const part = { Bucket, Key, UploadId, PartNumber: 1, Body: large };
  expect(await codeOf(client.send(new s3.UploadPartCommand(part)))).toBe('InvalidRequest');
  expect(await codeOf(client.send(new s3.UploadPartCommand({ ...part, ...keyOf(theirs) })))).toBe('InvalidRequest');
  const first = await client.send(new s3.UploadPartCommand({ ...part, ...keyOf(ours) }));
  // A client that missed the answer sends the part again.
  expect((await client.send(new s3.UploadPartCommand({ ...part, ...keyOf(ours) }))).ETag).toBe(first.ETag);
  const second = await client.send(
    new s3.UploadPartCopyCommand({
      ...{ Bucket, Key, UploadId, PartNumber: 2, CopySource: `${Bucket}/source`, CopySourceRange: 'bytes=0-99' },
      ...{ ...keyOf(ours), ...sourceOf(theirs) },
    }),
  );
  const Parts = [
    { PartNumber: 1, ETag: first.ETag },
    { PartNumber: 2, ETag: second.CopyPartResult?.ETag },
  ];
  const complete = { Bucket, Key, UploadId, MultipartUpload: { Parts } };
  const other = new s3.CompleteMultipartUploadCommand({ ...complete, ...keyOf(theirs) });
  expect(await codeOf(client.send(other))).toBe('InvalidRequest');
  await client.send(new s3.CompleteMultipartUploadCommand(complete));
  const whole = Buffer.concat([large, large.subarray(0, 100)]);
  expect((await read(Bucket, Key, keyOf(ours))).body.equals(whole)).toBe(true);
  const Range = `bytes=${PART_BYTES}-${PART_BYTES + 99}`;
  const middle = await read(Bucket, Key, { ...keyOf(ours), Range });
  expect(middle.body.equals(whole.subarray(PART_BYTES, PART_BYTES + 100))).toBe(true);
  expect((await read(Bucket, Key, { ...keyOf(ours), PartNumber: 2 })).body).toHaveLength(100);
  expect(await codeOf(read(Bucket, Key))).toBe('InvalidRequest');
  expect(await codeOf(read(Bucket, Key, keyOf(theirs)))).toBe('AccessDenied');
  const CopySource = `${Bucket}/${Key}`;
  const copied = await client.send(
    new s3.CopyObjectCommand({ Bucket, Key: 'copied', CopySource, ...sourceOf(ours), ...keyOf(theirs) }),
  );
  expect(copied.CopyObjectResult?.ETag).toMatch(/-2"$/);
  expect((await read(Bucket, 'copied', keyOf(theirs))).body.equals(whole)).toBe(true);
  expect(readable(id, MARK)).toBe(0);
});

test('an upload without a key takes none, and a public object needs its key', async () => {
  const { name: Bucket } = await world.bucket({ access: 'public_read' });
  const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: 'a' }));
  const part = { Bucket, Key: 'a', UploadId, PartNumber: 1, Body: 'x', ...keyOf(ours) };
  expect(await codeOf(client.send(new s3.UploadPartCommand(part)))).toBe('InvalidRequest');
  await put(Bucket, 'b', MARK, keyOf(ours));
  const answer = await fetch(`${world.endpoint}/${Bucket}/b`);
  expect([answer.status, (await answer.text()).includes('InvalidRequest')]).toEqual([400, true]);
});

test('a key that came over a connection without TLS is refused', async () => {
  const { name: Bucket } = await world.bucket();
  const insecure = await fetch(`${world.endpoint}/${Bucket}/a`, {
    headers: { 'x-forwarded-for': '192.0.2.1', [`${HEADER}key`]: keyOf(ours).SSECustomerKey },
  });
  expect(insecure.status).toBe(403);
  const opened = await world.bucket({ access: 'public_read' });
  await put(opened.name, 'a', MARK, keyOf(ours));
  const { SSECustomerKey, SSECustomerKeyMD5 } = keyOf(ours);
  const ask = async (more: Record<string, string>) => {
    const key = { [`${HEADER}key`]: SSECustomerKey, [`${HEADER}key-md5`]: SSECustomerKeyMD5 };
    const headers = { [`${HEADER}algorithm`]: 'AES256', ...key, ...more };
    const answer = await fetch(`${world.endpoint}/${opened.name}/a`, { headers });
    return [answer.status, await answer.text()] as const;
  };
  expect(await ask({})).toEqual([200, MARK]);
  const [status, text] = await ask({ 'x-forwarded-for': '192.0.2.1' });
  expect([status, text.includes('secure connection')]).toEqual([400, true]);
});
