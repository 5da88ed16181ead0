// Object lock: what is retained or held stays, whoever asks, by whatever way, until its time is over.
import * as s3 from '@aws-sdk/client-s3';
import { applyLifecycle, LIFECYCLE_START } from '../../models/object_storage/bucket/lifecycle';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';

let world: S3Service;
let client: s3.S3Client;
const DAY_MS = 86_400_000;
const later = (days: number): Date => new Date(Math.ceil(Date.now() / 1000) * 1000 + days * DAY_MS);

beforeAll(async () => {
  world = await startS3();
  client = world.client();
}, 60_000);

afterAll(() => world.close());

const lockable = (more: object = {}) => world.bucket({ object_lock: true, ...more });
const put = async (Bucket: string, Key: string, more: object = {}): Promise<string> =>
  (await client.send(new s3.PutObjectCommand({ Bucket, Key, Body: 'content', ...more }))).VersionId as string;
const locked = (mode: 'GOVERNANCE' | 'COMPLIANCE', days = 10) => ({
  ...{ ObjectLockMode: mode, ObjectLockRetainUntilDate: later(days) },
});
const remove = (Bucket: string, Key: string, VersionId: string, more: object = {}, as = client) =>
  codeOf(as.send(new s3.DeleteObjectCommand({ Bucket, Key, VersionId, ...more })));
const retain = (Bucket: string, Key: string, Retention: object, more: object = {}, as = client) =>
  codeOf(as.send(new s3.PutObjectRetentionCommand({ Bucket, Key, Retention, ...more })));
const retentionOf = async (Bucket: string, Key: string, VersionId?: string) =>
  (await client.send(new s3.GetObjectRetentionCommand({ Bucket, Key, VersionId }))).Retention;
const BYPASS = { BypassGovernanceRetention: true };

describe('retention', () => {
  test('governance gives way to who may bypass it and asks, compliance to nobody', async () => {
    const { name: Bucket } = await lockable();
    for (const mode of ['GOVERNANCE', 'COMPLIANCE'] as const) {
      const version = await put(Bucket, mode, locked(mode));
      const head = await client.send(new s3.HeadObjectCommand({ Bucket, Key: mode }));
      expect(head).toMatchObject({ ObjectLockMode: mode, VersionId: version });
      expect(await remove(Bucket, mode, version)).toBe('AccessDenied');
      // A new version and a delete marker come beside it.
      await put(Bucket, mode);
      await client.send(new s3.DeleteObjectCommand({ Bucket, Key: mode }));
      expect(await remove(Bucket, mode, version, BYPASS)).toBe(mode === 'GOVERNANCE' ? 'done' : 'AccessDenied');
    }
    const [Key, VersionId] = ['COMPLIANCE', (await versions(Bucket, 'COMPLIANCE'))[1] as string];
    const found = await client.send(new s3.GetObjectCommand({ Bucket, Key, VersionId }));
    expect(await found.Body!.transformToString()).toBe('content');
  });

  test('is extended by all who write, and shortened or loosened by nobody in compliance', async () => {
    const { name: Bucket } = await lockable();
    const version = await put(Bucket, 'c', locked('COMPLIANCE', 10));
    const weaker = [
      { Mode: 'COMPLIANCE', RetainUntilDate: later(9) },
      { Mode: 'GOVERNANCE', RetainUntilDate: later(10) },
      { Mode: 'GOVERNANCE', RetainUntilDate: later(500) },
      {},
    ];
    for (const one of weaker) expect([one, await retain(Bucket, 'c', one, BYPASS)]).toEqual([one, 'AccessDenied']);
    expect(await retain(Bucket, 'c', { Mode: 'COMPLIANCE', RetainUntilDate: later(20) })).toBe('done');
    await put(Bucket, 'g', locked('GOVERNANCE', 10));
    for (const one of [weaker[0]!, weaker[3]!, { Mode: 'COMPLIANCE', RetainUntilDate: later(10) }])
      expect([one, await retain(Bucket, 'g', one)]).toEqual([one, 'AccessDenied']);
    expect(await retain(Bucket, 'g', { Mode: 'GOVERNANCE', RetainUntilDate: later(3) }, BYPASS)).toBe('done');
    expect(await retain(Bucket, 'g', {}, BYPASS)).toBe('done');
    expect(await codeOf(retentionOf(Bucket, 'g'))).toBe('NoSuchObjectLockConfiguration');
    // Not even by a statement of SQL that goes past the functions.
    for (const text of [
      `update bucket_objects set retain_until = now() + interval '1 second' where version_id = $1`,
      'update bucket_objects set retain_mode = null, retain_until = null where version_id = $1',
      `update bucket_objects set file_id = 'other' where version_id = $1`,
      'delete from bucket_objects where version_id = $1',
    ])
      await expect(world.service.sql(text, [version])).rejects.toThrow('ObjectLocked');
  });

  test('ends with its time, by the clock of the database', async () => {
    const { name: Bucket } = await lockable();
    const until = new Date(Date.now() + 2_000);
    const version = await put(Bucket, 'soon', { ObjectLockMode: 'COMPLIANCE', ObjectLockRetainUntilDate: until });
    expect(await remove(Bucket, 'soon', version)).toBe('AccessDenied');
    await new Promise((resolve) => setTimeout(resolve, until.getTime() - Date.now() + 300));
    expect(await remove(Bucket, 'soon', version)).toBe('done');
  });

  test('of what is malformed, over, or of a bucket without a lock is refused', async () => {
    const { name: Bucket } = await lockable();
    const { name: plain } = await world.bucket();
    await put(Bucket, 'a');
    await put(plain, 'a');
    const past = { ObjectLockMode: 'GOVERNANCE', ObjectLockRetainUntilDate: new Date(Date.now() - 1000) };
    expect(await codeOf(put(Bucket, 'b', past))).toBe('InvalidArgument');
    expect(await codeOf(put(Bucket, 'b', { ObjectLockMode: 'GOVERNANCE' }))).toBe('InvalidArgument');
    expect(await codeOf(put(Bucket, 'b', { ...locked('GOVERNANCE'), ObjectLockMode: 'NONE' }))).toBe('InvalidArgument');
    expect(await codeOf(put(plain, 'b', locked('GOVERNANCE')))).toBe('InvalidRequest');
    expect(await codeOf(put(plain, 'b', { ObjectLockLegalHoldStatus: 'ON' }))).toBe('InvalidRequest');
    expect(await retain(Bucket, 'a', { Mode: 'GOVERNANCE', RetainUntilDate: new Date(1) })).toBe('InvalidArgument');
    expect(await retain(Bucket, 'a', { Mode: 'governance', RetainUntilDate: later(1) })).toBe('MalformedXML');
    for (const Mode of ['constructor', 'toString', '__proto__']) {
      expect(await retain(Bucket, 'a', { Mode, RetainUntilDate: later(1) })).toBe('MalformedXML');
      const DefaultRetention = { Mode: Mode as 'GOVERNANCE', Days: 1 };
      const ObjectLockConfiguration = { ObjectLockEnabled: 'Enabled' as const, Rule: { DefaultRetention } };
      const command = new s3.PutObjectLockConfigurationCommand({ Bucket, ObjectLockConfiguration });
      expect(await codeOf(client.send(command))).toBe('MalformedXML');
    }
    expect(await codeOf(retentionOf(Bucket, 'a'))).toBe('NoSuchObjectLockConfiguration');
    expect(await retain(plain, 'a', { Mode: 'GOVERNANCE', RetainUntilDate: later(1) })).toBe('InvalidRequest');
    expect(await retain(Bucket, 'none', { Mode: 'GOVERNANCE', RetainUntilDate: later(1) })).toBe('NoSuchKey');
    const marker = await client.send(new s3.DeleteObjectCommand({ Bucket, Key: 'a' }));
    const onMarker = { VersionId: marker.VersionId };
    const retention = { Mode: 'GOVERNANCE', RetainUntilDate: later(1) };
    expect(await retain(Bucket, 'a', retention, onMarker)).toBe('MethodNotAllowed');
  });

  test('comes with uploads in parts and with copies, and not with their source', async () => {
    const { name: Bucket } = await lockable();
    const [Key, mode] = ['parts', locked('COMPLIANCE')];
    const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key, ...mode }));
    const part = { Bucket, Key, UploadId, PartNumber: 1 };
    const { ETag } = await client.send(new s3.UploadPartCommand({ ...part, Body: 'part' }));
    const MultipartUpload = { Parts: [{ ETag, PartNumber: 1 }] };
    const made = await client.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }));
    expect(await remove(Bucket, Key, made.VersionId as string, BYPASS)).toBe('AccessDenied');
    const copy = (more: object, to: string) =>
      client.send(new s3.CopyObjectCommand({ Bucket, Key: to, CopySource: `${Bucket}/${Key}`, ...more }));
    await copy({}, 'free');
    expect(await codeOf(retentionOf(Bucket, 'free'))).toBe('NoSuchObjectLockConfiguration');
    const { VersionId } = await copy(locked('GOVERNANCE'), 'kept');
    expect(await remove(Bucket, 'kept', VersionId as string)).toBe('AccessDenied');
    // Of a single file too.
    await put(Bucket, Key);
    await copy(locked('COMPLIANCE'), 'kept');
    expect(await retentionOf(Bucket, 'kept')).toMatchObject({ Mode: 'COMPLIANCE' });
  });
});

test('a legal hold keeps a version until it is taken away', async () => {
  const { name: Bucket } = await lockable();
  const version = await put(Bucket, 'a', { ObjectLockLegalHoldStatus: 'ON' });
  const hold = (Status: 'ON' | 'OFF', as = client) =>
    codeOf(as.send(new s3.PutObjectLegalHoldCommand({ Bucket, Key: 'a', LegalHold: { Status } })));
  const status = async () =>
    (await client.send(new s3.GetObjectLegalHoldCommand({ Bucket, Key: 'a' }))).LegalHold?.Status;
  expect([await remove(Bucket, 'a', version, BYPASS), await status()]).toEqual(['AccessDenied', 'ON']);
  const { Deleted, Errors } = await client.send(
    new s3.DeleteObjectsCommand({
      ...{ Bucket, ...BYPASS },
      Delete: { Objects: [{ Key: 'a', VersionId: version }, { Key: 'none' }] },
    }),
  );
  expect(Errors).toMatchObject([{ Key: 'a', VersionId: version, Code: 'AccessDenied' }]);
  expect(Deleted).toMatchObject([{ Key: 'none' }]);
  expect([await hold('OFF'), await status(), await remove(Bucket, 'a', version)]).toEqual(['done', 'OFF', 'done']);
  await put(Bucket, 'b');
  expect(await codeOf(client.send(new s3.GetObjectLegalHoldCommand({ Bucket, Key: 'b' })))).toBe(
    'NoSuchObjectLockConfiguration',
  );
});

describe('rights', () => {
  test('who writes may retain, and neither bypass governance nor hold', async () => {
    const { name: Bucket } = await lockable();
    const writer = world.client(await world.key({ grants: [{ permission: 'read_write' }] }));
    const made = await writer.send(
      new s3.PutObjectCommand({ Bucket, Key: 'a', Body: 'x', ...locked('GOVERNANCE', 2) }),
    );
    expect(await retain(Bucket, 'a', { Mode: 'GOVERNANCE', RetainUntilDate: later(3) }, BYPASS, writer)).toBe('done');
    expect(await retain(Bucket, 'a', {}, BYPASS, writer)).toBe('AccessDenied');
    expect(await remove(Bucket, 'a', made.VersionId as string, BYPASS, writer)).toBe('AccessDenied');
    const hold = { Bucket, Key: 'a', LegalHold: { Status: 'ON' as const } };
    expect(await codeOf(writer.send(new s3.PutObjectLegalHoldCommand(hold)))).toBe('AccessDenied');
    const reader = world.client(await world.key({ grants: [{ permission: 'read' }] }));
    const head = await reader.send(new s3.HeadObjectCommand({ Bucket, Key: 'a' }));
    expect(head.ObjectLockMode).toBe('GOVERNANCE');
    expect(await retain(Bucket, 'a', { Mode: 'GOVERNANCE', RetainUntilDate: later(9) }, {}, reader)).toBe(
      'AccessDenied',
    );
  });

  test('a policy takes the bypass away, and everybody who reads does not learn of locks', async () => {
    const { id, name: Bucket } = await lockable({ access: 'public_read' });
    const deny = { effect: 'deny', principals: ['*'], actions: ['s3:BypassGovernanceRetention'], resources: ['*'] };
    const policy = await world.service.call('PUT', `/v2/buckets/${id}/policy`, { body: { statements: [deny] } });
    expect(policy.status).toBe(200);
    const version = await put(Bucket, 'a', locked('GOVERNANCE'));
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(await remove(Bucket, 'a', version, BYPASS)).toBe('AccessDenied');
    expect(await retain(Bucket, 'a', {}, BYPASS)).toBe('AccessDenied');
    const seen = await fetch(`${world.endpoint}/${Bucket}/a`, { method: 'HEAD' });
    expect([seen.status, seen.headers.get('x-amz-object-lock-mode')]).toEqual([200, null]);
  });
});

describe('a bucket', () => {
  test('gives new versions its default retention, which is read back as it was written', async () => {
    const { id, name: Bucket } = await world.bucket({ versioning: true });
    const configure = (ObjectLockConfiguration: object) =>
      codeOf(client.send(new s3.PutObjectLockConfigurationCommand({ Bucket, ObjectLockConfiguration })));
    const get = () => client.send(new s3.GetObjectLockConfigurationCommand({ Bucket }));
    expect(await codeOf(get())).toBe('ObjectLockConfigurationNotFoundError');
    const rule = (retention: object) => ({ ObjectLockEnabled: 'Enabled', Rule: { DefaultRetention: retention } });
    expect(await configure(rule({ Mode: 'GOVERNANCE', Days: 1, Years: 1 }))).toBe('MalformedXML');
    expect(await configure(rule({ Mode: 'GOVERNANCE', Days: 0 }))).toBe('InvalidRetentionPeriod');
    expect(await configure(rule({ Mode: 'COMPLIANCE', Years: 1 }))).toBe('done');
    expect((await get()).ObjectLockConfiguration).toEqual(rule({ Mode: 'COMPLIANCE', Years: 1 }));
    const { body } = await world.service.call('GET', `/v2/buckets/${id}`);
    expect(body).toMatchObject({
      object_lock: true,
      default_retention: { mode: 'compliance', days: null, years: 1 },
    });
    const version = await put(Bucket, 'a');
    const { RetainUntilDate } = (await retentionOf(Bucket, 'a')) ?? {};
    expect(Math.abs(RetainUntilDate!.getTime() - Date.now() - 365 * DAY_MS)).toBeLessThan(2 * DAY_MS);
    expect(await remove(Bucket, 'a', version, BYPASS)).toBe('AccessDenied');
    expect(await configure({ ObjectLockEnabled: 'Enabled' })).toBe('done');
    await put(Bucket, 'b');
    expect(await codeOf(retentionOf(Bucket, 'b'))).toBe('NoSuchObjectLockConfiguration');
  });

  test('keeps its versions on, its lock, and what is locked in it', async () => {
    const { id, name: Bucket } = await lockable({ default_retention: { mode: 'governance', days: 3 } });
    await put(Bucket, 'a');
    const suspend = { Bucket, VersioningConfiguration: { Status: 'Suspended' as const } };
    expect(await codeOf(client.send(new s3.PutBucketVersioningCommand(suspend)))).toBe('InvalidBucketState');
    const call = (method: string, body?: object) => world.service.call(method, `/v2/buckets/${id}`, { body });
    for (const [body, field] of [
      [{ versioning: false }, 'versioning'],
      [{ object_lock: false }, 'object_lock'],
      [{ default_retention: { mode: 'compliance' } }, 'default_retention.days'],
    ] as const) {
      const { status, body: answer } = await call('PATCH', body);
      expect([status, answer.errors]).toEqual([422, [expect.objectContaining({ field, code: 'depends_on' })]]);
    }
    expect((await call('DELETE')).body.code).toBe('bucket_not_empty');
    expect((await call('PATCH', { default_retention: null })).body).toMatchObject({
      object_lock: true,
      default_retention: null,
    });
    const { id: plain } = await world.bucket();
    const without = await world.service.call('PATCH', `/v2/buckets/${plain}`, { body: { object_lock: true } });
    expect(without.body.errors).toMatchObject([{ field: 'object_lock' }]);
  });

  test('leaves what is locked to a later pass of its lifecycle', async () => {
    const { id, name: Bucket } = await lockable();
    await put(Bucket, 'a', locked('GOVERNANCE', 1));
    const held = await put(Bucket, 'a', { ObjectLockLegalHoldStatus: 'ON' });
    const free = await put(Bucket, 'a');
    const last = await put(Bucket, 'a');
    const rule = {
      ...{ id: 'all', enabled: true, prefix: '', expire_after_days: null, abort_incomplete_uploads_after_days: null },
      expire_noncurrent_after_days: 1,
    };
    const pass = async (days: number): Promise<void> => {
      let position: typeof LIFECYCLE_START | null = LIFECYCLE_START;
      const { database } = world.service.platform;
      while (position) position = await applyLifecycle(database, id, [rule], position, Date.now() + days * DAY_MS);
    };
    await pass(3);
    const left = await versions(Bucket, 'a');
    expect([left.length, left.includes(free), left.includes(held), left.includes(last)]).toEqual([
      ...[3, false, true, true],
    ]);
  });
});

async function versions(Bucket: string, Prefix: string): Promise<string[]> {
  const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket, Prefix }));
  return Versions.map(({ VersionId }) => VersionId as string);
}
