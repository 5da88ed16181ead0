// Who may do what over S3, what is not offered, and what is counted of it.
import { request } from 'node:http';
import * as s3 from '@aws-sdk/client-s3';
import { EMPTY_SHA256, signedHeaders } from '../../core/protocols/sigv4';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';
import { retryCheck } from '../support/wait_for';

let world: S3Service;
let client: s3.S3Client;

beforeAll(async () => {
  world = await startS3();
  client = world.client();
}, 60_000);
afterAll(() => world.close());

const put = (Bucket: string, Key: string, more: object = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body: Key, ...more }));
const anybody = async (bucket: string, key: string): Promise<number> =>
  (await fetch(`${world.endpoint}/${bucket}/${key}`)).status;
const setPolicy = async (id: string, statements: object[]): Promise<void> => {
  const answer = await world.service.call('PUT', `/v2/buckets/${id}/policy`, { body: { statements } });
  expect(answer.status).toBe(200);
};

test('a policy lets in and keeps out, and a deny wins over a grant, an allow and public access', async () => {
  const { id, name } = await world.bucket();
  const key = await world.key({ grants: [] });
  const guest = world.client(key, { maxAttempts: 1 });
  for (const Key of ['in/a', 'in/secret', 'out/a']) await put(name, Key);
  const read = (Key: string, as = guest) => codeOf(as.send(new s3.GetObjectCommand({ Bucket: name, Key })));
  const list = (Prefix: string) => codeOf(guest.send(new s3.ListObjectsV2Command({ Bucket: name, Prefix })));
  expect([await read('in/a'), await list('in/')]).toEqual(['AccessDenied', 'AccessDenied']);
  const allow = {
    ...{ effect: 'allow', principals: [key.access_key_id], resources: ['in/*'] },
    actions: ['s3:GetObject', 's3:ListBucket'],
  };
  await setPolicy(id, [allow]);
  await retryCheck(async () => expect(await read('in/a')).toBe('done'));
  expect([await read('in/secret'), await list('in/'), await read('out/a'), await list('out/')]).toEqual([
    ...['done', 'done', 'AccessDenied', 'AccessDenied'],
  ]);
  const deny = { effect: 'deny', principals: ['*'], actions: ['s3:Get*'], resources: ['*secret'] };
  await setPolicy(id, [allow, deny, { ...allow, actions: ['s3:*'] }]);
  await retryCheck(async () => expect(await read('in/secret')).toBe('AccessDenied'));
  // A key with every permission, and everybody in a public bucket.
  expect([await read('in/secret', client), await read('in/a', client)]).toEqual(['AccessDenied', 'done']);
  await world.service.call('PATCH', `/v2/buckets/${id}`, { body: { access: 'public_read' } });
  await retryCheck(async () => expect(await anybody(name, 'out/a')).toBe(200));
  expect(await anybody(name, 'in/secret')).toBe(403);
});

test('canned access of objects and buckets is private or public-read', async () => {
  const { id, name } = await world.bucket();
  await put(name, 'open', { ACL: 'public-read' });
  await put(name, 'closed', { ACL: 'private' });
  expect([await anybody(name, 'open'), await anybody(name, 'closed')]).toEqual([200, 403]);
  const acl = await client.send(new s3.GetObjectAclCommand({ Bucket: name, Key: 'open' }));
  expect(acl.Grants?.map(({ Permission }) => Permission).sort()).toEqual(['FULL_CONTROL', 'READ']);
  await client.send(new s3.PutObjectAclCommand({ Bucket: name, Key: 'open', ACL: 'private' }));
  await client.send(new s3.PutObjectAclCommand({ Bucket: name, Key: 'closed', ACL: 'public-read' }));
  expect([await anybody(name, 'open'), await anybody(name, 'closed')]).toEqual([403, 200]);
  await client.send(new s3.PutBucketAclCommand({ Bucket: name, ACL: 'public-read' }));
  expect((await world.service.call('GET', `/v2/buckets/${id}`)).body.access).toBe('public_read');
});

test('what is not offered answers NotImplemented, and does nothing', async () => {
  const { name: Bucket } = await world.bucket({ versioning: true });
  await put(Bucket, 'a');
  const Key = 'a';
  const grant = { Grantee: { Type: 'CanonicalUser' as const, ID: 'x' }, Permission: 'READ' as const };
  const refused = [
    client.send(new s3.PutObjectCommand({ Bucket, Key, ACL: 'authenticated-read' })),
    client.send(new s3.PutObjectCommand({ Bucket, Key, GrantRead: 'id=x' })),
    client.send(new s3.PutObjectCommand({ Bucket, Key, ServerSideEncryption: 'aws:kms' })),
    client.send(new s3.PutObjectCommand({ Bucket, Key, StorageClass: 'GLACIER' })),
    client.send(new s3.PutObjectAclCommand({ Bucket, Key, AccessControlPolicy: { Grants: [grant] } })),
    client.send(new s3.PutBucketAclCommand({ Bucket, AccessControlPolicy: { Grants: [grant] } })),
    client.send(new s3.GetObjectTorrentCommand({ Bucket, Key })),
    client.send(
      new s3.SelectObjectContentCommand({
        ...{ Bucket, Key, Expression: 'select * from s3object', ExpressionType: 'SQL' },
        ...{ InputSerialization: { CSV: {} }, OutputSerialization: { CSV: {} } },
      }),
    ),
    client.send(new s3.RestoreObjectCommand({ Bucket, Key })),
    client.send(new s3.ListBucketInventoryConfigurationsCommand({ Bucket })),
  ];
  for (const call of refused) expect(await codeOf(call)).toBe('NotImplemented');
  expect((await client.send(new s3.ListObjectVersionsCommand({ Bucket }))).Versions).toHaveLength(1);
});

test('a bucket has a host name of its own', async () => {
  const { name } = await world.bucket();
  const key = await world.key();
  const credentials = { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
  const host = `${name}.${world.service.platform.config.s3Domain}`;
  const ask = (method: string, path: string, body = ''): Promise<[number, string]> =>
    new Promise((resolve, reject) => {
      const url = new URL(`http://${host}${path}`);
      const payloadHash = body ? 'UNSIGNED-PAYLOAD' : EMPTY_SHA256;
      const signed = signedHeaders({ method, url, payloadHash, region: 'local', credentials });
      const headers = { ...signed, 'content-length': String(Buffer.byteLength(body)) };
      request(world.endpoint + url.pathname + url.search, { method, headers }, (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.on('end', () => resolve([response.statusCode ?? 0, String(Buffer.concat(pieces))]));
      })
        .on('error', reject)
        .end(body);
    });
  expect((await ask('PUT', '/dir/a%20b', 'content'))[0]).toBe(200);
  expect(await ask('GET', '/dir/a%20b')).toEqual([200, 'content']);
  expect((await ask('GET', '/?list-type=2&prefix=dir%2F'))[1]).toContain('<Key>dir/a b</Key>');
  expect((await client.send(new s3.HeadObjectCommand({ Bucket: name, Key: 'dir/a b' }))).ContentLength).toBe(7);
});

test('requests and egress of a day are counted as they were', async () => {
  const { id, name } = await world.bucket();
  await put(name, 'a', { Body: 'x'.repeat(1000) });
  for (let turn = 0; turn < 5; turn += 1)
    await (await client.send(new s3.GetObjectCommand({ Bucket: name, Key: 'a' }))).Body?.transformToString();
  await client.send(new s3.GetObjectCommand({ Bucket: name, Key: 'a', Range: 'bytes=0-99' }));
  expect(await anybody(name, 'a')).toBe(403);
  await retryCheck(async () => {
    const { body } = await world.service.call('GET', `/v2/buckets/${id}/usage`);
    expect(body).toMatchObject({ size_bytes: 1000, object_count: 1, egress_bytes: 5100, requests: 8 });
    const today = new Date().toISOString().slice(0, 10);
    expect(body.daily.reduce((sum: number, day: { requests: number }) => sum + day.requests, 0)).toBe(8);
    expect(body.daily.at(-1).date <= today).toBe(true);
  });
});
