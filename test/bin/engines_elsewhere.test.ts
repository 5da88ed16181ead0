/** @tier heavy @quarter 3 @covers drivers/rgw drivers/distribution jobs/object_storage jobs/registries */
// Buckets in a RADOS Gateway and registries in a Distribution server, which are not ours: what is deleted answers no
// more there, comes back equal, and a purge leaves nothing.
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { binCalls } from '../support/bin_calls';
import { hasCeph, startCeph, type Ceph } from '../support/object_storage/ceph';
import { codeOf, startS3, type S3Service } from '../support/object_storage/s3';
import { freePort } from '../support/processes/free_port';
import { openDistribution, type Distribution } from '../support/registries/distribution';
import { startRegistryClient, type RegistryClient } from '../support/registries/registry_client';
import { hasProgram } from '../support/runner/has_program';
import { startService, type TestService } from '../support/service';
import { retryCheck, waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
jest.setTimeout(180_000);
const RETENTION = { RETENTION_OF_DELETED_DAYS: '7' };
/** Gateways before Reef take no checksum in a trailer (docs/OBJECT_STORAGE.md). */
const OLD_CHECKSUMS = { requestChecksumCalculation: 'WHEN_REQUIRED' } as const;

(hasCeph ? describe : describe.skip)('a bucket in a RADOS Gateway (needs: radosgw, ceph-mon and ceph-osd)', () => {
  let ceph: Ceph;
  let world: S3Service;
  const bin = binCalls(() => world.service);
  beforeAll(async () => {
    ceph = await startCeph();
    const { url, accessKeyId, secretAccessKey } = ceph.options;
    const gateway = { RGW_URL: url, RGW_ACCESS_KEY: accessKeyId, RGW_SECRET_KEY: secretAccessKey };
    world = await startS3({ ...gateway, ...RETENTION });
  });
  afterAll(async () => {
    await world?.close();
    await ceph?.close();
  });

  test('is gone there, comes back with settings and grants, and a purge leaves nothing', async () => {
    const { call } = world.service;
    const bucket = await world.bucket({ versioning: true });
    const place = `/v2/buckets/${bucket.id}`;
    const rules = [{ allowed_origins: ['https://shop.example.com'], allowed_methods: ['GET'] }];
    expect((await call('PUT', `${place}/cors`, { body: { rules } })).status).toBe(200);
    const key = await world.key({ grants: [{ bucket_id: bucket.id, permission: 'full' }] });
    const client = world.client(key, { endpoint: ceph.options.url, ...OLD_CHECKSUMS });
    const at = { Bucket: bucket.name, Key: 'a' };
    const put = (): Promise<string | number> => codeOf(client.send(new s3.PutObjectCommand({ ...at, Body: 'text' })));
    const origins = async (): Promise<unknown> =>
      (await client.send(new s3.GetBucketCorsCommand({ Bucket: bucket.name }))).CORSRules?.[0]?.AllowedOrigins;
    await retryCheck(async () => expect(await put()).toBe('done'));
    const listed = await client.send(new s3.ListObjectVersionsCommand({ Bucket: bucket.name }));
    for (const { VersionId } of listed.Versions ?? [])
      await client.send(new s3.DeleteObjectCommand({ ...at, VersionId }));
    await retryCheck(async () => expect(await origins()).toEqual(['https://shop.example.com']));
    const before = (await call('GET', place)).body;

    const entry = await bin.deleted(place);
    await retryCheck(async () => expect(['NoSuchBucket', 404]).toContain(await codeOf(origins())), 60_000);
    expect(await put()).not.toBe('done');
    expect((await call('GET', place)).status).toBe(404);

    expect(await bin.restored(entry)).toEqual([]);
    await retryCheck(async () => expect(await put()).toBe('done'), 60_000);
    const after = (await call('GET', place)).body;
    expect({ ...after, updated_at: null, object_count: 0, size_bytes: 0 }).toEqual({ ...before, updated_at: null });
    expect(await origins()).toEqual(['https://shop.example.com']);
    const { Status } = await client.send(new s3.GetBucketVersioningCommand({ Bucket: bucket.name }));
    expect(Status).toBe('Enabled');
    const again = await client.send(new s3.ListObjectVersionsCommand({ Bucket: bucket.name }));
    for (const { VersionId } of again.Versions ?? [])
      await client.send(new s3.DeleteObjectCommand({ ...at, VersionId }));

    await waitFor('it can be deleted', async () => (await call('DELETE', place)).status === 204);
    expect((await bin.purge(await bin.entryOf(bucket.id))).status).toBe(204);
    await waitFor('its row goes', async () => !(await world.service.sql('select 1 from buckets')).length);
    expect(['NoSuchBucket', 404]).toContain(await codeOf(origins()));
  });
});

const hasDistribution = hasProgram('docker-registry');
(hasDistribution ? describe : describe.skip)('a registry in a Distribution server (needs: docker-registry)', () => {
  let distribution: Distribution;
  let service: TestService;
  const bin = binCalls(() => service);
  beforeAll(async () => {
    const own = await freePort();
    distribution = await openDistribution();
    const elsewhere = { DISTRIBUTION_URL: distribution.url, DISTRIBUTION_EVENTS_KEY: distribution.eventsKey };
    const settings = { REGISTRY_PORT: String(own), ...elsewhere, ...RETENTION };
    service = await startService({ worker: true, settings });
    const certificate = path.join(service.platform.config.registryDir, 'token.crt');
    await distribution.start({ port: own, certificate });
  });
  afterAll(async () => {
    await service?.close();
    await distribution?.close();
  });

  /** Without a token that it has from before. */
  const owner = (): RegistryClient =>
    startRegistryClient({ port: Number(distribution.host.split(':')[1]), username: 'owner', password: service.key });

  test('is pulled by nobody, comes back with its images, and a purge leaves nothing', async () => {
    const options = { body: { name: 'shop' }, headers: { Prefer: 'wait=20' } };
    const { id } = (await service.call('POST', '/v2/registries', options)).body;
    const place = `/v2/registries/${id}`;
    const [layer, late] = [randomBytes(5000), randomBytes(700)];
    const pushed = await owner().pushImage('shop/web', '1', [layer]);
    const pusher = owner();
    const second = await pusher.pushImage('shop/web', '2', [layer]);
    const tags = async (): Promise<any[]> => (await service.call('GET', `${place}/images`)).body.data;
    await waitFor('its rows', async () => (await tags()).length === 2);
    const had = { registry: (await service.call('GET', place)).body, tags: await tags() };

    const entry = await bin.deleted(place);
    for (const tag of ['1', '2']) expect((await owner().pull('shop/web', tag)).status).toBe(401);
    await expect(owner().pushImage('shop/web', '3', [late])).rejects.toThrow(/answered 40[13]/);
    await service.sql('update registries set next_at = now()');

    expect(await bin.restored(entry)).toEqual([]);
    const after = await service.settle(place);
    expect({ ...after, updated_at: null }).toEqual({ ...had.registry, updated_at: null });
    expect(await tags()).toEqual(had.tags);
    for (const [tag, { digest }] of [
      ['1', pushed],
      ['2', second],
    ] as const)
      expect((await owner().pull('shop/web', tag)).headers.get('docker-content-digest')).toBe(digest);
    await owner().pushImage('shop/web', '3', [late]);
    await waitFor('the new tag', async () => (await tags()).length === 3);

    expect((await bin.purge(await bin.deleted(place))).status).toBe(204);
    await waitFor('its row goes', async () => !(await service.sql('select 1 from registries')).length);
    // Whoever gets the name finds nothing.
    expect((await service.call('POST', '/v2/registries', options)).status).toBe(201);
    for (const tag of ['1', '2', '3']) expect((await owner().pull('shop/web', tag)).status).toBe(404);
  });
});
