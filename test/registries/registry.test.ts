// Operations: listRegistries, createRegistry, getRegistry, deleteRegistry, listRegistryImages.
// Container registries: the operations, and the OCI Distribution API that they are for.
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startRegistryClient } from '../support/registries/registry_client';
import {
  activeRegistry,
  clientOf,
  createPusher,
  createRobot,
  newName,
  port,
  service,
  setUpRegistry,
  type Body,
} from '../support/registries/registry_cases';
import { startService } from '../support/service';
import { waitFor } from '../support/wait_for';

setUpRegistry();

describe('registries', () => {
  it('answers everything that is promised', async () => {
    const made = await service.call('POST', '/v2/registries', { body: { name: 'promised' } });
    expect([made.status, made.body]).toMatchObject([
      201,
      {
        ...{ name: 'promised', region: 'local', host: `localhost:${port}/promised` },
        ...{ image_count: 0, size_bytes: 0, status: 'provisioning', status_reason: null },
      },
    ]);
    const again = await service.call('POST', '/v2/registries', { body: { name: 'promised' } });
    expect([again.status, again.body.code]).toEqual([409, 'name_taken']);
  });

  it('refuses a registry where the operator has switched registries off', async () => {
    const off = await startService({ settings: { REGISTRY_PORT: '0' } });
    try {
      const answer = await off.call('POST', '/v2/registries', { body: { name: 'acme' } });
      expect([answer.status, answer.body.code]).toEqual([409, 'engine_unavailable']);
      expect(answer.body.detail).toContain('REGISTRY_PORT');
    } finally {
      await off.close();
    }
  });

  it('is not deleted while an application has it as source', async () => {
    const registry = await activeRegistry();
    const image = `${String(registry.host)}/shop:1`;
    const application = await service.call('POST', '/v2/applications', {
      body: { name: newName(), source: { type: 'image', image, registry_id: registry.id } },
    });
    expect([application.status, application.text]).toEqual([201, expect.anything()]);
    const refused = await service.call('DELETE', `/v2/registries/${String(registry.id)}`);
    expect(refused.body).toMatchObject({
      code: 'resource_in_use',
      dependents: [{ type: 'application', id: application.body.id }],
    });
  });

  it('goes with its images, and its name becomes free', async () => {
    const registry = await activeRegistry();
    const client = await createPusher();
    await client.pushImage(`${String(registry.name)}/app`, 'latest', [randomBytes(1000)]);
    expect((await service.call('DELETE', `/v2/registries/${String(registry.id)}`)).status).toBe(204);
    expect((await client.pull(`${String(registry.name)}/app`, 'latest')).status).toBe(403);
    await waitFor('it has happened', async () => {
      const again = await service.call('POST', '/v2/registries', { body: { name: registry.name } });
      return again.status === 201;
    });
  });
});

describe('images', () => {
  it('are counted and listed exactly', async () => {
    const registry = await activeRegistry();
    const client = await createPusher();
    const [shared, own] = [randomBytes(5000), randomBytes(3000)];
    const first = await client.pushImage(`${String(registry.name)}/shop`, '1', [shared]);
    const second = await client.pushImage(`${String(registry.name)}/shop`, '2', [shared, own]);
    const got = await service.call('GET', `/v2/registries/${String(registry.id)}`);
    expect(got.body).toMatchObject({
      image_count: 2,
      size_bytes: 8000 + first.configBytes + second.configBytes + first.manifestBytes + second.manifestBytes,
    });
    const images = await service.call('GET', `/v2/registries/${String(registry.id)}/images?repository=shop`);
    expect(images.body.data).toMatchObject([
      { tag: '2', digest: second.digest, size_bytes: 8000 + second.configBytes + second.manifestBytes },
      { tag: '1', digest: first.digest, media_type: 'application/vnd.oci.image.manifest.v1+json' },
    ]);
    const deleted = await client.call('DELETE', `/v2/${String(registry.name)}/shop/manifests/${second.digest}`);
    expect(deleted.status).toBe(202);
    expect((await service.call('GET', `/v2/registries/${String(registry.id)}`)).body.image_count).toBe(1);
  });

  it('takes a layer in chunks, after an interruption too, and refuses one of another digest', async () => {
    const registry = await activeRegistry();
    const client = await createPusher();
    const name = `${String(registry.name)}/chunks`;
    const layer = randomBytes(3000);
    const digest = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
    const { location } = await client.startUpload(name);
    const patch = (start: number, end: number): Promise<{ status: number }> =>
      client.call('PATCH', location, layer.subarray(start, end), { 'Content-Range': `${start}-${end - 1}` });
    expect((await patch(0, 1000)).status).toBe(202);
    expect((await patch(2000, 3000)).status).toBe(416);
    const state = await client.call('GET', location);
    expect([state.status, state.headers.get('range')]).toEqual([204, '0-999']);
    expect((await patch(1000, 3000)).status).toBe(202);
    const wrong = `sha256:${'0'.repeat(64)}`;
    expect((await client.call('PUT', `${location}?digest=${wrong}`)).status).toBe(400);
    expect((await client.call('PUT', `${location}?digest=${digest}`)).status).toBe(201);
    const part = await client.call('GET', `/v2/${name}/blobs/${digest}`, undefined, { Range: 'bytes=10-19' });
    expect([part.status, part.body]).toEqual([206, layer.subarray(10, 20)]);
    const mounted = await client.call(
      'POST',
      `/v2/${String(registry.name)}/other/blobs/uploads/?mount=${digest}&from=${name}`,
    );
    expect(mounted.status).toBe(201);
  });

  it('refuses a manifest that names what was never pushed, and what is none', async () => {
    const client = await createPusher();
    const name = `${String((await activeRegistry()).name)}/bad`;
    const missing = await client.putManifest(name, 'x', { layers: [`sha256:${'1'.repeat(64)}`] });
    expect([missing.status, missing.code]).toEqual([404, 'MANIFEST_BLOB_UNKNOWN']);
    for (const text of ['nonsense', '[]', '{"schemaVersion":1}', '{"schemaVersion":2,"mediaType":"text/plain"}']) {
      const answer = await client.call('PUT', `/v2/${name}/manifests/x`, Buffer.from(text), {
        'Content-Type': 'application/vnd.oci.image.manifest.v1+json',
      });
      expect([text, answer.status]).toEqual([text, 400]);
    }
  });

  it('lists tags in pages and shows referrers', async () => {
    const client = await createPusher();
    const name = `${String((await activeRegistry()).name)}/tags`;
    const base = await client.pushImage(name, 'a', [randomBytes(10)]);
    for (const tag of ['b', 'c']) await client.pushImage(name, tag, [randomBytes(10)]);
    const first = await client.call('GET', `/v2/${name}/tags/list?n=2`);
    expect(JSON.parse(first.body.toString())).toEqual({ name, tags: ['a', 'b'] });
    expect(first.headers.get('link')).toBe(`</v2/${name}/tags/list?n=2&last=b>; rel="next"`);
    const signature = await client.pushImage(name, null, [randomBytes(10)], {
      subject: base,
      artifactType: 'application/vnd.example.signature',
    });
    const referrers = await client.call(
      'GET',
      `/v2/${name}/referrers/${base.digest}?artifactType=application/vnd.example.signature`,
    );
    expect(JSON.parse(referrers.body.toString())).toMatchObject({
      manifests: [{ digest: signature.digest, artifactType: 'application/vnd.example.signature' }],
    });
    expect(referrers.headers.get('oci-filters-applied')).toBe('artifactType');
  });

  it('lets people log in with an API key, as far as its scopes reach', async () => {
    const name = `${String((await activeRegistry()).name)}/people`;
    const person = startRegistryClient({ port, username: 'anybody', password: service.key });
    await person.pushImage(name, '1', [randomBytes(10)]);
    expect((await person.pull(name, '1')).status).toBe(200);
    const stranger = startRegistryClient({ port, username: 'anybody', password: 'svc_wrong' });
    expect((await stranger.pull(name, '1')).status).toBe(401);
  });

  it('are deleted by a key that may delete alone, and a paused key does nothing', async () => {
    const name = `${String((await activeRegistry()).name)}/kept`;
    const token = await service.mintKey({ may_destroy: false });
    const ci = startRegistryClient({ port, username: 'ci', password: token });
    const { digest } = await ci.pushImage(name, '1', [randomBytes(10)]);
    const refused = await ci.call('DELETE', `/v2/${name}/manifests/${digest}`);
    expect([refused.status, (await ci.pull(name, '1')).status]).toEqual([403, 200]);
    const made = await service.call('POST', '/v2/robot_accounts', {
      key: token,
      body: { name: 'mine', permissions: ['delete'] },
    });
    expect([made.status, made.body.code]).toEqual([403, 'destroy_not_allowed']);
    await service.sql('update api_keys set paused_at = now() where may_destroy = false');
    expect((await ci.pull(name, '1')).status).not.toBe(200);
    await service.sql('update api_keys set paused_at = null');
  });

  it('are in the activity when they are pushed and deleted, with who did it', async () => {
    const { id, name } = await activeRegistry();
    const robot = await createRobot(['pull', 'push', 'delete']);
    const { digest } = await clientOf(robot).pushImage(`${String(name)}/shop`, '1', [randomBytes(10)]);
    const person = startRegistryClient({ port, username: 'anybody', password: service.key });
    // What changes nothing is no event.
    const { body } = await person.pull(`${String(name)}/shop`, '1');
    const headers = { 'Content-Type': 'application/vnd.oci.image.manifest.v1+json' };
    expect((await person.call('PUT', `/v2/${String(name)}/shop/manifests/1`, body, headers)).status).toBe(201);
    expect((await person.call('PUT', `/v2/${String(name)}/shop/manifests/2`, body, headers)).status).toBe(201);
    expect((await person.call('DELETE', `/v2/${String(name)}/shop/manifests/${digest}`)).status).toBe(202);
    const path = `/v2/projects/${service.project}/activity?resource_id=${String(id)}&sort=created_at`;
    const { data } = (await service.call('GET', path)).body;
    const changes = (data as Body[]).filter(({ resource }) => resource.name.includes('/shop'));
    const by = { type: 'robot_account', id: robot.id, name: robot.name };
    const found = changes.map(({ action, actor, resource }) => [action, actor.type, resource.name]);
    expect(changes[0]).toMatchObject({ action: 'registry.image_pushed', actor: by });
    expect(found).toEqual([
      ['registry.image_pushed', 'robot_account', `${String(name)}/shop:1`],
      ['registry.image_pushed', 'user', `${String(name)}/shop:2`],
      ...['1', '2'].map((tag) => ['registry.image_deleted', 'user', `${String(name)}/shop:${tag}`]),
    ]);
  });

  it('get several tags in one push by their digest', async () => {
    const { id, name } = await activeRegistry();
    const client = await createPusher();
    const image = await client.pushImage(`${String(name)}/many`, null, [randomBytes(100)]);
    const { body } = await client.pull(`${String(name)}/many`, image.digest);
    const put = (reference: string, query: string) =>
      client.call('PUT', `/v2/${String(name)}/many/manifests/${reference}?${query}`, body, {
        'Content-Type': image.mediaType,
      });
    const pushed = await put(image.digest, 'tag=1.2.3&tag=1.2&tag=1&tag=1');
    expect([pushed.status, pushed.headers.get('oci-tag')]).toEqual([201, '1.2.3, 1.2, 1']);
    for (const tag of ['1.2.3', '1.2', '1'])
      expect((await client.pull(`${String(name)}/many`, tag)).headers.get('docker-content-digest')).toBe(image.digest);
    expect((await service.call('GET', `/v2/registries/${String(id)}`)).body.image_count).toBe(3);
    const tooMany = Array.from({ length: 101 }, (_, index) => `tag=t${index}`).join('&');
    for (const [reference, query, status] of [
      [image.digest, 'tag=../evil', 400],
      [image.digest, 'tag=', 400],
      [image.digest, tooMany, 414],
      ['2.0', 'tag=2.1', 400],
    ] as const)
      expect(await put(reference, query)).toMatchObject({ status, code: 'MANIFEST_INVALID' });
    expect((await client.call('GET', `/v2/${String(name)}/many/tags/list`)).body.toString()).toContain(
      '["1","1.2","1.2.3"]',
    );
  });

  it('has one of two that were pushed to one tag at once, and counts it once', async () => {
    const { id, name } = await activeRegistry();
    const clients = await Promise.all([createPusher(), createPusher(), createPusher(), createPusher()]);
    const pushed = await Promise.all(
      clients.map((client) => client.pushImage(`${String(name)}/race`, 'live', [randomBytes(1000)])),
    );
    const { headers, body } = await clients[0]!.pull(`${String(name)}/race`, 'live');
    const live = pushed.find(({ digest }) => digest === headers.get('docker-content-digest'));
    expect(live?.manifestBytes).toBe(body.length);
    const { image_count, size_bytes } = (await service.call('GET', `/v2/registries/${String(id)}`)).body;
    const sizes = pushed.map(({ manifestBytes, configBytes }) => 1000 + manifestBytes + configBytes);
    expect([image_count, size_bytes]).toEqual([1, sizes.reduce((sum, size) => sum + size, 0)]);
    // Those that lost the tag are still there by their digest, until they are collected.
    for (const { digest } of pushed) expect((await clients[0]!.pull(`${String(name)}/race`, digest)).status).toBe(200);
  });

  it('are never served with a layer whose file was damaged', async () => {
    const { name } = await activeRegistry();
    const client = await createPusher();
    const layer = randomBytes(200_000);
    const digest = await client.pushBlob(`${String(name)}/app`, layer);
    const get = (headers: Record<string, string> = {}) =>
      client.call('GET', `/v2/${String(name)}/app/blobs/${digest}`, undefined, headers);
    expect((await get()).body.equals(layer)).toBe(true);
    const hex = digest.slice('sha256:'.length);
    const file = path.join(service.platform.config.registryDir, 'blobs/sha256', hex.slice(0, 2), hex);
    const damaged = Buffer.from(layer);
    damaged[100_000]! ^= 1;
    writeFileSync(file, damaged);
    const part = await get({ Range: 'bytes=0-9' });
    expect([part.status, part.code]).toEqual([404, 'BLOB_UNKNOWN']);
    expect((await get()).status).toBe(404);
    // It is kept for the operator, and a client that has the layer brings it again.
    expect(readFileSync(`${file}.damaged`).equals(damaged)).toBe(true);
    await client.pushBlob(`${String(name)}/app`, layer);
    expect((await get()).body.equals(layer)).toBe(true);
  });
});
