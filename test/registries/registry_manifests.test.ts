// What clients push beside plain images: caches of builds, artifacts, signatures, charts, attestations, nested indexes.
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { activeRegistry, createPusher, service, setUpRegistry, type Body } from '../support/registries/registry_cases';
import type { RegistryAnswer, RegistryClient } from '../support/registries/registry_client';
import { waitFor } from '../support/wait_for';

setUpRegistry();

const OCI = 'application/vnd.oci.image';
const DOCKER = 'application/vnd.docker.distribution.manifest';
const EMPTY = 'application/vnd.oci.empty.v1+json';
const INDEX = `${OCI}.index.v1+json`;
const MANIFEST = `${OCI}.manifest.v1+json`;
const UNKNOWN = `sha256:${'0'.repeat(64)}`;

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

let client: RegistryClient;
let name: string;
let id: string;

beforeAll(async () => {
  ({ name, id } = (await activeRegistry()) as { name: string; id: string });
  client = await createPusher();
});

async function blob(mediaType: string, content: Buffer | string = randomBytes(1000)): Promise<Descriptor> {
  const bytes = Buffer.from(content);
  return { mediaType, digest: await client.pushBlob(`${name}/app`, bytes), size: bytes.length };
}

function put(reference: string, manifest: object, type: string): Promise<RegistryAnswer> {
  const body = Buffer.from(JSON.stringify(manifest));
  return client.call('PUT', `/v2/${name}/app/manifests/${reference}`, body, { 'Content-Type': type });
}

/** Pushed under its digest. */
async function pushed(manifest: object, mediaType: string): Promise<Descriptor> {
  const body = Buffer.from(JSON.stringify(manifest));
  const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
  expect((await put(digest, manifest, mediaType)).status).toBe(201);
  return { mediaType, digest, size: body.length };
}

const image = async (more: object = {}): Promise<Descriptor> =>
  pushed(
    {
      ...{ schemaVersion: 2, mediaType: MANIFEST, ...more },
      ...{ config: await blob(`${OCI}.config.v1+json`, '{}'), layers: [await blob(`${OCI}.layer.v1.tar+gzip`)] },
    },
    MANIFEST,
  );

const sizeOf = async (): Promise<number> => (await service.call('GET', `/v2/registries/${id}`)).body.size_bytes;
const hasFile = ({ digest }: Descriptor): boolean => {
  const hex = digest.slice('sha256:'.length);
  return existsSync(path.join(service.platform.config.registryDir, 'blobs/sha256', hex.slice(0, 2), hex));
};

/** An hour and a month pass, and the registry is collected. */
async function collect(untilGone: Descriptor): Promise<void> {
  await service.sql(`update registry_blobs set touched_at = touched_at - interval '2 hours' where registry_id = $1`, [
    id,
  ]);
  await service.sql(
    `update registry_manifests set untagged_at = untagged_at - interval '400 days' where registry_id = $1`,
    [id],
  );
  const unused = await waitFor('the collection', async () => {
    await service.sql('update registries set next_at = now() where id = $1', [id]);
    return hasFile(untilGone) ? null : true;
  });
  expect(unused).toBe(true);
}

// github.com/moby/buildkit/issues/2251 shows one: layers with annotations, and the configuration last.
describe.each([
  ['of OCI', INDEX, `${OCI}.layer.v1.tar+gzip`],
  ['of Docker', `${DOCKER}.list.v2+json`, 'application/vnd.docker.image.rootfs.diff.tar.gzip'],
])('a cache of BuildKit before 0.21, %s', (_, mediaType, layerType) => {
  test('is taken, counted, kept by the collection and gone with its tag', async () => {
    const before = await sizeOf();
    const layers = [await blob(layerType), await blob(layerType)];
    const annotations = { 'buildkit/createdat': '2024-05-01T10:00:00Z', 'containerd.io/uncompressed': UNKNOWN };
    const config = await blob(
      'application/vnd.buildkit.cacheconfig.v0',
      JSON.stringify({ layers: [], tag: mediaType }),
    );
    const manifests = [...layers.map((layer) => ({ ...layer, annotations })), config];
    const cache = { schemaVersion: 2, mediaType, manifests };
    const missing = { ...layers[0], digest: UNKNOWN };
    expect(await put('cache', { ...cache, manifests: [...manifests, missing] }, mediaType)).toMatchObject({
      ...{ status: 404, code: 'MANIFEST_BLOB_UNKNOWN' },
    });
    expect((await put('cache', cache, mediaType)).status).toBe(201);
    const bytes = Buffer.byteLength(JSON.stringify(cache)) + 2000 + config.size;
    expect((await sizeOf()) - before).toBe(bytes);
    const { data } = (await service.call('GET', `/v2/registries/${id}/images?tag=cache`)).body as { data: Body[] };
    expect(data).toMatchObject([{ tag: 'cache', media_type: mediaType, size_bytes: bytes }]);

    await collect(await blob('application/octet-stream'));
    const pulled = await client.pull(`${name}/app`, 'cache');
    expect(JSON.parse(pulled.body.toString())).toEqual(cache);
    for (const { digest } of manifests) {
      expect((await client.call('GET', `/v2/${name}/app/blobs/${digest}`)).status).toBe(200);
      expect(await client.call('DELETE', `/v2/${name}/app/blobs/${digest}`)).toMatchObject({ status: 403 });
    }

    expect((await client.call('DELETE', `/v2/${name}/app/manifests/cache`)).status).toBe(202);
    await collect(config);
    expect(layers.map(hasFile)).toEqual([false, false]);
    expect(await sizeOf()).toBe(before);
  });
});

test.each<[string, string, () => Promise<object>]>([
  ['an artifact with an empty configuration', MANIFEST, async () => artifact('application/vnd.example.sbom')],
  [
    'a signature of cosign',
    MANIFEST,
    async () => ({
      ...{ schemaVersion: 2, mediaType: MANIFEST, config: await blob(`${OCI}.config.v1+json`, '{"a":1}') },
      layers: [{ ...(await blob('application/vnd.dev.cosign.simplesigning.v1+json')), annotations: { 'a/b': 'MEUC' } }],
    }),
  ],
  [
    'a chart of Helm',
    MANIFEST,
    async () => ({
      ...{ schemaVersion: 2, config: await blob('application/vnd.cncf.helm.config.v1+json', '{"name":"shop"}') },
      layers: [await blob('application/vnd.cncf.helm.chart.content.v1.tar+gzip')],
    }),
  ],
  [
    'a module of WebAssembly',
    MANIFEST,
    async () => ({
      ...{
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: await blob('application/vnd.wasm.config.v0+json', '{"b":1}'),
      },
      layers: [await blob('application/wasm')],
    }),
  ],
  [
    'an image of Windows, whose base layer is elsewhere',
    `${DOCKER}.v2+json`,
    async () => ({
      ...{ schemaVersion: 2, mediaType: `${DOCKER}.v2+json` },
      config: await blob('application/vnd.docker.container.image.v1+json', '{"c":1}'),
      layers: [
        {
          mediaType: 'application/vnd.docker.image.rootfs.foreign.diff.tar.gzip',
          ...{ digest: UNKNOWN, size: 1, urls: ['https://example.com/layer'] },
        },
        await blob('application/vnd.docker.image.rootfs.diff.tar.gzip'),
      ],
    }),
  ],
  [
    'an index with an attestation, an index in it, and an artifact type',
    INDEX,
    async () => {
      const nested = await pushed({ schemaVersion: 2, mediaType: INDEX, manifests: [await image()] }, INDEX);
      const platform = { architecture: 'unknown', os: 'unknown' };
      const attestation = { ...(await image()), platform, annotations: { 'vnd.docker.reference.type': 'attestation' } };
      return { ...{ schemaVersion: 2, mediaType: INDEX, artifactType: 'a/b' }, manifests: [nested, attestation] };
    },
  ],
  [
    'an empty index, as Go writes it',
    INDEX,
    () => Promise.resolve({ schemaVersion: 2, mediaType: INDEX, manifests: null, subject: null, annotations: null }),
  ],
  [
    'a referrer of what is not there yet',
    MANIFEST,
    async () => ({
      ...(await artifact('application/vnd.in-toto+json')),
      subject: { mediaType: MANIFEST, digest: UNKNOWN, size: 7 },
    }),
  ],
])('%s is taken and pulled byte for byte', async (_, type, make) => {
  const manifest = await make();
  const answer = await put('other', manifest, type);
  expect([answer.status, answer.body.toString()]).toEqual([201, '']);
  const pulled = await client.pull(`${name}/app`, 'other');
  expect([pulled.headers.get('content-type'), pulled.body.toString()]).toEqual([type, JSON.stringify(manifest)]);
});

test.each([
  [{ schemaVersion: 1, name: 'a', fsLayers: [] }, `${DOCKER}.v1+prettyjws`, /schema 1 .*newer client/],
  [{ schemaVersion: 1, name: 'a', fsLayers: [] }, 'application/json', /schema 1 .*newer client/],
  [{ mediaType: 'application/vnd.oci.artifact.manifest.v1+json', blobs: [] }, '', /`artifactType`/],
  [{ schemaVersion: 2, manifests: [null] }, INDEX, /no valid digest/],
  [{ schemaVersion: 2, manifests: [{ mediaType: MANIFEST, digest: UNKNOWN }] }, INDEX, /does not have/],
])('%j is refused with what to do', async (manifest, type, message) => {
  const answer = await put('refused', manifest, type || 'application/vnd.oci.artifact.manifest.v1+json');
  expect([400, 404]).toContain(answer.status);
  expect(answer.body.toString()).toMatch(message);
});

async function artifact(artifactType: string): Promise<object> {
  const layers = [await blob('text/plain')];
  return { schemaVersion: 2, mediaType: MANIFEST, artifactType, config: await blob(EMPTY, '{}'), layers };
}
