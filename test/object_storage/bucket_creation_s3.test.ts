// Buckets that clients create and delete over S3: by keys that may, by the rules of the API, and as AWS answers.
import * as s3 from '@aws-sdk/client-s3';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;
const QUOTA = 12;
const region = 'local';

beforeAll(async () => {
  world = await startS3({ QUOTAS: JSON.stringify({ buckets: QUOTA }) });
  client = world.client(undefined, { region });
}, 60_000);

afterAll(() => world.close());

const create = (Bucket: string, more: Partial<s3.CreateBucketCommandInput> = {}, by = client) =>
  by.send(new s3.CreateBucketCommand({ Bucket, ...more }));
const remove = (Bucket: string, by = client) => by.send(new s3.DeleteBucketCommand({ Bucket }));
const found = async (name: string) => (await world.service.call('GET', `/v2/buckets?name=${name}`)).body.data[0];
const activityOf = async (action: string) =>
  (await world.service.call('GET', `/v2/projects/${world.service.project}/activity?action=${action}`)).body.data;

test('a bucket made over S3 is a bucket of the API, and is used at once', async () => {
  const key = await world.key({ name: 'Terraform' });
  const by = world.client(key, { region });
  const made = await create('made-over-s3', {}, by);
  expect(made.Location).toBe('/made-over-s3');
  await by.send(new s3.PutObjectCommand({ Bucket: 'made-over-s3', Key: 'a', Body: 'x' }));
  const bucket = await found('made-over-s3');
  expect(bucket).toMatchObject({ region, access: 'private', versioning: false, object_lock: false });
  const [entry] = await activityOf('bucket.created');
  expect(entry).toMatchObject({
    actor: { type: 'access_key', id: key.id, name: 'Terraform' },
    resource: { type: 'bucket', id: bucket.id, name: 'made-over-s3' },
  });
  expect(await codeOf(remove('made-over-s3', by))).toBe('BucketNotEmpty');
  await by.send(new s3.DeleteObjectCommand({ Bucket: 'made-over-s3', Key: 'a' }));
  await remove('made-over-s3', by);
  expect(await codeOf(by.send(new s3.HeadBucketCommand({ Bucket: 'made-over-s3' })))).toBe(404);
  expect(await found('made-over-s3')).toBeUndefined();
  expect((await activityOf('bucket.deleted'))[0]).toMatchObject({ actor: { id: key.id } });
  // The name is free again once the files are gone, which the request waits for.
  await create('made-over-s3', {}, by);
  await remove('made-over-s3', by);
});

test('a bucket that is protected, or whose whole project is, is not deleted over S3', async () => {
  await create('kept-over-s3');
  const { id } = await found('kept-over-s3');
  const set = (path: string, deletion_protection: boolean): Promise<unknown> =>
    world.service.call('PATCH', path, { body: { deletion_protection } });
  for (const path of [`/v2/buckets/${id}`, `/v2/projects/${world.service.project}`]) {
    await set(path, true);
    expect([path, await codeOf(remove('kept-over-s3'))]).toEqual([path, 'AccessDenied']);
    await set(path, false);
  }
  await remove('kept-over-s3');
});

test('names, regions and clashes are answered as AWS answers them', async () => {
  await create('names-own');
  expect(await codeOf(create('names-own'))).toBe('BucketAlreadyOwnedByYou');
  const stranger = await world.service.newProject({ stranger: true });
  const foreign = await world.service.call('POST', '/v2/buckets', {
    ...{ key: stranger.key, project: stranger.id, body: { name: 'names-foreign' } },
  });
  expect(foreign.status).toBe(201);
  expect(await codeOf(create('names-foreign'))).toBe('BucketAlreadyExists');
  expect(await codeOf(remove('names-foreign'))).toBe('AccessDenied');
  for (const name of ['ab', 'Upper-Case', 'under_score', 'dots.are.labels', '-edge', 'x'.repeat(64)])
    expect([name, await codeOf(create(name))]).toEqual([name, 'InvalidBucketName']);
  const at = (LocationConstraint: string) =>
    create('names-region', { CreateBucketConfiguration: { LocationConstraint: LocationConstraint as 'EU' } });
  for (const other of ['eu-central-1', 'us-east-1', 'EU'])
    expect([other, await codeOf(at(other))]).toEqual([other, 'InvalidLocationConstraint']);
  await at(region);
  const { LocationConstraint } = await client.send(new s3.GetBucketLocationCommand({ Bucket: 'names-region' }));
  expect(LocationConstraint).toBe(region);
  const tags = { CreateBucketConfiguration: { Tags: [{ Key: 'a', Value: 'b' }] } };
  expect(await codeOf(create('names-tags', tags))).toBe('NotImplemented');
  expect(await found('names-tags')).toBeUndefined();
  for (const name of ['names-own', 'names-region']) await remove(name);
});

test('object lock can be asked for', async () => {
  await create('locked-over-s3', { ObjectLockEnabledForBucket: true });
  expect(await found('locked-over-s3')).toMatchObject({ object_lock: true, versioning: true });
  await remove('locked-over-s3');
});

test('keys that may not create or delete change nothing', async () => {
  const bucket = await world.bucket({ name: 'rights-bucket' });
  const grants = {
    reader: [{ permission: 'read' }],
    writer: [{ permission: 'read_write' }],
    ofBucket: [{ bucket_id: bucket.id, permission: 'full' }],
    none: [],
  };
  for (const [name, of] of Object.entries(grants)) {
    const by = world.client(await world.key({ grants: of }), { region });
    expect([name, await codeOf(create('rights-new', {}, by))]).toEqual([name, 'AccessDenied']);
    // The name of a bucket of others tells nothing to who may not create one.
    expect([name, await codeOf(create('names-foreign', {}, by))]).toEqual([name, 'AccessDenied']);
    if (name !== 'ofBucket') expect([name, await codeOf(remove('rights-bucket', by))]).toEqual([name, 'AccessDenied']);
  }
  expect(await found('rights-new')).toBeUndefined();
  const anonymous = await fetch(`${world.endpoint}/rights-new`, { method: 'PUT' });
  expect(anonymous.status).toBe(403);
  // A grant that names a bucket wins over the one for all, also where it allows less.
  const both = await world.key({ grants: [{ permission: 'full' }, { bucket_id: bucket.id, permission: 'read' }] });
  expect(await codeOf(remove('rights-bucket', world.client(both, { region })))).toBe('AccessDenied');
  const Policy = JSON.stringify({
    Statement: { Effect: 'Deny', Principal: '*', Action: 's3:DeleteBucket', Resource: 'arn:aws:s3:::rights-bucket' },
  });
  await client.send(new s3.PutBucketPolicyCommand({ Bucket: 'rights-bucket', Policy }));
  expect(await codeOf(remove('rights-bucket'))).toBe('AccessDenied');
  await client.send(new s3.DeleteBucketPolicyCommand({ Bucket: 'rights-bucket' }));
  await remove('rights-bucket', world.client(await world.key({ grants: grants.ofBucket }), { region }));
});

test('a bucket that the API would not delete stays', async () => {
  const bucket = await world.bucket({ name: 'behind-a-zone', access: 'public_read' });
  const zone = await world.service.call('POST', '/v2/cdn_zones', {
    body: { name: 'zone', origin: { type: 'bucket', bucket_id: bucket.id } },
  });
  expect([zone.status, zone.text]).toEqual([201, zone.text]);
  expect(await codeOf(remove('behind-a-zone'))).toBe('InvalidBucketState');
  expect(await found('behind-a-zone')).toBeDefined();
  await world.service.call('DELETE', `/v2/cdn_zones/${zone.body.id}`);
});

test('the quota of buckets holds against many that come at once, and one name goes to one of them', async () => {
  const before = (await world.service.call('GET', '/v2/buckets?limit=100')).body.data.length;
  const calls = Array.from({ length: 20 }, (_, index) => codeOf(create(`race-${index}`)));
  const codes = await Promise.all(calls);
  const after = (await world.service.call('GET', '/v2/buckets?limit=100')).body.data.length;
  expect(after).toBe(QUOTA);
  expect(codes.filter((code) => code === 'done')).toHaveLength(QUOTA - before);
  expect(codes.filter((code) => code === 'TooManyBuckets')).toHaveLength(20 - QUOTA + before);
  for (const [index, code] of codes.entries()) if (code === 'done') await remove(`race-${index}`);
  const same = await Promise.all(Array.from({ length: 10 }, () => codeOf(create('race-same'))));
  expect(same.filter((code) => code === 'done')).toHaveLength(1);
  expect(same.filter((code) => code === 'BucketAlreadyOwnedByYou')).toHaveLength(9);
  await remove('race-same');
});
