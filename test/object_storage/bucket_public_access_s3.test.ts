// ACLs, ownership controls and public access block: what they ask for is honoured or refused, never passed over.
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;
const BLOCKED = { BlockPublicAcls: true, IgnorePublicAcls: true, BlockPublicPolicy: true, RestrictPublicBuckets: true };
const OPEN = {
  BlockPublicAcls: false,
  IgnorePublicAcls: false,
  BlockPublicPolicy: false,
  RestrictPublicBuckets: false,
};

beforeAll(async () => {
  world = await startS3();
  client = world.client(undefined, { region: 'local' });
}, 60_000);

afterAll(() => world.close());

const put = (Bucket: string, Key: string, more: Partial<s3.PutObjectCommandInput> = {}) =>
  client.send(new s3.PutObjectCommand({ Bucket, Key, Body: 'x', ...more }));
const anybody = async (Bucket: string, key: string): Promise<number> =>
  (await fetch(`${world.endpoint}/${Bucket}/${key}`)).status;
const block = (Bucket: string, more: s3.PublicAccessBlockConfiguration) =>
  client.send(new s3.PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: more }));
const blockOf = async (Bucket: string) =>
  (await client.send(new s3.GetPublicAccessBlockCommand({ Bucket }))).PublicAccessBlockConfiguration;
const own = (Bucket: string, ObjectOwnership: s3.ObjectOwnership) =>
  client.send(
    new s3.PutBucketOwnershipControlsCommand({ Bucket, OwnershipControls: { Rules: [{ ObjectOwnership }] } }),
  );
const ownerOf = async (Bucket: string) =>
  (await client.send(new s3.GetBucketOwnershipControlsCommand({ Bucket }))).OwnershipControls?.Rules;
const policy = (Bucket: string, Principal: unknown, more: object = {}) => {
  const statement = { Effect: 'Allow', Principal, Action: 's3:GetObject', Resource: `arn:aws:s3:::${Bucket}/*` };
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [{ ...statement, ...more }] });
  return client.send(new s3.PutBucketPolicyCommand({ Bucket, Policy }));
};
const AT_HOME = { Condition: { IpAddress: { 'aws:SourceIp': ['127.0.0.0/8', '::1/128'] } } };

test('a bucket made over S3 is as AWS makes it: blocked for the public, and without ACLs', async () => {
  const Bucket = 'new-over-s3';
  await client.send(new s3.CreateBucketCommand({ Bucket }));
  expect(await blockOf(Bucket)).toEqual(BLOCKED);
  expect(await ownerOf(Bucket)).toEqual([{ ObjectOwnership: 'BucketOwnerEnforced' }]);
  for (const ACL of ['public-read', 'public-read-write', 'authenticated-read'] as const)
    expect([ACL, await codeOf(put(Bucket, 'a', { ACL }))]).toEqual([ACL, 'AccessControlListNotSupported']);
  expect(await codeOf(put(Bucket, 'a', { GrantRead: 'id=x' }))).toBe('AccessControlListNotSupported');
  // What changes nothing is taken: clients send it by default.
  for (const ACL of ['private', 'bucket-owner-full-control'] as const) await put(Bucket, 'a', { ACL });
  const acl = (ACL: 'public-read' | 'private') => client.send(new s3.PutObjectAclCommand({ Bucket, Key: 'a', ACL }));
  expect([await codeOf(acl('public-read')), await codeOf(acl('private'))]).toEqual([
    'AccessControlListNotSupported',
    'done',
  ]);
  const ofBucket = new s3.PutBucketAclCommand({ Bucket, ACL: 'public-read' });
  expect(await codeOf(client.send(ofBucket))).toBe('AccessControlListNotSupported');
  expect(await codeOf(policy(Bucket, '*'))).toBe('AccessDenied');
  // The API says why it does not open the bucket either, and how it can be opened.
  const { id } = (await world.service.call('GET', `/v2/buckets?name=${Bucket}`)).body.data[0];
  const opened = () => world.service.call('PATCH', `/v2/buckets/${id}`, { body: { access: 'public_read' } });
  expect((await opened()).body).toMatchObject({ code: 'validation_failed', errors: [{ field: 'access' }] });
  const statements = [{ effect: 'allow', principals: ['*'], actions: ['s3:GetObject'], resources: ['*'] }];
  const overApi = await world.service.call('PUT', `/v2/buckets/${id}/policy`, { body: { statements } });
  expect(overApi.body.code).toBe('policy_invalid');
  await client.send(new s3.DeletePublicAccessBlockCommand({ Bucket }));
  expect(await codeOf(blockOf(Bucket))).toBe('NoSuchPublicAccessBlockConfiguration');
  expect([(await opened()).status, await anybody(Bucket, 'a')]).toEqual([200, 200]);
});

test('canned ACLs of CreateBucket are answered as AWS answers them', async () => {
  const create = (Bucket: string, more: Partial<s3.CreateBucketCommandInput>) =>
    codeOf(client.send(new s3.CreateBucketCommand({ Bucket, ...more })));
  expect(await create('acl-public', { ACL: 'public-read' })).toBe('InvalidBucketAclWithObjectOwnership');
  const writer = { ObjectOwnership: 'ObjectWriter' } as const;
  expect(await create('acl-public', { ACL: 'public-read', ...writer })).toBe(
    'InvalidBucketAclWithBlockPublicAccessError',
  );
  expect(await create('acl-public', { ACL: 'public-read-write' })).toBe('NotImplemented');
  expect(await create('acl-public', { ObjectOwnership: 'Nobody' as 'ObjectWriter' })).toBe('InvalidArgument');
  expect(await create('acl-private', { ACL: 'private' })).toBe('done');
  expect(await create('acl-writer', writer)).toBe('done');
  expect(await ownerOf('acl-writer')).toEqual([{ ObjectOwnership: 'ObjectWriter' }]);
  expect(await codeOf(put('acl-writer', 'a', { ACL: 'public-read' }))).toBe('AccessDenied');
});

test('a bucket of the API has neither, until a client sets them, and both read back', async () => {
  const { name: Bucket } = await world.bucket();
  expect(await codeOf(blockOf(Bucket))).toBe('NoSuchPublicAccessBlockConfiguration');
  expect(await codeOf(ownerOf(Bucket))).toBe('OwnershipControlsNotFoundError');
  await block(Bucket, { BlockPublicAcls: true });
  expect(await blockOf(Bucket)).toEqual({ ...OPEN, BlockPublicAcls: true });
  for (const one of ['BucketOwnerPreferred', 'ObjectWriter', 'BucketOwnerEnforced'] as const) {
    await own(Bucket, one);
    expect(await ownerOf(Bucket)).toEqual([{ ObjectOwnership: one }]);
  }
  expect(await codeOf(own(Bucket, 'Nobody' as 'ObjectWriter'))).toBe('InvalidArgument');
  await client.send(new s3.DeleteBucketOwnershipControlsCommand({ Bucket }));
  expect(await codeOf(ownerOf(Bucket))).toBe('OwnershipControlsNotFoundError');
  const reader = world.client(await world.key({ grants: [{ permission: 'read_write' }] }));
  const changes = [
    reader.send(new s3.DeletePublicAccessBlockCommand({ Bucket })),
    reader.send(new s3.PutPublicAccessBlockCommand({ Bucket, PublicAccessBlockConfiguration: OPEN })),
    reader.send(new s3.DeleteBucketOwnershipControlsCommand({ Bucket })),
  ];
  for (const change of changes) expect(await codeOf(change)).toBe('AccessDenied');
  expect(await codeOf(reader.send(new s3.GetPublicAccessBlockCommand({ Bucket })))).toBe('done');
});

test('each part of a block does what it says, also to what was public before', async () => {
  const { id, name: Bucket } = await world.bucket();
  await put(Bucket, 'open', { ACL: 'public-read' });
  expect(await anybody(Bucket, 'open')).toBe(200);
  await block(Bucket, { BlockPublicAcls: true });
  expect([await codeOf(put(Bucket, 'b', { ACL: 'public-read' })), await anybody(Bucket, 'open')]).toEqual([
    'AccessDenied',
    200,
  ]);
  for (const ACL of ['public-read-write', 'authenticated-read'] as const)
    expect([ACL, await codeOf(put(Bucket, 'b', { ACL }))]).toEqual([ACL, 'AccessDenied']);
  await block(Bucket, { IgnorePublicAcls: true });
  expect(await anybody(Bucket, 'open')).toBe(403);
  await block(Bucket, OPEN);
  expect(await anybody(Bucket, 'open')).toBe(200);
  await own(Bucket, 'BucketOwnerEnforced');
  expect(await anybody(Bucket, 'open')).toBe(403);
  const { Grants } = await client.send(new s3.GetObjectAclCommand({ Bucket, Key: 'open' }));
  expect(Grants).toMatchObject([{ Permission: 'FULL_CONTROL' }]);
  await own(Bucket, 'ObjectWriter');
  // `access` of the API says what holds.
  await client.send(new s3.PutBucketAclCommand({ Bucket, ACL: 'public-read' }));
  await put(Bucket, 'plain');
  expect(await codeOf(own(Bucket, 'BucketOwnerEnforced'))).toBe('InvalidBucketAclWithObjectOwnership');
  expect(await anybody(Bucket, 'plain')).toBe(200);
  await block(Bucket, { IgnorePublicAcls: true });
  expect(await anybody(Bucket, 'plain')).toBe(403);
  expect((await world.service.call('GET', `/v2/buckets/${id}`)).body).toMatchObject({ access: 'private' });
});

test('a public policy is refused or restricted; one for fixed addresses is not public', async () => {
  const { name: Bucket } = await world.bucket();
  await put(Bucket, 'a');
  const isPublic = async () =>
    (await client.send(new s3.GetBucketPolicyStatusCommand({ Bucket }))).PolicyStatus?.IsPublic;
  await policy(Bucket, '*');
  expect([await isPublic(), await anybody(Bucket, 'a')]).toEqual([true, 200]);
  await block(Bucket, { RestrictPublicBuckets: true });
  expect(await anybody(Bucket, 'a')).toBe(403);
  const none = world.client(await world.key({ grants: [] }));
  expect(await codeOf(none.send(new s3.GetObjectCommand({ Bucket, Key: 'a' })))).toBe('done');
  const stranger = await world.service.newProject({ stranger: true });
  const foreign = await world.service.call('POST', '/v2/bucket_access_keys', {
    ...{ key: stranger.key, project: stranger.id, body: { name: 'foreign', grants: [] } },
  });
  const other = world.client(foreign.body);
  expect(await codeOf(other.send(new s3.GetObjectCommand({ Bucket, Key: 'a' })))).toBe('AccessDenied');
  await block(Bucket, { BlockPublicPolicy: true });
  expect(await codeOf(policy(Bucket, { AWS: '*' }))).toBe('AccessDenied');
  for (const wide of ['0.0.0.0/0', '64.0.0.0/2', '2000::/16'])
    expect([
      wide,
      await codeOf(policy(Bucket, '*', { Condition: { IpAddress: { 'aws:SourceIp': ['127.0.0.1', wide] } } })),
    ]).toEqual([wide, 'AccessDenied']);
  await policy(Bucket, '*', AT_HOME);
  expect([await isPublic(), await anybody(Bucket, 'a')]).toEqual([false, 200]);
  await block(Bucket, { RestrictPublicBuckets: true });
  expect(await anybody(Bucket, 'a')).toBe(200);
});

test('grants and documents mean the same as the canned ACLs, or are refused', async () => {
  const { name: Bucket } = await world.bucket();
  const ID = world.service.project;
  const URI = 'http://acs.amazonaws.com/groups/global/AllUsers';
  const GrantFullControl = `id="${ID}"`;
  await put(Bucket, 'a', { GrantFullControl, GrantRead: `uri="${URI}"` });
  expect(await anybody(Bucket, 'a')).toBe(200);
  await put(Bucket, 'a', { GrantFullControl });
  expect(await anybody(Bucket, 'a')).toBe(403);
  // What a client has read it may write back, with a grant more: s3cmd and consoles do so.
  const acl = await client.send(new s3.GetObjectAclCommand({ Bucket, Key: 'a' }));
  const write = (Grants: s3.Grant[], Owner = acl.Owner) =>
    client.send(new s3.PutObjectAclCommand({ Bucket, Key: 'a', AccessControlPolicy: { Owner, Grants } }));
  await write([...(acl.Grants ?? []), { Grantee: { Type: 'Group', URI }, Permission: 'READ' }]);
  expect(await anybody(Bucket, 'a')).toBe(200);
  await write(acl.Grants ?? []);
  expect(await anybody(Bucket, 'a')).toBe(403);
  for (const refused of [
    [...(acl.Grants ?? []), { Grantee: { Type: 'Group' as const, URI }, Permission: 'WRITE' as const }],
    [...(acl.Grants ?? []), { Grantee: { Type: 'CanonicalUser' as const, ID: 'x' }, Permission: 'READ' as const }],
    [{ Grantee: { Type: 'CanonicalUser' as const, ID }, Permission: 'READ' as const }],
    [],
  ])
    expect(await codeOf(write(refused))).toBe('NotImplemented');
  expect(await codeOf(write(acl.Grants ?? [], { ID: 'x' }))).toBe('AccessDenied');
  expect(await codeOf(put(Bucket, 'b', { ACL: 'nonsense' as 'private' }))).toBe('InvalidArgument');
  expect(await codeOf(put(Bucket, 'b', { ACL: 'private', GrantFullControl }))).toBe('InvalidRequest');
  expect(await codeOf(put(Bucket, 'b', { GrantRead: 'everybody' }))).toBe('InvalidArgument');
  const bucketAcl = await client.send(new s3.GetBucketAclCommand({ Bucket }));
  const { Owner, Grants = [] } = bucketAcl;
  const opened = [...Grants, { Grantee: { Type: 'Group' as const, URI }, Permission: 'READ' as const }];
  await client.send(new s3.PutBucketAclCommand({ Bucket, AccessControlPolicy: { Owner, Grants: opened } }));
  expect(await anybody(Bucket, 'a')).toBe(200);
});
