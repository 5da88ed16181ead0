/** @tier heavy @quarter 3 @covers drivers/builder drivers/image jobs/deployments/deployment */
// The control plane, or the program that builds, is killed with -9 at the steps of a build of a Dockerfile and of the
// unpacking of its image. The deployment goes on, or ends with a reason, and nothing is left over.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { nothingOrphaned } from '../../support/processes/bad_days';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import type { TestApplication } from '../../support/deployments/deploy';
import { freePort } from '../../support/processes/free_port';
import { busyboxLayer, pushImage } from '../../support/builds/images';
import { startRegistryClient } from '../../support/registries/registry_client';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';

const { describe: describeBuilds } = needs('buildah', 'busybox', 'bwrap');
const RANGES = '/var/lib/platform-api/user-id-ranges';
const WITHIN_MS = 240_000;

let plant: Plant;
let from: string;

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

async function builds(lines: string[]): Promise<TestApplication> {
  const serve = 'CMD ["/bin/busybox", "sh", "-c", "exec busybox httpd -f -p $PORT -h /www"]';
  const dockerfile = [from, 'RUN mkdir /www && busybox chown 7:8 /www', ...lines, serve];
  return plant.application({ Dockerfile: dockerfile.join('\n') }, { build: { builder: 'dockerfile' } });
}

async function printed(application: TestApplication, deployment: string, text: string): Promise<void> {
  await waitFor(text, async () => (await application.log(deployment)).some((line) => line.includes(text)));
}

async function restart(): Promise<void> {
  await plant.kill();
  await plant.start();
}

/** Sandboxes mount in namespaces of their own, which end with them: what is seen here is of the host. */
function mountsBelow(directory: string): string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .filter((line) => line.includes(`${directory}/`) && !line.includes('/disk '));
}

async function nothingLeft(application: TestApplication): Promise<void> {
  const caches = path.join(plant.runtimeDir, 'caches', application.id);
  await waitFor('an orderly store of layers', () =>
    Promise.resolve(namesIn(path.join(caches, 'application.layers')).every((name) => !name.startsWith('.'))),
  );
  expect(namesIn(path.join(caches, 'application/containers')).filter((name) => name === 'try')).toEqual([]);
  expect(mountsBelow(plant.runtimeDir)).toEqual([]);
  await nothingOrphaned(plant);
}

describeBuilds('builds of Dockerfiles that are killed', () => {
  beforeAll(async () => {
    const port = await freePort();
    plant = await startPlant({ REGISTRY_PORT: String(port) });
    const { key } = JSON.parse(readFileSync(path.join(plant.runtimeDir, '../first-key.json'), 'utf8'));
    expect((await plant.call('POST', '/v2/registries', { body: { name: 'bases' } })).status).toBe(201);
    await waitFor('the registry', async () => {
      const { body } = await plant.call('GET', '/v2/registries');
      return body.data[0].status === 'active';
    });
    const client = startRegistryClient({ port, username: 'owner', password: key });
    await pushImage(client, 'bases/base', '1', { layers: [await busyboxLayer()] });
    from = `FROM localhost:${port}/bases/base:1`;
  }, 120_000);
  afterAll(() => plant?.close(), 120_000);

  test(
    'a build goes on while the control plane is away, and is not begun again',
    async () => {
      const application = await builds(['RUN echo at the step && sleep 6 && echo built > /www/index.html']);
      const { id } = await application.ask();
      await printed(application, id, 'at the step');
      await restart();
      expect(await application.ended(id, 120_000)).toMatchObject({ status: 'active', status_reason: null });
      expect((await application.visit()).body).toBe('built\n');
      // Twice, since the base has no history: see drivers/builder/dockerfile/dockerfile_script.ts.
      const lines = (await application.log(id)).filter((line) => line === 'at the step');
      expect(lines.length).toBeLessThanOrEqual(2);
      await nothingLeft(application);
    },
    WITHIN_MS,
  );

  test(
    'a build whose builder is killed ends with a reason, and the next one works',
    async () => {
      const application = await builds(['RUN echo at the step && sleep 20', 'RUN echo x > /www/index.html']);
      const { id } = await application.ask();
      await printed(application, id, 'at the step');
      const unit = path.join(plant.runtimeDir, 'units', `${id}.build`, 'handle');
      const shim = readFileSync(unit, 'utf8').split(' ')[0] ?? '';
      const builder = `all() { for one in $(cat "/proc/$1/task/$1/children"); do echo "$one"; all "$one"; done; }
        for one in $(all ${shim}); do [ "$(cat /proc/$one/comm)" != buildah ] || kill -9 "$one"; done`;
      execFileSync('sh', ['-c', builder]);
      const ended = await application.ended(id, 120_000);
      expect(ended.status).toBe('failed');
      expect(ended.status_reason).toMatch(/^(The build|Line \d+ of Dockerfile).*\.$/);
      await nothingLeft(application);
      application.push({
        Dockerfile: `${from}\nRUN mkdir /www && echo next > /www/index.html\nCMD ["/bin/busybox", "sh", \
"-c", "exec busybox httpd -f -p $PORT -h /www"]\n`,
      });
      expect(await application.ended((await application.ask()).id, 120_000)).toMatchObject({ status: 'active' });
      expect((await application.visit()).body).toBe('next\n');
    },
    WITHIN_MS,
  );

  test(
    'a control plane that is killed at each step of the image takes it, and leaves nothing of what it had begun',
    async () => {
      const application = await builds([
        'RUN busybox dd if=/dev/urandom of=/large bs=1M count=80 && echo taken > /www/index.html',
        'RUN i=0; mkdir /many; while [ $i -lt 3000 ]; do echo $i > /many/$i; i=$((i+1)); done',
      ]);
      const { id } = await application.ask();
      const caches = path.join(plant.runtimeDir, 'caches', application.id);
      const store = path.join(caches, 'application.layers');
      const steps: [string, () => boolean][] = [
        ['the image of the build', () => namesIn(path.join(caches, 'application/image')).length > 0],
        ['a layer that is copied or unpacked', () => namesIn(store).some((name) => name.startsWith('.'))],
        ['a root', () => namesIn(path.join(plant.runtimeDir, 'releases', id)).includes('many')],
        ['the copy of an instance', () => namesIn(path.join(plant.runtimeDir, 'units')).some((n) => /ins_/.test(n))],
      ];
      for (const [what, isThere] of steps) {
        await waitFor(what, () => Promise.resolve(isThere()), 120_000);
        await restart();
      }
      expect(await application.ended(id, 120_000)).toMatchObject({ status: 'active', status_reason: null });
      await waitFor('it answers', async () => (await application.visit()).body === 'taken\n');
      await nothingLeft(application);
      await plant.call('DELETE', `/v2/applications/${application.id}`);
      await waitFor('no directory', () => Promise.resolve(!existsSync(caches)));
      await nothingOrphaned(plant);
    },
    WITHIN_MS,
  );

  (process.getuid?.() === 0 ? test : test.skip)(
    'ranges of user ids are claimed for what is there, and once',
    async () => {
      const application = await builds(['RUN echo ranged > /www/index.html']);
      await application.ended((await application.ask()).id, 120_000);
      const owners = namesIn(RANGES).map((name) => readFileSync(path.join(RANGES, name), 'utf8').trim());
      const own = owners.filter((owner) => owner.startsWith(plant.runtimeDir));
      expect(own.filter((owner) => !existsSync(owner))).toEqual([]);
      expect(new Set(own).size).toBe(own.length);
      expect(own.filter((owner) => owner.includes(application.id))).toHaveLength(2);
    },
    WITHIN_MS,
  );
});
