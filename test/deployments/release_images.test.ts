/** @tier heavy @quarter 4 @covers drivers/release_image jobs/deployments engines/registry */
// Releases as images of the platform's own registry, as deployments make them and as tenants meet them. What is in an
// image is read by the registry's own API; programs of others do it in test/engines/registries/release_images.test.ts.
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { busyboxLayer, pushImage, SERVE, siteLayer } from '../support/builds/images';
import {
  configuredApplication,
  GIVEN_UP_SOON,
  startDeployService,
  type DeployService,
  type TestApplication,
} from '../support/deployments/deploy';
import { startProgram } from '../support/processes/program';
import { freePort } from '../support/processes/free_port';
import { startRegistryClient, type RegistryClient } from '../support/registries/registry_client';
import { pullLoginOf } from '../../server/platform/registry_tokens';
import { startService } from '../support/service';
import { waitFor } from '../support/wait_for';
import { fileNeeds } from '../support/runner/programs';

let service: DeployService;
let port: number;
let tenant: RegistryClient;

fileNeeds('busybox', 'bwrap');

beforeAll(async () => {
  port = await freePort();
  service = await startDeployService({
    ...{ REGISTRY_PORT: String(port), RELEASE_IMAGES: 'always' },
    RELEASE_BASE_IMAGE: `localhost:${port}/bases/busybox:1`,
  });
  const made = await service.call('POST', '/v2/registries', {
    body: { name: 'bases' },
    headers: { Prefer: 'wait=20' },
  });
  expect([made.status, made.body.status]).toEqual([201, 'active']);
  tenant = startRegistryClient({ port, username: 'owner', password: service.key });
  await pushImage(tenant, 'bases/busybox', '1', { layers: [await busyboxLayer()], gzip: true });
}, 60_000);

afterAll(() => service?.close(), 60_000);

type Promoting = Omit<TestApplication, 'push'> & Pick<DeployService, 'call'>;

/** Without a language: nothing has to be downloaded. */
const site = (text: string) => ({
  Procfile: 'web: busybox httpd -f -p "$PORT" -h site\nworker: sleep 1000\n',
  'site/index.html': text,
});

async function imageOf(application: { log(id: string): Promise<string[]> }, { id }: { id: string }): Promise<string> {
  const line = (await application.log(id)).find((one) => one.startsWith('Released as ')) ?? '';
  expect(line).toMatch(/^Released as apps\/app_\w+@sha256:[0-9a-f]{64}$/);
  return line.slice('Released as '.length);
}

/** As a machine of a cluster pulls it. */
async function pullerOf(image: string, seconds = 60): Promise<RegistryClient> {
  const parts = { ...service.platform, sql: service.platform.database };
  const login = await pullLoginOf(parts, image.slice(0, image.indexOf('@')), seconds);
  return startRegistryClient({ port, ...login });
}

/* oxlint-disable-next-line typescript/no-explicit-any -- what the program prints */
async function operator(verb: string, id: string): Promise<any> {
  const { config, databaseUrl } = service.platform;
  const settings = { DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: config.dataDir, REGISTRY_PORT: String(port) };
  const words = ['release-image', verb, id, '--json'];
  const program = startProgram(settings, { entry: 'server/operator/main.ts', words });
  expect([await program.ended, program.err()]).toEqual([0, '']);
  return JSON.parse(program.out());
}

interface Manifest {
  config: { digest: string };
  layers: { digest: string; mediaType: string; size: number }[];
}

async function contentOf(image: string): Promise<{ manifest: Manifest; config: string; layers: Buffer[] }> {
  const [name = '', digest = ''] = image.split('@');
  const client = await pullerOf(image);
  const answer = await client.pull(name, digest);
  expect(answer.status).toBe(200);
  const manifest = JSON.parse(answer.body.toString()) as Manifest;
  const blob = async (wanted: string): Promise<Buffer> => {
    const { body } = await client.call('GET', `/v2/${name}/blobs/${wanted}`);
    expect(`sha256:${createHash('sha256').update(body).digest('hex')}`).toBe(wanted);
    return body;
  };
  const layers = [];
  for (const layer of manifest.layers) layers.push(gunzipSync(await blob(layer.digest)));
  return { manifest, config: (await blob(manifest.config.digest)).toString(), layers };
}

describe('releases as images', () => {
  it('are published before the version runs, and the log names the digest', async () => {
    const application = await service.application(site('one'));
    const deployment = await application.deploy();
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    const { config, layers } = await contentOf(await imageOf(application, deployment));
    expect(JSON.parse(config)).toMatchObject({
      architecture: 'amd64',
      config: {
        ...{ User: '10001:10001', Entrypoint: ['/platform/launch'], Cmd: ['web'], WorkingDir: '/app' },
        Labels: { 'org.opencontainers.image.revision': deployment.commit_sha },
      },
    });
    expect(JSON.parse(config)).not.toHaveProperty('created');
    // The base, the files, and how they are started.
    expect(layers).toHaveLength(3);
    const messages = await application.log(deployment.id);
    const at = (text: string): number => messages.findIndex((one) => one.startsWith(text));
    expect(at('Released as')).toBeLessThan(at('-----> Starting the new version'));
  });

  it('have one digest for one commit, and share all layers but the files with another', async () => {
    const application = await service.application(site('same'));
    const first = await imageOf(application, await application.deploy());
    expect(await imageOf(application, await application.deploy())).toBe(first);
    application.push({ 'site/index.html': 'other' });
    const other = await imageOf(application, await application.deploy());
    expect(other).not.toBe(first);
    const [one, two] = [(await contentOf(first)).manifest.layers, (await contentOf(other)).manifest.layers];
    expect(one.map(({ digest }, i) => digest === two[i]?.digest)).toEqual([true, false, true]);
  });

  it('never hold variables of the application', async () => {
    const application = await service.application(site('secretive'));
    const secret = 'hunter2-of-the-tenant';
    const set = await service.call('PUT', `/v2/applications/${application.id}/env/API_TOKEN`, {
      body: { value: secret, available_at: 'both' },
    });
    expect([set.status, set.text]).toEqual([201, expect.anything()]);
    const { config, layers } = await contentOf(await imageOf(application, await application.deploy()));
    for (const text of [config, ...layers.map((layer) => layer.toString('latin1'))]) {
      expect(text).not.toContain(secret);
      expect(text).not.toContain('API_TOKEN');
    }
  });

  it('are those of the next release too, until its programs start in another way', async () => {
    const application = await service.application(site('restarted'));
    const image = await imageOf(application, await application.deploy());
    const restart = async (): Promise<(string | null)[]> => {
      await waitFor('it runs', async () => (await application.get()).status === 'running');
      await application.post('/restart');
      const rows = await service.sql('select image from releases where application_id = $1 order by id', [
        application.id,
      ]);
      return rows.map((row) => row.image as string | null).slice(-1);
    };
    await service.call('PUT', `/v2/applications/${application.id}/env/COLOUR`, { body: { value: 'red' } });
    expect(await restart()).toEqual([image]);
    const [worker] = (await application.get('/processes?type=worker')).data;
    const changed = await service.call('PATCH', `/v2/applications/${application.id}/processes/${worker.id}`, {
      body: { command: 'sleep 2000' },
    });
    expect(changed.status).toBe(200);
    expect(await restart()).toEqual([null]);
  });

  it('are read and written by no account of a tenant, nor by a login for another application', async () => {
    const application = await service.application(site('private'));
    const image = await imageOf(application, await application.deploy());
    const [name = '', digest = ''] = image.split('@');
    const robot = await service.call('POST', '/v2/robot_accounts', {
      body: { name: 'grabber', permissions: ['pull', 'push', 'delete'] },
    });
    const { username, secret } = robot.body as { username: string; secret: string };
    for (const client of [tenant, startRegistryClient({ port, username, password: secret })]) {
      for (const place of [name, 'apps/base', 'apps/tools', 'apps/anything']) {
        expect((await client.pull(place, digest)).status).toBe(403);
        expect((await client.call('POST', `/v2/${place}/blobs/uploads/`)).status).toBe(403);
        expect((await client.call('DELETE', `/v2/${place}/manifests/${digest}`)).status).toBe(403);
        expect((await client.call('GET', `/v2/${place}/tags/list`)).status).toBe(403);
      }
      // A layer of the platform is not taken over by its digest either: the upload begins anew.
      const mount = `/v2/bases/stolen/blobs/uploads/?mount=${digest}&from=${name}`;
      expect((await client.call('POST', mount)).status).toBe(202);
    }
    const foreign = await pullerOf(`apps/app_00000000000000000000000000@${digest}`);
    expect((await foreign.pull(name, digest)).status).not.toBe(200);
    const own = await pullerOf(image);
    expect((await own.pull(name, digest)).status).toBe(200);
    expect((await own.call('POST', `/v2/${name}/blobs/uploads/`)).status).not.toBe(202);
    expect((await own.call('DELETE', `/v2/${name}/manifests/${digest}`)).status).not.toBe(202);
    expect((await (await pullerOf(image, -1)).pull(name, digest)).status).toBe(401);
  });

  it('are shown by the command of the operator, which makes a login that pulls those of one application', async () => {
    const application = await service.application(site('shown'));
    const image = await imageOf(application, await application.deploy());
    const [row] = (await operator('list', application.id)).data;
    expect(row).toMatchObject({ deployment: 1, status: 'active', image: `localhost:${port}/${image}` });
    const { username, password } = await operator('login', application.id);
    const [name = '', digest = ''] = image.split('@');
    const client = startRegistryClient({ port, username, password });
    expect((await client.pull(name, digest)).status).toBe(200);
    expect((await client.call('DELETE', `/v2/${name}/manifests/${digest}`)).status).not.toBe(202);
  });

  it('are in no list, and their name is nobody else’s', async () => {
    const listed = await service.call('GET', '/v2/registries');
    expect(listed.body.data.map(({ name }: { name: string }) => name)).toEqual(['bases']);
    const taken = await service.call('POST', '/v2/registries', { body: { name: 'apps' } });
    expect([taken.status, taken.body.code]).toEqual([409, 'name_taken']);
    const application = await service.application(site('listing'));
    const image = `localhost:${port}/${await imageOf(application, await application.deploy())}`;
    const made = await service.call('POST', '/v2/applications', {
      body: { name: 'thief', source: { type: 'image', image } },
    });
    expect(made.status).toBe(201);
    const asked = await service.call('POST', `/v2/applications/${made.body.id}/deployments`, { body: {} });
    const failed = await waitFor('the end', async () => {
      const { body } = await service.call('GET', `/v2/applications/${made.body.id}/deployments/${asked.body.id}`);
      return body.status === 'failed' ? body : null;
    });
    expect(failed.status_reason).toContain('This project has no registry with the image');
  });

  it('go with their application and with deployments that fail, and with their layers', async () => {
    const application = await service.application(site('leaving'), GIVEN_UP_SOON);
    const kept = await imageOf(application, await application.deploy());
    application.push({ Procfile: 'web: false\n' });
    const failed = await application.deploy();
    expect(failed.status).toBe('failed');
    const lost = await imageOf(application, failed);
    const isThere = async (image: string): Promise<boolean> => {
      const [name = '', digest = ''] = image.split('@');
      return (await (await pullerOf(image)).pull(name, digest)).status === 200;
    };
    await waitFor('the image of the failed deployment is gone', async () => !(await isThere(lost)));
    expect(await isThere(kept)).toBe(true);
    expect((await service.call('DELETE', `/v2/applications/${application.id}`)).status).toBeLessThan(300);
    await waitFor('the image of the application is gone', async () => !(await isThere(kept)), 40_000);
    const rows = await service.sql('select 1 from registry_tags where repository = $1', [application.id]);
    expect(rows).toEqual([]);
  });

  it('are copied where an application takes over an image, and serve its rollbacks', async () => {
    await pushImage(tenant, 'bases/web', 'live', {
      layers: [await busyboxLayer(), await siteLayer({ 'index.html': 'promoted' })],
      config: { Cmd: SERVE },
      gzip: true,
    });
    const other = await service.newProject();
    const made = async (name: string, source: object, project: string): Promise<Promoting> => {
      const call: typeof service.call = (method, place, options) =>
        service.call(method, place, { project, ...options });
      const { body } = await call('POST', '/v2/applications', { body: { name, ...source } });
      return { ...(await configuredApplication({ ...service, call }, body)), call };
    };
    const image = `localhost:${port}/bases/web:live`;
    const staging = await made('of-image', { source: { type: 'image', image } }, service.project);
    const first = await staging.deploy();
    expect([first.status, first.status_reason]).toEqual(['active', null]);
    const target = await made('takes-image', {}, other.id);
    const ended = async (path: string, body: object): Promise<{ id: string }> => {
      const one = await target.ended((await target.post(path, body)).id);
      expect([one.status, one.status_reason]).toEqual(['active', null]);
      return one;
    };
    const one = await ended('/promote', { source_application_id: staging.id });
    const digestOf = async (application: Promoting, deployment: { id: string }): Promise<string | undefined> =>
      (await imageOf(application, deployment)).split('@')[1];
    const digest = await digestOf(staging, first);
    expect(await digestOf(target, one)).toBe(digest);
    await ended('/promote', { source_application_id: staging.id });
    expect(await digestOf(target, await ended('/rollback', { deployment_id: one.id }))).toBe(digest);
    const [web] = (await target.get('/processes?type=web')).data;
    const command = 'busybox httpd -f -p "$PORT" -h /www';
    const path = `/v2/applications/${target.id}/processes/${web.id}`;
    expect((await target.call('PATCH', path, { body: { command } })).status).toBe(200);
    expect(await digestOf(target, await ended('/rollback', { deployment_id: one.id }))).toBe(digest);
    expect((await service.call('DELETE', `/v2/applications/${staging.id}`)).status).toBeLessThan(300);
    expect(await digestOf(target, await ended('/rollback', { deployment_id: one.id }))).toBe(digest);
    await target.call('DELETE', `/v2/applications/${target.id}`);
  }, 120_000);

  it('fail a deployment with a sentence where there is no base image, and the version before serves', async () => {
    const other = await startDeployService({
      ...{ REGISTRY_PORT: String(await freePort()), RELEASE_IMAGES: 'always' },
      RELEASE_BASE_IMAGE: `localhost:${port}/bases/busybox:1`,
    });
    try {
      const application = await other.application(site('baseless'));
      const deployment = await application.deploy();
      expect([deployment.status, deployment.status_reason]).toEqual([
        'failed',
        expect.stringContaining('RELEASE_BASE_IMAGE'),
      ]);
    } finally {
      await other.close();
    }
  });

  it('are refused at the start without a registry', async () => {
    await expect(startService({ settings: { RELEASE_IMAGES: 'always', REGISTRY_PORT: '0' } })).rejects.toThrow(
      /no registry can store the images: set REGISTRY_PORT/,
    );
  });
});
