/** @tier both @quarter 1 @covers engines/object_storage/object_storage */
// Engines of object storage by the rules of all drivers: the embedded one, and a Ceph RADOS Gateway. Killed at every
// step.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { driverContext, type Desired } from '../../../core/driver';
import type { AccessKeySpec, BucketObserved, BucketSpec } from '../../../engines/object_storage/object_storage';
import { bucketDirectories } from '../../../engines/object_storage/files/directories';
import { openRgwApi, type RgwApi } from '../../../drivers/rgw/api';
import { openRgwBuckets, openRgwKeys } from '../../../drivers/rgw/driver';
import { describeResourceDriver, type ResourceFixture } from '../../conformance/resource_driver';
import { hasCeph, startCeph, type Ceph } from '../../support/object_storage/ceph';
import { isHeavyRun } from '../../support/processes/kills';

type BucketFixture = ResourceFixture<BucketSpec, BucketObserved>;

const KEY = { id: 'bka_1', access_key_id: 'PKAAAAAAAAAAAAAAAAAA' };
const SPEC: BucketSpec = {
  ...{ name: '', access: 'private', versioning: false, versioned: false, quota_bytes: null, website: null },
  ...{ cors: [], lifecycle: [], policy: [], keys: [{ ...KEY, permission: 'read' }] },
  owner: { accessKeyId: '', secretAccessKey: '' },
};
const CORS =
  '<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>' +
  '</CORSConfiguration>';
const CHANGED: BucketSpec = {
  ...{ name: '', access: 'public_read', versioning: true, versioned: true, quota_bytes: 2 ** 30, website: null },
  cors: [
    {
      ...{ allowed_origins: ['https://b.example.com', 'https://a.example.com'], allowed_methods: ['PUT', 'GET'] },
      ...{ allowed_headers: ['*'], expose_headers: ['etag', 'x-b'], max_age_seconds: 60 },
    },
    {
      ...{ allowed_origins: ['*'], allowed_methods: ['HEAD'], allowed_headers: [], expose_headers: [] },
      max_age_seconds: 0,
    },
  ],
  lifecycle: [
    {
      ...{ id: 'second', enabled: true, prefix: 'logs/', expire_after_days: 3 },
      ...{ expire_noncurrent_after_days: 4, abort_incomplete_uploads_after_days: 5 },
    },
    {
      ...{ id: 'first ä', enabled: false, prefix: '', expire_after_days: null },
      ...{ expire_noncurrent_after_days: null, abort_incomplete_uploads_after_days: 1 },
    },
  ],
  policy: [
    { id: 'a', effect: 'deny', principals: ['*'], actions: ['s3:Get*'], resources: ['drafts/*'] },
    { id: null, effect: 'allow', principals: [KEY.access_key_id], actions: ['s3:*'], resources: ['in/*', 'out?'] },
  ],
  keys: [{ ...KEY, permission: 'full' }],
  owner: { accessKeyId: '', secretAccessKey: '' },
};
const nameOf = (id: string): string => id.replaceAll('_', '-');
const specOf = (spec: BucketSpec, id: string): BucketSpec => ({
  ...spec,
  name: nameOf(id),
  owner: { accessKeyId: `PO${id}`, secretAccessKey: `owner of ${id}` },
});

describeResourceDriver<BucketSpec, BucketObserved>('embedded', async (): Promise<BucketFixture> => {
  const directory = mkdtempSync(path.join(tmpdir(), 's3-driver-'));
  const at = (...names: string[]): string => path.join(directory, ...names);
  return {
    driver: bucketDirectories(directory),
    recipe: { module: 'engines/object_storage/files/directories', factory: 'bucketDirectories', options: directory },
    ...{ spec: SPEC, changed: CHANGED, specOf },
    async snapshot() {
      const files = readdirSync(directory, { recursive: true }) as string[];
      return Object.fromEntries(
        files.sort().map((name) => [name, statSync(at(name)).isFile() ? readFileSync(at(name), 'utf8') : null]),
      );
    },
    use: async (_, r) => writeFileSync(at(r.id, 'content'), 'kept'),
    check: async (_, r) => expect(readFileSync(at(r.id, 'content'), 'utf8')).toBe('kept'),
    drifts: {
      markRemoved: async (id) => rmSync(at(id, 'bucket.json')),
      markChanged: async (id) => writeFileSync(at(id, 'bucket.json'), '{}'),
    },
    plantForeign: async (id) => writeFileSync(at(id), 'a file'),
    uprootForeign: async (id) => rmSync(at(id)),
    async close() {
      expect(readdirSync(directory)).toEqual([]);
      rmSync(directory, { recursive: true });
    },
  };
});

const runsCeph = hasCeph && isHeavyRun();
const needs = isHeavyRun() ? 'needs: radosgw, ceph-mon and ceph-osd' : 'in the heavy tier';

const described = runsCeph ? describe : (name: string) => test.skip(name, () => {});

described(`a RADOS Gateway (${needs})`, () => {
  let ceph: Ceph;
  let api: RgwApi;
  const ctx = () => driverContext(20_000);
  const users = async (): Promise<string[]> =>
    (await api.admin<{ keys: string[] }>('GET', 'user', { list: '' }, ctx()))?.keys ?? [];
  const userNamed = (uid: string) => api.admin<Record<string, unknown>>('GET', 'user', { uid }, ctx());
  const strangers = { accessKeyId: 'STRANGER', secretAccessKey: 'secret-of-a-stranger' };
  const asStranger = (method: string, name: string) => api.s3(strangers, method, `/${name}`, {}, ctx());

  beforeAll(async () => {
    ceph = await startCeph();
    api = openRgwApi(ceph.options);
    const key = { 'access-key': strangers.accessKeyId, 'secret-key': strangers.secretAccessKey };
    await api.admin('PUT', 'user', { uid: 'stranger', 'display-name': 'stranger', ...key }, ctx());
    await asStranger('PUT', 'theirs');
    await api.s3(strangers, 'PUT', '/theirs/kept', {}, ctx(), 'kept');
  }, 180_000);
  afterAll(async () => {
    const left = (await users()).sort();
    const kept = await api.s3(strangers, 'GET', '/theirs/kept', {}, ctx());
    await ceph.close();
    expect(left).toEqual(['admin', 'stranger']);
    expect(kept.text).toBe('kept');
  });

  describeResourceDriver<BucketSpec, BucketObserved>('buckets', async (): Promise<BucketFixture> => {
    const owner = (id: string) => specOf(SPEC, id).owner;
    const asOwner = (id: string, method: string, query: Record<string, string>, body?: string) =>
      api.s3(owner(id), method, `/${nameOf(id)}`, query, ctx(), body);
    const uidOf = (id: string): string => `platform-bucket-${id}`;
    const settingsOf = async (name: string): Promise<unknown[]> => {
      const uid =
        (await api.admin<{ owner: string }>('GET', 'bucket', { bucket: name, stats: true }, ctx()))?.owner ?? '';
      const id = uid.replace('platform-bucket-', '');
      if (id === uid) return [uid];
      const found = ['versioning', 'policy', 'cors', 'lifecycle'].map((one) => asOwner(id, 'GET', { [one]: '' }));
      return [uid, ...(await Promise.all(found)).map(({ status, text }) => (status === 200 ? text : status))];
    };
    return {
      driver: openRgwBuckets(ceph.options),
      recipe: { module: 'drivers/rgw/driver', factory: 'openRgwBuckets', options: ceph.options },
      ...{ spec: SPEC, changed: CHANGED, specOf, kills: { sample: 5, random: 1 } },
      async snapshot() {
        const names = (await api.admin<string[]>('GET', 'bucket', {}, ctx())) ?? [];
        const settings = names.sort().map(async (name) => [name, ...(await settingsOf(name))]);
        const found = (await users()).sort().map(userNamed);
        return { users: await Promise.all(found), buckets: await Promise.all(settings) };
      },
      async use(_, r) {
        await api.s3(owner(r.id), 'PUT', `/${nameOf(r.id)}/drafts/kept`, {}, ctx(), 'kept');
        await api.s3(owner(r.id), 'PUT', `/${nameOf(r.id)}/kept`, {}, ctx(), 'kept');
      },
      async check(_, r) {
        const anybody = (key: string) => fetch(`${ceph.options.url}/${nameOf(r.id)}/${key}`);
        expect(await (await anybody('kept')).text()).toBe('kept');
        expect((await anybody('drafts/kept')).status).toBe(403);
      },
      drifts: {
        bucketRemoved: async (id) => void (await asOwner(id, 'DELETE', {})),
        policyRemoved: async (id) => void (await asOwner(id, 'DELETE', { policy: '' })),
        versioningOn: async (id) =>
          void (await asOwner(
            id,
            'PUT',
            { versioning: '' },
            '<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>',
          )),
        corsAdded: async (id) => void (await asOwner(id, 'PUT', { cors: '' }, CORS)),
        quotaSet: async (id) =>
          void (await api.admin(
            'PUT',
            'user',
            { quota: '', uid: uidOf(id), 'quota-type': 'bucket', enabled: true, 'max-size-kb': 1 },
            ctx(),
          )),
        ownerSuspended: async (id) =>
          void (await api.admin('POST', 'user', { uid: uidOf(id), suspended: true }, ctx())),
        keyAdded: async (id) =>
          void (await api.admin('PUT', 'user', { key: '', uid: uidOf(id), 'access-key': `MORE${id}` }, ctx())),
      },
      plantForeign: async (id) => {
        expect((await asStranger('PUT', nameOf(id))).status).toBe(200);
      },
      uprootForeign: async (id) => void (await asStranger('DELETE', nameOf(id))),
      async close() {
        expect(await api.admin('GET', 'bucket', {}, ctx())).toEqual(['theirs']);
      },
    };
  });

  describeResourceDriver<AccessKeySpec, Record<string, never>>('access keys', async () => {
    const accessKeyOf = (id: string): string => `PK${id}`;
    const uidOf = (id: string): string => `platform-key-${id}`;
    const specOfKey = (spec: AccessKeySpec, id: string): AccessKeySpec => ({ ...spec, access_key_id: accessKeyOf(id) });
    return {
      driver: openRgwKeys(ceph.options),
      recipe: { module: 'drivers/rgw/driver', factory: 'openRgwKeys', options: ceph.options },
      spec: { access_key_id: '', secret: 'one', enabled: true },
      changed: { access_key_id: '', secret: 'two', enabled: false },
      specOf: specOfKey,
      kills: { sample: 4, random: 1 },
      snapshot: async () => Promise.all((await users()).sort().map(userNamed)),
      use: async () => {},
      async check(_, r: Desired<AccessKeySpec>) {
        const credentials = { accessKeyId: accessKeyOf(r.id), secretAccessKey: 'two' };
        expect((await api.s3(credentials, 'GET', '/', {}, ctx())).code).toBe('UserSuspended');
      },
      drifts: {
        suspended: async (id) => void (await api.admin('POST', 'user', { uid: uidOf(id), suspended: true }, ctx())),
        secretChanged: async (id) =>
          void (await api.admin(
            'PUT',
            'user',
            { key: '', uid: uidOf(id), 'access-key': accessKeyOf(id), 'secret-key': 'x', 'generate-key': false },
            ctx(),
          )),
        mayMakeBuckets: async (id) =>
          void (await api.admin('POST', 'user', { uid: uidOf(id), 'max-buckets': 5 }, ctx())),
      },
      plantForeign: async (id) =>
        void (await api.admin('PUT', 'user', { uid: uidOf(id), 'display-name': 'somebody' }, ctx())),
      uprootForeign: async (id) => void (await api.admin('DELETE', 'user', { uid: uidOf(id) }, ctx())),
      close: async () => {},
    };
  });

  test('away, it is asked again later; a wrong admin key is named', async () => {
    const driver = openRgwBuckets(ceph.options);
    const r = { id: 'res_away', spec: specOf(SPEC, 'res_away') };
    await driver.ensure(r, { state: 'absent' }, ctx());
    const stranger = openRgwBuckets({ ...ceph.options, secretAccessKey: 'wrong' });
    await expect(stranger.observe(r, ctx())).rejects.toMatchObject({ name: 'DriverError', reason: 'unauthorized' });
    expect(await stranger.fingerprint(ctx())).toMatchObject({ healthy: false });
    await ceph.stopGateway();
    await expect(driver.observe(r, ctx())).rejects.toMatchObject({ name: 'DriverError', reason: 'transient' });
    await ceph.startGateway();
    const found = await driver.observe(r, ctx());
    expect(found).toMatchObject({ state: 'present', upToDate: true });
    await driver.remove(r, found, ctx());
  }, 180_000);
});
