/** @tier heavy @quarter 2 @covers drivers/rgw */
// A platform whose buckets are in a RADOS Gateway, beside one with the embedded endpoint: the API does the same with
// both, and a few hundred requests over S3 are answered alike.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { probeBackupStore } from '../../../drivers/backup_store/probe';
import { driverContext } from '../../../core/driver';
import { openRgwApi } from '../../../drivers/rgw/api';
import { openStoreTrial } from '../../support/databases/backup_store';
import { hasCeph, startCeph, type Ceph } from '../../support/object_storage/ceph';
import { hasEngine } from '../../support/databases/database_hall';
import { codeOf, startS3, type S3Service } from '../../support/object_storage/s3';
import { tell, type Side, type Step, type Told } from '../../support/object_storage/s3_dialogue';
import { dialogue } from '../../support/object_storage/s3_requests';
import { restoreMariadbElsewhere } from '../../support/databases/stored_mariadb';
import { retryCheck } from '../../support/wait_for';

jest.setTimeout(180_000);

/** Gateways before Reef take no checksum in a trailer (docs/OBJECT_STORAGE.md). */
const OLD_CHECKSUMS = { requestChecksumCalculation: 'WHEN_REQUIRED' } as const;

(hasCeph ? describe : describe.skip)('with a RADOS Gateway (needs: radosgw, ceph-mon and ceph-osd)', () => {
  let ceph: Ceph;
  let gateway: S3Service;
  let embedded: S3Service;

  beforeAll(async () => {
    ceph = await startCeph();
    const { url, accessKeyId, secretAccessKey } = ceph.options;
    gateway = await startS3({ RGW_URL: url, RGW_ACCESS_KEY: accessKeyId, RGW_SECRET_KEY: secretAccessKey });
    embedded = await startS3();
  });
  afterAll(async () => {
    await gateway?.close();
    await embedded?.close();
    await ceph?.close();
  });

  async function sideOf(world: S3Service, more: object = {}): Promise<Side> {
    const bucket = await world.bucket(more);
    const keyWith = async (permission: string) => {
      const key = await world.key({ grants: [{ bucket_id: bucket.id, permission }] });
      return { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
    };
    const [writer, reader, full] = [await keyWith('read_write'), await keyWith('read'), await keyWith('full')];
    const other = await world.key({ grants: [] });
    const side = {
      ...{ endpoint: world === gateway ? ceph.options.url : world.endpoint, bucket: bucket.name },
      callers: {
        ...{ writer, reader, full, wrong: { ...writer, secretAccessKey: 'x'.repeat(40) } },
        other: { accessKeyId: other.access_key_id, secretAccessKey: other.secret_access_key },
        unknown: { accessKeyId: 'PKUNKNOWNUNKNOWNUNKN', secretAccessKey: 'x'.repeat(40) },
      },
    };
    await retryCheck(async () => {
      expect((await tell(side, { method: 'GET', as: 'full' }, new Map())).status).toBe(200);
      expect((await tell(side, { method: 'PUT', path: '/probe', body: 'x' }, new Map())).status).toBe(200);
    });
    await tell(side, { method: 'DELETE', path: '/probe', as: 'full' }, new Map());
    return side;
  }

  test('the same requests get the same status, code and members', async () => {
    const differences: string[] = [];
    let count = 0;
    for (const versioning of [false, true]) {
      const sides = [await sideOf(embedded, { versioning }), await sideOf(gateway, { versioning })] as const;
      const saved = [new Map<string, string>(), new Map<string, string>()] as const;
      for (const { known, ...step } of dialogue(versioning)) {
        const ours = await tell(sides[0], step as Step, saved[0]);
        const theirs = await tell(sides[1], step as Step, saved[1]);
        count += 1;
        const found = differing(ours, theirs);
        if (found !== (known ?? '')) differences.push(`${describeStep(step as Step)}: ${found || 'nothing'}`);
      }
    }
    process.stdout.write(`${count} requests to both\n`);
    expect(differences).toEqual([]);
    expect(count).toBeGreaterThan(300);
  });

  test('the API reads objects, usage and sizes from the gateway, and presigns for it', async () => {
    const bucket = await gateway.bucket({ versioning: true });
    const client = gateway.client(await gateway.key(), { endpoint: ceph.options.url, ...OLD_CHECKSUMS });
    const put = (Key: string) => client.send(new s3.PutObjectCommand({ Bucket: bucket.name, Key, Body: 'content' }));
    await retryCheck(async () => void (await put('a')));
    for (const Key of ['dir/1', 'dir/2', 'ä +%']) await put(Key);
    await client.send(new s3.DeleteObjectCommand({ Bucket: bucket.name, Key: 'a' }));
    const list = async (query: string) =>
      (await gateway.service.call('GET', `/v2/buckets/${bucket.id}/objects?${query}`)).body;
    const first = await list('delimiter=/&limit=1');
    expect(first.data).toMatchObject([{ type: 'prefix', key: 'dir/' }]);
    const rest = await list(`delimiter=/&limit=1&cursor=${first.next_cursor}`);
    expect(rest).toMatchObject({ data: [{ type: 'object', key: 'ä +%', size_bytes: 7 }], next_cursor: null });
    expect((await list('versions=true&limit=2')).data).toMatchObject([
      { type: 'delete_marker', key: 'a' },
      { type: 'object', key: 'a', size_bytes: 7 },
    ]);
    const presigned = await gateway.service.call('POST', `/v2/buckets/${bucket.id}/presign`, {
      body: { key: 'dir/1' },
    });
    expect(await (await fetch(presigned.body.url)).text()).toBe('content');
    const removed = await gateway.service.call('DELETE', `/v2/buckets/${bucket.id}`);
    expect(removed.body.code).toBe('bucket_not_empty');
    // Counted by the gateway, and read by the loop when the bucket is next looked at.
    await retryCheck(async () => {
      await gateway.service.call('PUT', `/v2/buckets/${bucket.id}/cors`, { body: { rules: [] } });
      const { body } = await gateway.service.call('GET', `/v2/buckets/${bucket.id}`);
      expect(body).toMatchObject({ size_bytes: 28 });
      const usage = await gateway.service.call('GET', `/v2/buckets/${bucket.id}/usage`);
      expect(usage.body.daily.at(-1)?.requests).toBeGreaterThan(4);
    }, 30_000);
  });

  test('the gateway keeps backups of databases: a dump of MariaDB, and a file of several parts', async () => {
    const bucket = await openStoreTrial(gateway, ceph.options.url);
    await retryCheck(() => probeBackupStore(bucket.store, driverContext(10_000)), 60_000);
    if (hasEngine('mariadb')) await restoreMariadbElsewhere(bucket.store, () => bucket.keys());
    const directory = mkdtempSync(path.join(tmpdir(), 'gateway-store-'));
    const [there, back] = [path.join(directory, 'there'), path.join(directory, 'back')];
    writeFileSync(there, randomBytes(40 * 2 ** 20));
    const name = 'db_large/backups/bkp/data.bin';
    const digest = await bucket.store.upload(name, there, driverContext(60_000));
    expect(await bucket.store.download(name, back, driverContext(60_000))).toEqual(digest);
    expect(readFileSync(back).equals(readFileSync(there))).toBe(true);
    expect(await bucket.unfinished()).toBe(0);
    await bucket.store.remove(name, driverContext(10_000));
    expect(await bucket.keys()).toEqual([]);
    rmSync(directory, { recursive: true });
  });

  test('a policy with a condition is refused, since the gateway would decide by itself', async () => {
    const bucket = await gateway.bucket();
    const conditions = [{ operator: 'IpAddress', key: 'aws:SourceIp', values: ['192.0.2.0/24'] }];
    const statement = { effect: 'allow', principals: ['*'], actions: ['s3:GetObject'], resources: ['*'] };
    const put = async (one: object) =>
      (await gateway.service.call('PUT', `/v2/buckets/${bucket.id}/policy`, { body: { statements: [one] } })).body.code;
    expect(await put({ ...statement, conditions })).toBe('engine_unavailable');
    expect(await put({ ...statement, conditions: [] })).toBeUndefined();
  });

  test('rights end when they are taken away, a quota holds, and websites are not promised', async () => {
    const bucket = await gateway.bucket({ quota_gb: 1 });
    const key = await gateway.key({ grants: [{ bucket_id: bucket.id, permission: 'read_write' }] });
    const client = gateway.client(key, { endpoint: ceph.options.url, ...OLD_CHECKSUMS });
    const list = () => codeOf(client.send(new s3.ListObjectsV2Command({ Bucket: bucket.name })));
    const becomes = (code: string) => retryCheck(async () => expect(await list()).toBe(code));
    const change = (body: object) => gateway.service.call('PATCH', `/v2/bucket_access_keys/${key.id}`, { body });
    await becomes('done');
    await change({ enabled: false });
    await becomes('UserSuspended');
    await change({ enabled: true });
    await becomes('done');
    await change({ grants: [] });
    await becomes('AccessDenied');
    await gateway.service.call('POST', `/v2/bucket_access_keys/${key.id}/rotate`);
    await becomes('SignatureDoesNotMatch');
    await gateway.service.call('DELETE', `/v2/bucket_access_keys/${key.id}`);
    await becomes('InvalidAccessKeyId');
    const api = openRgwApi(ceph.options);
    const owner = await api.admin<{ bucket_quota: object }>(
      'GET',
      'user',
      { uid: `platform-bucket-${bucket.id}` },
      driverContext(10_000),
    );
    expect(owner?.bucket_quota).toMatchObject({ enabled: true, max_size: 2 ** 30 });
    const website = { access: 'public_read', website: {} };
    const refused = await gateway.service.call('PATCH', `/v2/buckets/${bucket.id}`, { body: website });
    expect([refused.status, refused.body.code]).toEqual([409, 'engine_unavailable']);
    await gateway.service.call('DELETE', `/v2/buckets/${bucket.id}`);
    await retryCheck(async () => {
      const left = await api.admin('GET', 'bucket', { bucket: bucket.name }, driverContext(10_000));
      expect(left).toBeNull();
    });
  });
});

function describeStep({ method, path = '', query = {}, as = 'writer' }: Step): string {
  return `${method} ${path}${Object.keys(query).length ? `?${JSON.stringify(query)}` : ''} as ${as}`;
}

function differing(ours: Told, theirs: Told): string {
  const parts: string[] = [];
  if (ours.status !== theirs.status) parts.push(`status ${ours.status} ${theirs.status}`);
  if (ours.code !== theirs.code) parts.push(`code ${ours.code} ${theirs.code}`);
  if (ours.status === theirs.status && ours.text !== theirs.text) parts.push('text');
  for (const name of new Set([...Object.keys(ours.headers), ...Object.keys(theirs.headers)]))
    if (ours.status === theirs.status && ours.headers[name] !== theirs.headers[name])
      parts.push(`${name} ${ours.headers[name]} ${theirs.headers[name]}`);
  if (ours.status === theirs.status) {
    const only = (a: Told, b: Told): string[] => a.members.filter((one) => !b.members.includes(one));
    const [left, right] = [only(ours, theirs), only(theirs, ours)];
    if (left.length + right.length) parts.push(`-${left.join(' -')} +${right.join(' +')}`);
  }
  return parts.join('; ');
}
