// Requests that were changed on their way, and conditions and tags of copies, over S3.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { presignUrl, sha256Hex, signedHeaders, UNSIGNED_PAYLOAD, type Credentials } from '../../core/protocols/sigv4';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

const MINUTE_MS = 60_000;
const CONTENT = 'hello';

let world: S3Service;
let client: s3.S3Client;
let credentials: Credentials;
let bucket: { id: string; name: string };

beforeAll(async () => {
  world = await startS3();
  client = world.client();
  const key = await world.key();
  credentials = { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
}, 60_000);
beforeEach(async () => void (bucket = await world.bucket()));
afterAll(() => world.close());

/** Files of the bucket. What is refused leaves none. */
function files(): string[] {
  const directory = path.join(world.service.platform.config.s3Dir, bucket.id);
  // It is made for the first file.
  if (!existsSync(directory)) return [];
  const found = readdirSync(directory, { recursive: true, withFileTypes: true });
  return found.filter((one) => one.isFile() && /^[0-9a-f]{32}$/.test(one.name)).map(({ name }) => name);
}

async function codeOfAnswer(answer: Response): Promise<string> {
  const code = /<Code>(.*?)<\/Code>/.exec(await answer.text())?.[1];
  return `${answer.status} ${code ?? 'done'}`;
}

interface Sent {
  headers?: Record<string, string>;
  body?: string;
  payloadHash?: string;
  lateMs?: number;
  /** Of what was signed. */
  change?(url: URL, headers: Record<string, string>): void;
}

async function sendPut({ headers = {}, body = CONTENT, payloadHash, lateMs = 0, change }: Sent): Promise<string> {
  const url = new URL(`${world.endpoint}/${bucket.name}/key`);
  const hash = payloadHash ?? sha256Hex(body);
  const now = new Date(Date.now() - lateMs);
  const signed = signedHeaders({ method: 'PUT', url, headers, payloadHash: hash, region: 'local', credentials, now });
  change?.(url, signed);
  delete signed.host;
  return codeOfAnswer(await fetch(url, { method: 'PUT', headers: signed, body }));
}

describe('a request that was changed after it was signed', () => {
  const MISMATCH = '403 SignatureDoesNotMatch';

  test.each<[string, Sent, string]>([
    ['nothing', {}, '200 done'],
    ['a header', { headers: { 'x-amz-meta-a': '1' }, change: (_, of) => void (of['x-amz-meta-a'] = '2') }, MISMATCH],
    ['the key', { change: (url) => void (url.pathname += '2') }, MISMATCH],
    ['the query', { change: (url) => url.searchParams.set('x', '1') }, MISMATCH],
    ['the body', { payloadHash: sha256Hex('other') }, '400 XAmzContentSHA256Mismatch'],
    ['the time, 13 minutes late', { lateMs: 13 * MINUTE_MS }, '200 done'],
    ['the time, 16 minutes late', { lateMs: 16 * MINUTE_MS }, '403 RequestTimeTooSkewed'],
    ['the time, 17 minutes early', { lateMs: -17 * MINUTE_MS }, '403 RequestTimeTooSkewed'],
  ])('%s', async (_, sent, expected) => {
    expect(await sendPut(sent)).toBe(expected);
    expect(files()).toHaveLength(expected === '200 done' ? 1 : 0);
  });

  test('of a URL: its query, its method, its end', async () => {
    await client.send(new s3.PutObjectCommand({ Bucket: bucket.name, Key: 'key', Body: CONTENT }));
    const presign = (now?: Date): string =>
      presignUrl({
        ...{ method: 'GET', endpoint: world.endpoint, bucket: bucket.name, key: 'key', region: 'local', credentials },
        ...{ expiresSeconds: 60, ...(now && { now }) },
      });
    const read = async (url: string, method = 'GET'): Promise<string> => codeOfAnswer(await fetch(url, { method }));
    expect(await read(presign())).toBe('200 done');
    expect(await read(presign().replace('X-Amz-Expires=60', 'X-Amz-Expires=61'))).toBe(MISMATCH);
    expect(await read(presign(), 'DELETE')).toBe(MISMATCH);
    expect(await read(presign(new Date(Date.now() - 2 * MINUTE_MS)))).toBe('403 AccessDenied');
  });

  test.each([
    [0, '403 AccessDenied'],
    [-1, '400 AuthorizationQueryParametersError'],
    [604_800, '200 done'],
    [604_801, '400 AuthorizationQueryParametersError'],
  ])('a URL for %d seconds', async (expiresSeconds, expected) => {
    await client.send(new s3.PutObjectCommand({ Bucket: bucket.name, Key: 'key', Body: CONTENT }));
    const at = { endpoint: world.endpoint, bucket: bucket.name, key: 'key', region: 'local', credentials };
    // Of a moment before, so that no clock decides.
    const url = presignUrl({ ...at, method: 'GET', expiresSeconds, now: new Date(Date.now() - 2_000) });
    expect(await codeOfAnswer(await fetch(url))).toBe(expected);
  });
});

test('an object has no part of another number', async () => {
  await client.send(new s3.PutObjectCommand({ Bucket: bucket.name, Key: 'key', Body: CONTENT }));
  const read = (PartNumber: number) =>
    client.send(new s3.GetObjectCommand({ Bucket: bucket.name, Key: 'key', PartNumber }));
  expect(await (await read(1)).Body?.transformToString()).toBe(CONTENT);
  await expect(read(2)).rejects.toMatchObject({ name: 'InvalidPartNumber', $metadata: { httpStatusCode: 416 } });
});

describe('a body that is not what the request says of it leaves nothing', () => {
  const md5 = (text: string): string => createHash('md5').update(text).digest('base64');
  /** CRC-32C of `hello`. */
  const CRC32C = 'mnG7TA==';
  const trailing = (value: string): Sent => ({
    headers: {
      'content-encoding': 'aws-chunked',
      'x-amz-decoded-content-length': String(CONTENT.length),
      'x-amz-trailer': 'x-amz-checksum-crc32c',
    },
    payloadHash: 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
    body: `5\r\n${CONTENT}\r\n0\r\nx-amz-checksum-crc32c:${value}\r\n\r\n`,
  });

  test.each<[string, Sent, string]>([
    ['Content-MD5', { headers: { 'content-md5': md5(CONTENT) } }, '200 done'],
    ['a wrong Content-MD5', { headers: { 'content-md5': md5('other') } }, '400 BadDigest'],
    ['a Content-MD5 that is none', { headers: { 'content-md5': 'AAAA' } }, '400 InvalidDigest'],
    ['a checksum in a trailer', trailing(CRC32C), '200 done'],
    ['a wrong checksum in a trailer', trailing('AAAAAA=='), '400 BadDigest'],
    ['a chunk that ends early', { ...trailing(CRC32C), body: `5\r\nhel` }, '400 IncompleteBody'],
  ])('%s', async (_, sent, expected) => {
    expect(await sendPut({ payloadHash: UNSIGNED_PAYLOAD, ...sent })).toBe(expected);
    expect(files()).toHaveLength(expected === '200 done' ? 1 : 0);
  });
});

describe('a copy', () => {
  const copy = (more: object = {}): Promise<s3.CopyObjectCommandOutput> =>
    client.send(
      new s3.CopyObjectCommand({ Bucket: bucket.name, Key: 'copy', CopySource: `${bucket.name}/key`, ...more }),
    );
  const tagsOfCopy = async (): Promise<Record<string, string>> => {
    const { TagSet = [] } = await client.send(new s3.GetObjectTaggingCommand({ Bucket: bucket.name, Key: 'copy' }));
    return Object.fromEntries(TagSet.map(({ Key, Value }) => [Key, Value]));
  };

  test('goes by the conditions of its source', async () => {
    const { ETag } = await client.send(new s3.PutObjectCommand({ Bucket: bucket.name, Key: 'key', Body: CONTENT }));
    const [past, future] = [new Date('2000-01-01'), new Date(Date.now() + 60 * MINUTE_MS)];
    for (const [conditions, expected] of [
      [{ CopySourceIfMatch: ETag }, 'done'],
      [{ CopySourceIfMatch: '"other"' }, 'PreconditionFailed'],
      [{ CopySourceIfNoneMatch: '"other"' }, 'done'],
      [{ CopySourceIfNoneMatch: ETag }, 'PreconditionFailed'],
      [{ CopySourceIfModifiedSince: past }, 'done'],
      [{ CopySourceIfModifiedSince: future }, 'PreconditionFailed'],
      [{ CopySourceIfUnmodifiedSince: future }, 'done'],
      [{ CopySourceIfUnmodifiedSince: past }, 'PreconditionFailed'],
    ] as const)
      expect([conditions, await codeOf(copy(conditions))]).toEqual([conditions, expected]);
  });

  test('takes tags and metadata with it, or others', async () => {
    const source = { Bucket: bucket.name, Key: 'key', Body: CONTENT, Tagging: 'a=1', Metadata: { color: 'blue' } };
    await client.send(new s3.PutObjectCommand(source));
    const colorOfCopy = async (): Promise<string | undefined> =>
      (await client.send(new s3.HeadObjectCommand({ Bucket: bucket.name, Key: 'copy' }))).Metadata?.color;
    await copy();
    expect([await tagsOfCopy(), await colorOfCopy()]).toEqual([{ a: '1' }, 'blue']);
    await copy({ TaggingDirective: 'REPLACE', Tagging: 'b=2' });
    expect([await tagsOfCopy(), await colorOfCopy()]).toEqual([{ b: '2' }, 'blue']);
    await copy({ MetadataDirective: 'REPLACE', Metadata: { color: 'red' } });
    expect([await tagsOfCopy(), await colorOfCopy()]).toEqual([{ a: '1' }, 'red']);
    const Tagging = { TagSet: [{ Key: 'c', Value: '3' }] };
    await client.send(new s3.PutObjectTaggingCommand({ Bucket: bucket.name, Key: 'copy', Tagging }));
    expect(await tagsOfCopy()).toEqual({ c: '3' });
    await client.send(new s3.DeleteObjectTaggingCommand({ Bucket: bucket.name, Key: 'copy' }));
    expect(await tagsOfCopy()).toEqual({});
  });
});

test('metadata in UTF-8 is signed as it is sent, and comes back', async () => {
  // Node.js sends each character below 256 as one byte.
  const bytes = Buffer.from('größe €').toString('latin1');
  const change = (_: URL, headers: Record<string, string>): void => void (headers['x-amz-meta-color'] = bytes);
  expect(await sendPut({ headers: { 'x-amz-meta-color': 'größe €' }, change })).toMatch(/^200/);
  const { Metadata } = await client.send(new s3.HeadObjectCommand({ Bucket: bucket.name, Key: 'key' }));
  expect(Buffer.from(Metadata?.color ?? '', 'latin1').toString()).toBe('größe €');
});

test('a body is asked for when the rights are there, and not before', async () => {
  const put = (address: string): Promise<[boolean, number]> =>
    new Promise((resolve, reject) => {
      let isInvited = false;
      const headers = { expect: '100-continue', 'content-length': String(CONTENT.length) };
      const request = http.request(address, { method: 'PUT', headers, agent: false });
      request.on('continue', () => ((isInvited = true), request.end(CONTENT)));
      request.on('response', (response) => (resolve([isInvited, response.statusCode ?? 0]), request.destroy()));
      request.on('error', reject).flushHeaders();
    });
  const address = `${world.endpoint}/${bucket.name}/expected`;
  expect(await put(address)).toEqual([false, 403]);
  const at = { endpoint: world.endpoint, bucket: bucket.name, key: 'expected', region: 'local', credentials };
  expect(await put(presignUrl({ ...at, method: 'PUT', expiresSeconds: 60 }))).toEqual([true, 200]);
});
