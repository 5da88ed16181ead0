/** @tier heavy @quarter 4 @covers engines/registry/registry engines/object_storage/object_storage */
// Debian's docker-registry as the engine of container registries, with its layers in our own object storage.
import { createHash, randomBytes } from 'node:crypto';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { openDistribution, type Distribution } from '../../support/registries/distribution';
import { freePort } from '../../support/processes/free_port';
import { startRegistryClient } from '../../support/registries/registry_client';
import { startS3, type S3Service } from '../../support/object_storage/s3';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';

const { describe: describeOnS3 } = needs('docker-registry');

describeOnS3('docker-registry on our object storage', () => {
  let world: S3Service;
  let distribution: Distribution;
  let bucket: { id: string; name: string };

  beforeAll(async () => {
    distribution = await openDistribution();
    const port = await freePort();
    world = await startS3({
      ...{ REGISTRY_PORT: String(port), DISTRIBUTION_URL: distribution.url },
      DISTRIBUTION_EVENTS_KEY: distribution.eventsKey,
    });
    bucket = await world.bucket();
    const key = await world.key();
    const certificate = path.join(world.service.platform.config.registryDir, 'token.crt');
    await distribution.start(
      { port, certificate },
      {
        s3: {
          ...{ regionendpoint: world.endpoint, region: 'local', bucket: bucket.name, secure: false },
          ...{ accesskey: key.access_key_id, secretkey: key.secret_access_key },
        },
      },
    );
  }, 180_000);

  afterAll(async () => {
    await distribution?.close();
    await world?.close();
  }, 120_000);

  test('an image with a layer of several parts goes there and back, and is deleted', async () => {
    const { service } = world;
    const headers = { Prefer: 'wait=20' };
    const made = await service.call('POST', '/v2/registries', { body: { name: 'onbucket' }, headers });
    expect([made.status, made.body.status]).toEqual([201, 'active']);
    const port = Number(distribution.host.split(':')[1]);
    const client = startRegistryClient({ port, username: 'owner', password: service.key });
    const layer = randomBytes(25_000_000);
    const image = await client.pushImage('onbucket/app', '1', [layer]);
    const digest = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
    // It sends the client to the bucket.
    const back = await client.call('GET', `/v2/onbucket/app/blobs/${digest}`);
    expect([back.status, back.body.equals(layer)]).toEqual([200, true]);
    const part = await client.call('GET', `/v2/onbucket/app/blobs/${digest}`, undefined, { Range: 'bytes=10-19' });
    expect(part.body.equals(layer.subarray(10, 20))).toBe(true);
    const objects = await world.client().send(new s3.ListObjectsV2Command({ Bucket: bucket.name }));
    expect((objects.Contents ?? []).map(({ Size }) => Size)).toContain(layer.length);
    const found = async (): Promise<Record<string, unknown>> =>
      (await service.call('GET', `/v2/registries/${String(made.body.id)}`)).body;
    const total = layer.length + image.configBytes + image.manifestBytes;
    await waitFor('the counts', async () => {
      const { image_count, size_bytes } = await found();
      return image_count === 1 && size_bytes === total;
    });
    expect((await client.call('DELETE', `/v2/onbucket/app/manifests/${image.digest}`)).status).toBe(202);
    await waitFor('its end', async () => (await found()).image_count === 0);
  }, 120_000);
});
