/** @tier heavy @quarter 1 @covers drivers/image jobs/deployments/deployment */
// Applications from images that other programs made and pushed, and a control plane that is killed while it pulls.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { configuredApplication, type TestApplication } from '../../support/deployments/deploy';
import { openDistribution, type Distribution } from '../../support/registries/distribution';
import { freePort } from '../../support/processes/free_port';
import { busyboxLayer, sha256, siteLayer, SERVE, tarOf } from '../../support/builds/images';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';
import { withConfig } from '../../support/config';

const run = promisify(execFile);
const { describe: describeImages } = needs('busybox', 'bwrap', 'skopeo');
const { test: withDistribution } = needs('docker-registry');

let plant: Plant;
let port: number;
let directory: string;
let credentials: string;
/** Of somebody else, who tells nobody of what is pushed. */
let elsewhere: Distribution | undefined;

/** An OCI layout on the disk, as skopeo reads one. */
function writeLayout(name: string, layers: Buffer[]): string {
  const folder = path.join(directory, name);
  mkdirSync(path.join(folder, 'blobs/sha256'), { recursive: true });
  const add = (content: Buffer): { digest: string; size: number } => {
    writeFileSync(path.join(folder, 'blobs/sha256', sha256(content).slice('sha256:'.length)), content);
    return { digest: sha256(content), size: content.length };
  };
  const addJson = (value: object): { digest: string; size: number } => add(Buffer.from(JSON.stringify(value)));
  const type = (kind: string): string => `application/vnd.oci.image.${kind}`;
  const rootfs = { type: 'layers', diff_ids: layers.map(sha256) };
  const config = addJson({ architecture: 'amd64', os: 'linux', config: { Cmd: SERVE }, rootfs });
  const manifest = addJson({
    ...{ schemaVersion: 2, mediaType: type('manifest.v1+json') },
    config: { mediaType: type('config.v1+json'), ...config },
    layers: layers.map((layer) => ({ mediaType: type('layer.v1.tar'), ...add(layer) })),
  });
  const entry = { mediaType: type('manifest.v1+json'), ...manifest };
  const named = { ...entry, annotations: { 'org.opencontainers.image.ref.name': 'latest' } };
  writeFileSync(path.join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }));
  writeFileSync(path.join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  return `oci:${folder}:latest`;
}

function push(image: string, name: string, format: 'oci' | 'v2s2'): Promise<unknown> {
  const options = ['--format', format, '--dest-tls-verify=false', '--dest-creds', credentials];
  return run('skopeo', ['copy', ...options, image, `docker://localhost:${port}/acme/${name}`]);
}

async function pushElsewhere(text: string): Promise<void> {
  const image = writeLayout(text, [await busyboxLayer(), await siteLayer({ 'index.html': text })]);
  await run('skopeo', ['copy', '--dest-tls-verify=false', image, `docker://${elsewhere?.host}/site:stable`]);
}

async function imageApplication(name: string, image: string): Promise<Omit<TestApplication, 'push'>> {
  const source = { type: 'image', image };
  const made = await plant.call('POST', '/v2/applications', { body: { name, source } });
  expect(made.status).toBe(201);
  return configuredApplication(plant, made.body);
}

describeImages('images that other programs pushed', () => {
  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'application-images-'));
    port = await freePort();
    plant = await startPlant({ REGISTRY_PORT: String(port), ...withConfig({ gitPollSeconds: 1 }) });
    const made = await plant.call('POST', '/v2/registries', { body: { name: 'acme' } });
    const robot = await plant.call('POST', '/v2/robot_accounts', {
      body: { name: 'ci-builds', permissions: ['pull', 'push'] },
    });
    expect([made.status, robot.status]).toEqual([201, 201]);
    credentials = `${robot.body.username}:${robot.body.secret}`;
  }, 120_000);

  afterAll(async () => {
    await plant?.close();
    await elsewhere?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  test.each(['oci', 'v2s2'] as const)(
    'an image that skopeo pushed as %s answers',
    async (format) => {
      const layers = [await busyboxLayer(), await siteLayer({ 'index.html': format })];
      await push(writeLayout(format, layers), `web:${format}`, format);
      const application = await imageApplication(`web-${format}`, `localhost:${port}/acme/web:${format}`);
      const { status, status_reason } = await application.deploy();
      expect([status, status_reason]).toEqual(['active', null]);
      expect(await application.visit()).toMatchObject({ status: 200, body: format });
    },
    120_000,
  );

  test('a pull that is killed is done again, and leaves nothing', async () => {
    const large = await tarOf([{ name: 'data', content: randomBytes(60_000_000) }]);
    const layers = [await busyboxLayer(), large, await siteLayer({ 'index.html': 'after the kill' })];
    await push(writeLayout('large', layers), 'web:large', 'oci');
    const application = await imageApplication('web-large', `localhost:${port}/acme/web:large`);
    const { id } = await application.ask();
    const store = path.join(plant.runtimeDir, 'caches', application.id, 'application.layers');
    for (const begun of ['.blob-', '.new-']) {
      const names = (): string[] => {
        try {
          return readdirSync(store);
        } catch {
          return [];
        }
      };
      await waitFor(`${begun} of the pull`, () =>
        Promise.resolve(names().some((name) => name.startsWith(begun)) || names().length > layers.length),
      );
      await plant.kill();
      await plant.start();
    }
    expect((await application.ended(id, 90_000)).status).toBe('active');
    expect(await application.visit()).toMatchObject({ status: 200, body: 'after the kill' });
    await waitFor('an orderly store', () => Promise.resolve(readdirSync(store).every((name) => !name.startsWith('.'))));
  }, 240_000);

  withDistribution(
    'a tag in a registry of others is followed',
    async () => {
      elsewhere = await openDistribution();
      await elsewhere.start(null);
      await pushElsewhere('first');
      const application = await imageApplication('web-elsewhere', `${elsewhere.host}/site:stable`);
      expect((await application.deploy()).status_reason).toBe(null);
      const followed = await plant.call('PATCH', `/v2/applications/${application.id}/auto_deploy`, {
        body: { enabled: true },
      });
      expect(followed.status).toBe(200);
      await pushElsewhere('second');
      await waitFor('the second image', async () => (await application.visit()).body === 'second', 60_000);
      const [newest] = (await application.get('/deployments?limit=1')).data;
      expect(newest.trigger).toBe('push');
    },
    120_000,
  );
});
