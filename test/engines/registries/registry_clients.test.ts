/** @tier heavy @quarter 4 @covers engines/registry/registry models/registries/registry */
// The container registry as skopeo sees it, and killed while layers come in.
import { execFile, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { freePort } from '../../support/processes/free_port';
import { startRegistryClient, type RegistryClient } from '../../support/registries/registry_client';
import { waitFor } from '../../support/wait_for';

const run = promisify(execFile);

let plant: Plant;
let port: number;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'images-'));
  port = await freePort();
  plant = await startPlant({ REGISTRY_PORT: String(port) });
  const made = await plant.call('POST', '/v2/registries', { body: { name: 'acme' } });
  expect(made.status).toBe(201);
}, 120_000);

afterAll(async () => {
  await plant.close();
  rmSync(directory, { recursive: true, force: true });
}, 120_000);

async function robot(permissions: string[]): Promise<string> {
  const name = `robot${randomBytes(4).toString('hex')}`.replace(/\d/g, 'x');
  const { status, body } = await plant.call('POST', '/v2/robot_accounts', { body: { name, permissions } });
  expect(status).toBe(201);
  return `${body.username}:${body.secret}`;
}

/** An OCI layout with an image of random layers. @returns its reference for skopeo */
function makeImage(name: string, layers: number, layerBytes: number): string {
  const folder = path.join(directory, name);
  mkdirSync(path.join(folder, 'blobs/sha256'), { recursive: true });
  const add = (content: Buffer): { digest: string; size: number } => {
    const hex = createHash('sha256').update(content).digest('hex');
    writeFileSync(path.join(folder, 'blobs/sha256', hex), content);
    return { digest: `sha256:${hex}`, size: content.length };
  };
  const type = (kind: string): string => `application/vnd.oci.image.${kind}`;
  const contents = Array.from({ length: layers }, () => randomBytes(layerBytes));
  const rootfs = {
    type: 'layers',
    diff_ids: contents.map((content) => `sha256:${createHash('sha256').update(content).digest('hex')}`),
  };
  const config = add(Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', config: {}, rootfs })));
  const manifest = add(
    Buffer.from(
      JSON.stringify({
        ...{ schemaVersion: 2, mediaType: type('manifest.v1+json') },
        config: { mediaType: type('config.v1+json'), ...config },
        layers: contents.map((content) => ({ mediaType: type('layer.v1.tar'), ...add(content) })),
      }),
    ),
  );
  const index = {
    schemaVersion: 2,
    manifests: [
      {
        ...{ mediaType: type('manifest.v1+json'), ...manifest },
        annotations: { 'org.opencontainers.image.ref.name': 'latest' },
      },
    ],
  };
  writeFileSync(path.join(folder, 'index.json'), JSON.stringify(index));
  writeFileSync(path.join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  return `oci:${folder}:latest`;
}

const remote = (name: string): string => `docker://localhost:${port}/acme/${name}`;
const push = (image: string, name: string, credentials: string): Promise<unknown> =>
  run('skopeo', ['copy', '--dest-tls-verify=false', '--dest-creds', credentials, image, remote(name)]);

/** The digest that the registry has for a tag, as another program reads it. */
async function digestOf(name: string, credentials: string): Promise<string> {
  const { stdout } = await run('skopeo', ['inspect', '--tls-verify=false', '--creds', credentials, remote(name)]);
  return (JSON.parse(stdout) as { Digest: string }).Digest;
}

test('an image of 20 layers goes there and back, is listed, and goes away', async () => {
  const all = await robot(['pull', 'push', 'delete']);
  await push(makeImage('twenty', 20, 20_000), 'twenty:1', all);
  const back = path.join(directory, 'back');
  const from = ['--src-tls-verify=false', '--src-creds', all];
  await run('skopeo', ['copy', ...from, remote('twenty:1'), `oci:${back}:latest`]);
  const { stdout } = await run('skopeo', ['list-tags', '--tls-verify=false', '--creds', all, remote('twenty')]);
  expect((JSON.parse(stdout) as { Tags: string[] }).Tags).toEqual(['1']);
  const [{ id }] = (await plant.sql<{ id: string }>('select id from registries')) as [{ id: string }];
  expect((await plant.call('GET', `/v2/registries/${id}/images`)).body.data).toMatchObject([
    { repository: 'twenty', tag: '1', digest: await digestOf('twenty:1', all) },
  ]);
  await run('skopeo', ['delete', '--tls-verify=false', '--creds', all, remote('twenty:1')]);
  expect((await plant.call('GET', `/v2/registries/${id}`)).body.image_count).toBe(0);
}, 120_000);

test('who may not is refused', async () => {
  const image = makeImage('refused', 1, 1000);
  await expect(push(image, 'refused:1', await robot(['pull']))).rejects.toThrow(/denied|unauthorized/i);
  await expect(push(image, 'refused:1', 'robot-nobody:wrong')).rejects.toThrow(/unauthorized|authentication/i);
}, 60_000);

const hasPodman = spawnSync('podman', ['--version']).status === 0;

(hasPodman ? test : test.skip)(
  'podman login takes a robot account, keeps it for skopeo, and refuses a wrong secret',
  async () => {
    const [username = '', secret = ''] = (await robot(['pull', 'push'])).split(':');
    const file = path.join(directory, 'auth.json');
    const login = (password: string): { status: number | null; stderr: string } => {
      const options = ['--tls-verify=false', '--authfile', file, '--username', username, '--password-stdin'];
      return spawnSync('podman', ['login', ...options, `localhost:${port}`], { input: password, encoding: 'utf8' });
    };
    expect(login('wrong')).toMatchObject({ status: 125, stderr: expect.stringMatching(/unauthorized|invalid/i) });
    expect(login(secret)).toMatchObject({ status: 0 });
    const image = makeImage('podman', 1, 1000);
    await run('skopeo', ['copy', '--dest-tls-verify=false', '--dest-authfile', file, image, remote('podman:1')]);
    expect(await digestOf('podman:1', `${username}:${secret}`)).toMatch(/^sha256:/);
  },
  60_000,
);

test('a push that was killed is done again, and nothing is left over', async () => {
  const all = await robot(['pull', 'push']);
  const image = makeImage('killed', 4, 8_000_000);
  for (const ms of [20, 80, 200, 400]) {
    const pushing = push(image, 'killed:1', all).catch(() => null);
    await sleep(ms);
    await plant.kill();
    await pushing;
    await plant.start();
  }
  await waitFor('the push', () =>
    push(image, 'killed:1', all).then(
      () => true,
      () => false,
    ),
  );
  const back = path.join(directory, 'killed-back');
  const from = ['--src-tls-verify=false', '--src-creds', all];
  await run('skopeo', ['copy', ...from, remote('killed:1'), `oci:${back}:latest`]);
  const [sums] = await plant.sql<{ counted: number; stored: number }>(
    `select r.size_bytes::float8 as counted,
      (select sum(size_bytes) from registry_blobs)::float8
        + (select sum(length(content)) from registry_manifests)::float8 as stored from registries r`,
  );
  expect(sums?.counted).toBe(sums?.stored);
}, 240_000);

const LARGE_BYTES = 2_000_000_000;
const PIECE_BYTES = 2 ** 20;
/** Of the service, for a layer of 2 GB. */
const GROWTH_MB_MAX = 200;

/** The bytes of a layer that no memory has to hold: a piece with a number, again and again. */
function* layerOf(bytes: number): Generator<Buffer> {
  const piece = randomBytes(PIECE_BYTES);
  for (let offset = 0; offset < bytes; offset += PIECE_BYTES) {
    const next = Buffer.from(piece.subarray(0, Math.min(PIECE_BYTES, bytes - offset)));
    next.writeDoubleLE(offset);
    yield next;
  }
}

async function bearer(name: string, credentials: string): Promise<string> {
  const url = `http://127.0.0.1:${port}/token?scope=${encodeURIComponent(`repository:acme/${name}:pull,push`)}`;
  const headers = { Authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
  return ((await (await fetch(url, { headers })).json()) as { token: string }).token;
}

test('a layer of 2 GB goes there and back while the service needs no more memory', async () => {
  const credentials = await robot(['pull', 'push']);
  const client = await clientOf(['pull', 'push']);
  const { location } = await client.startUpload('acme/large');
  const headers = { Authorization: `Bearer ${await bearer('large', credentials)}` };
  const before = plant.peakMemoryMb();
  const hash = createHash('sha256');
  const sent = request({ port, path: location, method: 'PATCH', headers, agent: false });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  const pieces = function* (): Generator<Buffer> {
    for (const piece of layerOf(LARGE_BYTES)) {
      hash.update(piece);
      yield piece;
    }
  };
  await pipeline(Readable.from(pieces(), { objectMode: true, highWaterMark: 4 }), sent);
  const [answer] = await answered;
  answer.resume();
  expect([answer.statusCode, answer.headers.range]).toEqual([202, `0-${LARGE_BYTES - 1}`]);
  const digest = `sha256:${hash.digest('hex')}`;
  expect((await client.call('PUT', `${location}?digest=${digest}`)).status).toBe(201);

  const [pulled] = (await once(
    request({ port, path: `/v2/acme/large/blobs/${digest}`, headers, agent: false }).end(),
    'response',
  )) as [IncomingMessage];
  const back = createHash('sha256');
  for await (const piece of pulled) back.update(piece as Buffer);
  expect(`sha256:${back.digest('hex')}`).toBe(digest);
  expect(plant.peakMemoryMb() - before).toBeLessThan(GROWTH_MB_MAX);
}, 300_000);

async function clientOf(permissions: string[]): Promise<RegistryClient> {
  const [username = '', password = ''] = (await robot(permissions)).split(':');
  return startRegistryClient({ port, username, password });
}

test('an upload goes on after the platform was killed', async () => {
  const client = await clientOf(['pull', 'push']);
  const layer = randomBytes(3_000_000);
  const digest = `sha256:${createHash('sha256').update(layer).digest('hex')}`;
  const { location } = await client.startUpload('acme/resumed');
  expect((await client.call('PATCH', location, layer.subarray(0, 2_000_000))).status).toBe(202);
  await plant.kill();
  await plant.start();
  const state = await client.call('GET', location);
  expect([state.status, state.headers.get('range')]).toEqual([204, '0-1999999']);
  const rest = { 'Content-Range': '2000000-2999999' };
  expect((await client.call('PATCH', location, layer.subarray(2_000_000), rest)).status).toBe(202);
  expect((await client.call('PUT', `${location}?digest=${digest}`)).status).toBe(201);
  expect((await client.call('GET', `/v2/acme/resumed/blobs/${digest}`)).body.equals(layer)).toBe(true);
}, 120_000);

test('a thousand tags are listed page by page, by clients and by the API', async () => {
  const client = await clientOf(['pull', 'push']);
  await client.pushImage('acme/many', 'tag-0', [randomBytes(100)]);
  const { body, headers } = await client.pull('acme/many', 'tag-0');
  const type = { 'Content-Type': headers.get('content-type') ?? '' };
  const tags = Array.from({ length: 1000 }, (_, index) => `tag-${index}`);
  for (let at = 0; at < tags.length; at += 20) {
    const answers = await Promise.all(
      tags.slice(at, at + 20).map((tag) => client.call('PUT', `/v2/acme/many/manifests/${tag}`, body, type)),
    );
    expect(answers.every(({ status }) => status === 201)).toBe(true);
  }
  const listed: string[] = [];
  for (let next = '/v2/acme/many/tags/list?n=300'; next;) {
    const page = await client.call('GET', next);
    listed.push(...(JSON.parse(page.body.toString()) as { tags: string[] }).tags);
    next = /^<([^>]+)>; rel="next"$/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
  }
  expect(listed).toEqual([...tags].sort());
  const [{ id }] = (await plant.sql<{ id: string }>('select id from registries')) as [{ id: string }];
  const found = new Set<string>();
  for (let cursor = ''; ;) {
    const place = `/v2/registries/${id}/images?repository=many&limit=100&cursor=${cursor}`;
    const page = (await plant.call('GET', cursor ? place : place.replace('&cursor=', ''))).body;
    for (const { tag } of page.data as { tag: string }[]) found.add(tag);
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  expect(found.size).toBe(1000);
}, 120_000);
