/** @tier heavy @quarter 3 @covers engines/registry/registry models/registries/registry */
// SIGKILL within one push of a layer, one end of an upload in chunks, one push of a tag, one deletion and one garbage
// collection of the embedded registry, at continuations of each. What was acknowledged stays, the rest is there as a
// whole or not at all, the counts are exact, and the sweep leaves no file without a row.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { openUploadFiles } from '../../../engines/registry/uploads';
import { openBlobFiles } from '../../../engines/registry/blob_files';
import { registryContent } from '../../../models/registries/registry/content';
import { unusedDigests } from '../../../models/registries/registry/collect';
import { freePort } from '../../support/processes/free_port';
import { sha256 } from '../../support/builds/images';
import { startRegistryClient, type RegistryClient } from '../../support/registries/registry_client';
import { startService, type TestService } from '../../support/service';
import { killsAll } from '../../support/processes/kills';

/** Of each step; CONFORMANCE_KILLS=all kills at every one. */
const KILLS = 10;
const WITHIN_MS = killsAll ? 3_600_000 : 180_000;
const NAME = 'acme/app';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

interface Request {
  method: string;
  path: string;
  body?: Buffer;
  headers?: Record<string, string>;
}

interface Step {
  step: Request | 'collect';
  check(acknowledged: boolean): Promise<void>;
}

let service: TestService;
let port: number;
let client: RegistryClient;
let registryId: string;

beforeAll(async () => {
  port = await freePort();
  service = await startService({ worker: true, settings: { REGISTRY_PORT: String(port) } });
  const headers = { Prefer: 'wait=20' };
  const made = await service.call('POST', '/v2/registries', { body: { name: 'acme' }, headers });
  expect([made.status, made.body.status]).toEqual([201, 'active']);
  registryId = made.body.id;
  client = startRegistryClient({ port, username: 'owner', password: service.key });
}, 180_000);
afterAll(() => service?.close());

async function token(): Promise<string> {
  const basic = Buffer.from(`owner:${service.key}`).toString('base64');
  const scope = encodeURIComponent(`repository:${NAME}:pull,push,delete`);
  const url = `http://127.0.0.1:${port}/token?scope=${scope}`;
  const issued = await fetch(url, { headers: { Authorization: `Basic ${basic}` } });
  return ((await issued.json()) as { token: string }).token;
}

async function stepOf(step: Step['step']): Promise<object> {
  if (step === 'collect') return { collect: { id: registryId, name: 'acme' } };
  const headers = { ...step.headers, Authorization: `Bearer ${await token()}` };
  return { ...step, headers, body: step.body?.toString('base64') };
}

/** @returns how many continuations the step has, null where it was killed before its end */
async function run(step: Step['step'], killAt: number): Promise<{ acknowledged: boolean; total: number | null }> {
  const { config, databaseUrl } = { ...service.platform };
  const given = {
    ...{ killAt, step: await stepOf(step) },
    config: { ...config, registryPort: await freePort(), databaseUrl },
  };
  const program = path.join(__dirname, '../../support/registries/registry_killed_child.js');
  const child = spawn(process.execPath, [program, JSON.stringify(given)]);
  let [out, err] = ['', ''];
  child.stdout.on('data', (text) => (out += String(text)));
  child.stderr.on('data', (text) => (err += String(text)));
  const signal = await new Promise((resolve) => child.once('close', (_code, name) => resolve(name)));
  const [first = '', second = ''] = out.includes('done') ? out.split('\n') : ['', out];
  if (signal === 'SIGKILL') return { acknowledged: first === 'done', total: null };
  if (!second) throw new Error(err);
  return { acknowledged: first === 'done' || step === 'collect', total: Number(second) };
}

async function killed(name: string, prepare: () => Promise<Step>): Promise<void> {
  const first = await prepare();
  const whole = await run(first.step, 0);
  const total = whole.total as number;
  await first.check(true);
  const most = killsAll ? total : KILLS;
  let kills = 0;
  for (let index = 0; index < most; index += 1) {
    const at = killsAll ? index + 1 : 1 + Math.floor(((index + Math.random()) * total) / most);
    const { step, check } = await prepare();
    const ended = await run(step, at);
    if (ended.total === null) kills += 1;
    await check(ended.acknowledged);
  }
  // A step that is done before its turn is not killed: on a busy machine some are.
  expect(kills).toBeGreaterThan(0);
  const swept = await requireWhole();
  process.stdout.write(`${name}: ${total} continuations, ${kills} kills, ${swept} files without a row swept\n`);
}

/** Counts are those of the rows; after the sweep each file has a row, and each row its file. @returns files swept */
async function requireWhole(): Promise<number> {
  const { database, config } = service.platform;
  const blobs = openBlobFiles(path.join(config.registryDir, 'blobs'));
  const content = registryContent(database);
  let swept = 0;
  for await (const digests of blobs.list()) {
    for (const digest of await unusedDigests(database, digests)) {
      await content.ifUnused(digest, () => blobs.remove(digest));
      swept += 1;
    }
  }
  await openUploadFiles(path.join(config.registryDir, 'uploads')).removeOld(0);
  const [counts] = await service.sql<Record<string, number>>(
    `select size_bytes::float8 as size, image_count::int as images,
      ((select coalesce(sum(size_bytes), 0) from registry_blobs where registry_id = r.id)
        + (select coalesce(sum(length(content)), 0) from registry_manifests where registry_id = r.id)
      )::float8 as stored,
      (select count(*) from registry_tags where registry_id = r.id)::int as tags from registries r where id = $1`,
    [registryId],
  );
  expect([counts?.size, counts?.images]).toEqual([counts?.stored, counts?.tags]);
  const rows = await service.sql<{ digest: string }>('select distinct digest from registry_blobs');
  const files = readdirSync(config.registryDir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const found = files.map((one) => sha256(readFileSync(path.join(one.parentPath ?? one.path, one.name))));
  expect(found.sort()).toEqual(rows.map(({ digest }) => digest).sort());
  return swept;
}

async function isThere(digest: string, content: Buffer): Promise<boolean> {
  const { status, body } = await client.call('GET', `/v2/${NAME}/blobs/${digest}`);
  if (status === 200) expect(body.equals(content)).toBe(true);
  return status === 200;
}

test(
  'a push of a layer, and the end of an upload in chunks',
  async () => {
    await killed('push of a layer', () => {
      const layer = randomBytes(60_000);
      const digest = sha256(layer);
      const path = `/v2/${NAME}/blobs/uploads/?digest=${digest}`;
      return Promise.resolve({
        step: { method: 'POST', path, body: layer },
        async check(acknowledged) {
          expect((await isThere(digest, layer)) || !acknowledged).toBe(true);
          await client.pushBlob(NAME, layer);
          expect(await isThere(digest, layer)).toBe(true);
        },
      });
    });
    await killed('end of an upload', async () => {
      const layer = randomBytes(60_000);
      const digest = sha256(layer);
      const { location } = await client.startUpload(NAME);
      expect((await client.call('PATCH', location, layer.subarray(0, 40_000))).status).toBe(202);
      return {
        step: { method: 'PUT', path: `${location}?digest=${digest}`, body: layer.subarray(40_000) },
        async check(acknowledged) {
          expect((await isThere(digest, layer)) || !acknowledged).toBe(true);
        },
      };
    });
  },
  WITHIN_MS,
);

test(
  'a push of a tag, and its deletion',
  async () => {
    const tagged = async (): Promise<string | null> => {
      const found = await client.pull(NAME, 'live');
      return found.headers.get('docker-content-digest');
    };
    await killed('push of a tag', async () => {
      const before = await client.pushImage(NAME, 'live', [randomBytes(1000)]);
      const config = randomBytes(500);
      const digest = await client.pushBlob(NAME, config);
      const type = 'application/vnd.oci.image.config.v1+json';
      const manifest = { schemaVersion: 2, mediaType: MANIFEST, config: { mediaType: type, digest, size: 500 } };
      const body = Buffer.from(JSON.stringify({ ...manifest, layers: [] }));
      const headers = { 'Content-Type': MANIFEST };
      return {
        step: { method: 'PUT', path: `/v2/${NAME}/manifests/live`, body, headers },
        async check(acknowledged) {
          const after = await tagged();
          expect(acknowledged ? [sha256(body)] : [sha256(body), before.digest]).toContain(after);
        },
      };
    });
    await killed('deletion', async () => {
      const { digest } = await client.pushImage(NAME, 'live', [randomBytes(1000)]);
      return {
        step: { method: 'DELETE', path: `/v2/${NAME}/manifests/${digest}` },
        check: async (acknowledged) => expect(acknowledged ? [null] : [null, digest]).toContain(await tagged()),
      };
    });
  },
  WITHIN_MS,
);

test(
  'a garbage collection',
  async () => {
    await killed('garbage collection', async () => {
      const kept = randomBytes(2000);
      await client.pushImage(NAME, 'kept', [kept]);
      const old = randomBytes(2000);
      const { digest } = await client.pushImage(NAME, 'old', [old]);
      expect((await client.call('DELETE', `/v2/${NAME}/manifests/${digest}`)).status).toBe(202);
      await service.sql(
        `update registry_blobs set touched_at = now() - interval '2 hours' where registry_id = $1 and digest = $2`,
        [registryId, sha256(old)],
      );
      return {
        step: 'collect',
        async check(acknowledged) {
          expect(await isThere(sha256(kept), kept)).toBe(true);
          if (acknowledged) expect(await isThere(sha256(old), old)).toBe(false);
        },
      };
    });
  },
  WITHIN_MS,
);
