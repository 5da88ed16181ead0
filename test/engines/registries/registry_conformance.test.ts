/** @tier heavy @quarter 3 @covers engines/registry/registry models/registries/registry */
// What holds for every engine of container registries: the embedded one, and Debian's docker-registry with our tokens.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { configuredApplication, startDeployService, type DeployService } from '../../support/deployments/deploy';
import { openDistribution, type Distribution } from '../../support/registries/distribution';
import { freePort } from '../../support/processes/free_port';
import { busyboxLayer, pushImage, siteLayer } from '../../support/builds/images';
import { startRegistryClient, type RegistryClient } from '../../support/registries/registry_client';
import type { Answer } from '../../support/service';
import { waitFor } from '../../support/wait_for';
import { hasProgram } from '../../support/runner/has_program';
import { needs } from '../../support/runner/programs';

const ENGINES = ['embedded', ...(hasProgram('docker-registry') ? ['distribution'] : [])] as const;
const { test: runsImages } = needs('busybox', 'bwrap');
const { test: buildsImages } = needs('buildah', 'busybox', 'bwrap');

describe.each(ENGINES)('the registry engine %s', (engine) => {
  let service: DeployService;
  let distribution: Distribution | null = null;
  /** Where clients talk to. */
  let port: number;
  let host: string;
  let serial = 0;

  beforeAll(async () => {
    const own = await freePort();
    distribution = engine === 'distribution' ? await openDistribution() : null;
    const more = distribution && {
      DISTRIBUTION_URL: distribution.url,
      DISTRIBUTION_EVENTS_KEY: distribution.eventsKey,
    };
    service = await startDeployService({ REGISTRY_PORT: String(own), QUOTAS: '{"registries": 100}', ...more });
    const { registryDir } = service.platform.config;
    await distribution?.start({ port: own, certificate: path.join(registryDir, 'token.crt') });
    host = distribution?.host ?? `localhost:${own}`;
    port = Number(host.slice(host.indexOf(':') + 1));
  }, 120_000);

  afterAll(async () => {
    await service?.close();
    await distribution?.close();
  }, 120_000);

  const owner = (): RegistryClient => startRegistryClient({ port, username: 'owner', password: service.key });

  async function activeRegistry(name = `reg${(serial += 1)}`): Promise<Answer['body']> {
    const made = await service.call('POST', '/v2/registries', { body: { name }, headers: { Prefer: 'wait=20' } });
    expect([made.status, made.body.status, made.body.host]).toEqual([201, 'active', `${host}/${name}`]);
    return made.body;
  }

  /** `again`: another client of the same account, without a token. */
  async function robot(
    permissions: string[],
    more: object = {},
  ): Promise<{ id: string; client: RegistryClient; again: RegistryClient }> {
    const body = { name: `robot${(serial += 1)}`, permissions, ...more };
    const made = await service.call('POST', '/v2/robot_accounts', { body });
    expect([made.status, made.text]).toEqual([201, expect.anything()]);
    const { id, username, secret: password } = made.body;
    const account = { port, username, password };
    return { id, client: startRegistryClient(account), again: startRegistryClient(account) };
  }

  const get = async (id: string): Promise<Answer['body']> => (await service.call('GET', `/v2/registries/${id}`)).body;
  const images = async (id: string): Promise<Answer['body'][]> =>
    (await service.call('GET', `/v2/registries/${id}/images`)).body.data;

  test('what is pushed is pulled, listed and counted exactly, shared layers once', async () => {
    const { id, name } = await activeRegistry();
    const { client } = await robot(['pull', 'push', 'delete']);
    const [shared, more] = [randomBytes(5000), randomBytes(3000)];
    const first = await client.pushImage(`${name}/shop`, '1', [shared]);
    const second = await client.pushImage(`${name}/shop`, '2', [shared, more]);
    const sizes = [first, second].map((one) => one.configBytes + one.manifestBytes);
    const total = 8000 + Number(sizes[0]) + Number(sizes[1]);
    await waitFor('the counts', async () => {
      const { image_count, size_bytes } = await get(id);
      return image_count === 2 && size_bytes === total;
    });
    expect(await images(id)).toMatchObject([
      { repository: 'shop', tag: '2', digest: second.digest, size_bytes: 8000 + Number(sizes[1]) },
      { repository: 'shop', tag: '1', digest: first.digest, media_type: first.mediaType },
    ]);
    for (const reference of ['1', first.digest]) {
      const pulled = await client.pull(`${name}/shop`, reference);
      expect([pulled.status, pulled.headers.get('docker-content-digest')]).toEqual([200, first.digest]);
    }
    // A tag that moves, then one that goes.
    const third = await client.pushImage(`${name}/shop`, '1', [more]);
    await waitFor('the new digest', async () =>
      (await images(id)).some(({ tag, digest }) => tag === '1' && digest === third.digest),
    );
    const deleted = await client.call('DELETE', `/v2/${name}/shop/manifests/${second.digest}`);
    expect(deleted.status).toBe(202);
    await waitFor('its end', async () => (await get(id)).image_count === 1);
    expect((await client.pull(`${name}/shop`, '2')).status).toBe(404);
  });

  test('a cache of BuildKit, an index of layers, is listed and counted with them', async () => {
    const { id, name } = await activeRegistry();
    const { client } = await robot(['pull', 'push', 'delete']);
    const type = 'application/vnd.oci.image.index.v1+json';
    const contents = {
      'vnd.oci.image.layer.v1.tar+gzip': randomBytes(4000),
      'vnd.buildkit.cacheconfig.v0': randomBytes(50),
    };
    const manifests: object[] = [];
    for (const [kind, content] of Object.entries(contents)) {
      const digest = await client.pushBlob(`${name}/shop`, content);
      manifests.push({ mediaType: `application/${kind}`, digest, size: content.length });
    }
    const cache = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: type, manifests }));
    const path = `/v2/${name}/shop/manifests/cache`;
    expect((await client.call('PUT', path, cache, { 'Content-Type': type })).status).toBe(201);
    await waitFor('the counts', async () => {
      const { image_count, size_bytes } = await get(id);
      return image_count === 1 && size_bytes === 4050 + cache.length;
    });
    expect(await images(id)).toMatchObject([{ tag: 'cache', media_type: type, size_bytes: 4050 + cache.length }]);
    expect((await client.call('GET', path, undefined, { Accept: type })).body.equals(cache)).toBe(true);
  });

  test('a layer comes in chunks, and not with another digest', async () => {
    const { name } = await activeRegistry();
    const { client } = await robot(['pull', 'push']);
    const layer = randomBytes(3000);
    const digest = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
    let { location } = await client.startUpload(`${name}/chunks`);
    for (const [start, end] of [
      [0, 1000],
      [1000, 3000],
    ] as const) {
      const headers = { 'Content-Range': `${start}-${end - 1}`, 'Content-Type': 'application/octet-stream' };
      const answer = await client.call('PATCH', location, layer.subarray(start, end), headers);
      expect([answer.status, answer.headers.get('range')]).toEqual([202, `0-${end - 1}`]);
      location = answer.headers.get('location') ?? location;
    }
    const at = (wanted: string): string => `${location}${location.includes('?') ? '&' : '?'}digest=${wanted}`;
    expect((await client.call('PUT', at(`sha256:${'0'.repeat(64)}`))).status).toBe(400);
    expect((await client.call('PUT', at(digest))).status).toBe(201);
    expect((await client.call('GET', `/v2/${name}/chunks/blobs/${digest}`)).body).toEqual(layer);
    const missing = await client.putManifest(`${name}/chunks`, 'x', { layers: [`sha256:${'1'.repeat(64)}`] });
    expect([400, 404]).toContain(missing.status);
  });

  test('nobody gets further than their rights', async () => {
    const [one, other] = [await activeRegistry(), await activeRegistry()];
    await owner().pushImage(`${one.name}/app`, '1', [randomBytes(100)]);
    const statusOf = async (work: Promise<unknown>): Promise<string> => String(await work.catch((e: Error) => e));
    const reader = (await robot(['pull'])).client;
    expect((await reader.pull(`${one.name}/app`, '1')).status).toBe(200);
    expect(await statusOf(reader.pushImage(`${one.name}/app`, '2', [randomBytes(10)]))).toMatch(/answered 40[13]/);
    const limited = (await robot(['pull', 'push'], { registry_ids: [other.id] })).client;
    expect([401, 403]).toContain((await limited.pull(`${one.name}/app`, '1')).status);
    expect(await statusOf(limited.pushImage('outside/app', '1', [randomBytes(10)]))).toMatch(/answered 40[13]/);
    expect([401, 403]).toContain((await owner().call('GET', '/v2/_catalog')).status);
    const stranger = await service.newProject({ stranger: true });
    const foreign = startRegistryClient({ port, username: 'x', password: stranger.key });
    expect([401, 403]).toContain((await foreign.pull(`${one.name}/app`, '1')).status);
    const { id, client, again } = await robot(['pull']);
    expect((await client.pull(`${one.name}/app`, '1')).status).toBe(200);
    await waitFor('its last use', async () => {
      const { body } = await service.call('GET', `/v2/robot_accounts/${id}`);
      return body.last_used_at !== null;
    });
    expect((await service.call('DELETE', `/v2/robot_accounts/${id}`)).status).toBe(204);
    // Of the embedded registry tokens end with it too; elsewhere new ones are refused.
    const last = engine === 'embedded' ? client : again;
    expect((await last.pull(`${one.name}/app`, '1')).status).toBe(401);
  });

  test('a deleted registry leaves nothing to who gets its name', async () => {
    const { id, name } = await activeRegistry();
    const layer = randomBytes(1000);
    const { digest } = await owner().pushImage(`${name}/app`, '1', [layer]);
    await waitFor('its row', async () => (await get(id)).image_count === 1);
    expect((await service.call('DELETE', `/v2/registries/${id}`)).status).toBe(204);
    // Tokens that were issued for it are good for a minute, in which its name stays taken.
    await service.sql(`update registries set deleted_at = deleted_at - interval '2 minutes' where id = $1`, [id]);
    await waitFor(
      'its end',
      async () => (await service.sql('select 1 from registries where id = $1', [id])).length === 0,
    );
    await activeRegistry(name);
    const blob = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
    expect((await owner().pull(`${name}/app`, digest)).status).toBe(404);
    expect((await owner().call('GET', `/v2/${name}/app/blobs/${blob}`)).status).toBe(404);
  }, 60_000);

  runsImages(
    'an application runs from it and follows a tag',
    async () => {
      const { name } = await activeRegistry();
      const push = async (text: string): Promise<string> =>
        pushImage(owner(), `${name}/web`, 'live', {
          layers: [await busyboxLayer(), await siteLayer({ 'index.html': text })],
        });
      const digest = await push('old');
      const source = { type: 'image', image: `${host}/${name}/web:live` };
      const made = await service.call('POST', '/v2/applications', { body: { name: `app-${name}`, source } });
      const application = await configuredApplication(service, made.body);
      const deployment = await application.deploy();
      expect([deployment.status_reason, deployment.image]).toEqual([null, `${source.image}@${digest}`]);
      const enabled = { body: { enabled: true } };
      expect((await service.call('PATCH', `/v2/applications/${application.id}/auto_deploy`, enabled)).status).toBe(200);
      await waitFor('the first look', async () => (await application.get('/auto_deploy')).last_checked_at !== null);
      await push('new');
      await waitFor('the new image', async () => (await application.visit()).body === 'new', 30_000);
    },
    120_000,
  );

  test('pushes and deletions are in the activity, with who did them', async () => {
    const { id, name } = await activeRegistry();
    const account = await robot(['pull', 'push', 'delete']);
    const { digest } = await account.client.pushImage(`${name}/app`, '1', [randomBytes(100)]);
    const place = `/v2/projects/${service.project}/activity?resource_id=${id}`;
    const found = async (action: string): Promise<Answer['body'][]> =>
      (await service.call('GET', place)).body.data.filter((one: Answer['body']) => one.action === action);
    const pushed = await waitFor('the push', async () => (await found('registry.image_pushed'))[0], 30_000);
    expect(pushed.actor).toMatchObject({ type: 'robot_account', id: account.id });
    expect(pushed.resource).toMatchObject({ id, name: `${name}/app:1` });
    expect((await owner().call('DELETE', `/v2/${name}/app/manifests/${digest}`)).status).toBe(202);
    const deleted = await waitFor('the deletion', async () => (await found('registry.image_deleted'))[0], 30_000);
    expect(deleted.resource).toMatchObject({ id, name: `${name}/app:1` });
    expect(
      [await found('registry.image_pushed'), await found('registry.image_deleted')].map((all) => all.length),
    ).toEqual([1, 1]);
  }, 90_000);

  if (engine !== 'distribution') return;

  // Of the embedded one: test/engines/deployments/dockerfile.test.ts.
  buildsImages(
    'the image of a Dockerfile is pushed to it, and runs from there',
    async () => {
      const { id, name } = await activeRegistry();
      const files = {
        Dockerfile:
          'FROM scratch\nCOPY busybox /bin/busybox\nCOPY index.html /www/index.html\n' +
          'CMD ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p $PORT -h /www"]\n',
        busybox: { mode: '100755' as const, content: readFileSync('/bin/busybox') },
        'index.html': 'built',
      };
      const image = `${host}/${name}/built:1`;
      const application = await service.application(files, { build: { builder: 'dockerfile', image } });
      expect((await application.deploy()).status_reason).toBe(null);
      await waitFor('its row', async () => (await images(id)).some(({ tag }) => tag === '1'), 30_000);
      const source = { type: 'image', image };
      const made = await service.call('POST', '/v2/applications', { body: { name: `from-${name}`, source } });
      const again = await configuredApplication(service, made.body);
      expect((await again.deploy()).status_reason).toBe(null);
      expect((await again.visit()).body).toBe('built');
    },
    180_000,
  );

  test('what no notification said is found by comparison, and forged notifications are refused', async () => {
    const { id, name } = await activeRegistry();
    const { digest } = await owner().pushImage(`${name}/app`, '1', [randomBytes(100)]);
    await waitFor('its row', async () => (await get(id)).image_count === 1);
    await service.sql('delete from registry_tags where registry_id = $1', [id]);
    await service.sql('update registries set image_count = 0, next_at = now() where id = $1', [id]);
    await waitFor('the tag', async () => (await images(id)).some((image) => image.digest === digest));
    expect((await get(id)).image_count).toBe(1);
    const forged = await fetch(`http://127.0.0.1:${service.platform.config.registryPort}/events`, {
      method: 'POST',
      headers: { Authorization: 'Bearer another' },
      body: '{"events": []}',
    });
    expect(forged.status).toBe(401);
  }, 60_000);
});
