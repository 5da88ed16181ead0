/** @tier heavy @quarter 1 @covers drivers/release_image jobs/deployments/deployment/publish.ts */
// The control plane is killed with -9 while it publishes releases, at moments that lie all over the work: each
// deployment goes on, its image is whole, and the registry holds none that no release names.
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { busyboxLayer, pushImage } from '../../support/builds/images';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { freePort } from '../../support/processes/free_port';
import { isHeavyRun } from '../../support/processes/kills';
import { startRegistryClient } from '../../support/registries/registry_client';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';

const KILLS = isHeavyRun() ? 10 : 3;
const WITHIN_MS = 400_000;
/** Takes about a second to compress. */
const BYTES = 24 * 2 ** 20;
const { describe: describeHere } = needs('busybox');

describeHere('releases that are published while the control plane is killed', () => {
  let plant: Plant;

  beforeAll(async () => {
    const port = await freePort();
    plant = await startPlant({
      ...{ REGISTRY_PORT: String(port), RELEASE_IMAGES: 'always' },
      RELEASE_BASE_IMAGE: `localhost:${port}/bases/busybox:1`,
    });
    const { key } = JSON.parse(readFileSync(path.join(plant.runtimeDir, '../first-key.json'), 'utf8'));
    expect((await plant.call('POST', '/v2/registries', { body: { name: 'bases' } })).status).toBe(201);
    await waitFor('the registry', async () => {
      const { body } = await plant.call('GET', '/v2/registries');
      return body.data[0].status === 'active';
    });
    const client = startRegistryClient({ port, username: 'owner', password: key });
    await pushImage(client, 'bases/busybox', '1', { layers: [await busyboxLayer()] });
  }, 120_000);

  afterAll(() => plant?.close(), 120_000);

  test(
    'each deployment becomes active, and its image is the only one that there is of it',
    async () => {
      const application = await plant.application({ Procfile: 'web: busybox httpd -f -p "$PORT" -h .\n' });
      for (let kill = 0; kill < KILLS; kill += 1) {
        application.push({ 'index.html': `${kill}`, 'large.txt': randomBytes(BYTES / 2).toString('hex') });
        const { id } = await application.ask();
        await waitFor(
          'the publishing',
          async () => (await application.log(id)).some((line) => line.includes('Publishing the release')),
          60_000,
        );
        await sleep((kill * 2000) / KILLS);
        await plant.kill();
        await plant.start();
        const ended = await application.ended(id, 120_000);
        expect([ended.status, ended.status_reason]).toEqual(['active', null]);
        await expectOneImage(id);
      }
      const staging = path.join(plant.runtimeDir, 'release_images/staging');
      expect(existsSync(staging) ? readdirSync(staging) : []).toEqual([]);
    },
    WITHIN_MS,
  );

  async function expectOneImage(deployment: string): Promise<void> {
    const releases = await plant.sql<{ image: string; id: string }>(
      'select r.id, r.image from releases r join deployments d on d.release_id = r.id where d.id = $1',
      [deployment],
    );
    expect(releases).toEqual([{ id: expect.any(String), image: expect.stringMatching(/^apps\/app_\w+@sha256:/) }]);
    const digest = String(releases[0]?.image).split('@')[1];
    const tags = await plant.sql('select tag, digest from registry_tags where tag = $1', [releases[0]?.id]);
    expect(tags).toEqual([{ tag: releases[0]?.id, digest }]);
    const unnamed = await plant.sql(
      `select m.digest from registry_manifests m join registries r on r.id = m.registry_id
        where r.name = 'apps' and m.repository like 'app\\_%'
          and not exists (select 1 from releases l where l.image = 'apps/' || m.repository || '@' || m.digest)`,
    );
    expect(unnamed).toEqual([]);
    const lost = await plant.sql(
      `select f.target from registry_references f where not exists (select 1 from registry_blobs b
        where b.registry_id = f.registry_id and b.digest = f.target)`,
    );
    expect(lost).toEqual([]);
  }
});
