/** @tier heavy @quarter 2 @covers drivers/file_store drivers/backup_store server/http/source_uploads.ts */
// Uploads in a file store: any process of the API takes them, and any machine that builds has them. The store fails in
// all ways on the way.
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { driverContext } from '../../../core/driver';
import { openFileStore } from '../../../drivers/file_store/open';
import { openSourceUploads } from '../../../drivers/source/upload_files';
import { uploadLeftovers } from '../../../jobs/applications/application/leftovers';
import type { Drivers } from '../../../jobs/job';
import { takeStock } from '../../../server/backup/manifest';
import { openSession } from '../../../server/platform/session';
import { withoutUploadRow } from '../../../models/deployments/source_upload/job_queries';
import { tarOf } from '../../support/builds/archives';
import { configuredApplication, startDeployService, type DeployService } from '../../support/deployments/deploy';
import { put } from '../../support/deployments/source_uploads';
import { openFileStoreTrial, STORES, type FileStoreTrial } from '../../support/object_storage/file_store';
import type { Fault } from '../../support/object_storage/faulty_store';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { retryCheck, waitFor } from '../../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
jest.setTimeout(300_000);
const MIB = 2 ** 20;

describe.each(STORES)('%s', (kind) => {
  let store: FileStoreTrial;
  let service: DeployService;
  let elsewhere: { base: string; directory: string; program: Program };
  let app: any;

  async function startElsewhere(settings: Record<string, string> = {}): Promise<typeof elsewhere> {
    const { databaseUrl, config } = service.platform;
    const directory = mkdtempSync(path.join(tmpdir(), 'platform-elsewhere-'));
    const program = startProgram({
      ...{ DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: directory, WORKER: 'separate' },
      ...{ PLATFORM_SECRET_KEY: readFileSync(path.join(config.dataDir, 'secret-key'), 'utf8').trim() },
      ...store.settings,
      ...settings,
    });
    return { base: await program.ready(), directory, program };
  }

  beforeAll(async () => {
    store = await openFileStoreTrial(kind);
    service = await startDeployService(store.settings);
    elsewhere = await startElsewhere();
    const made = await service.call('POST', '/v2/applications', {
      body: { name: 'uploaded', source: { type: 'upload' } },
    });
    app = await configuredApplication(service, made.body);
  });
  afterAll(async () => {
    store?.faults.fail('none');
    await endPrograms();
    await service?.close();
    await store?.close();
    if (elsewhere) rmSync(elsewhere.directory, { recursive: true, force: true });
  });
  afterEach(() => store.faults.fail('none'));

  async function create(base = elsewhere.base, body: object = {}): Promise<any> {
    const answer = await fetch(`${base}/v2/applications/${app.id}/source_uploads`, {
      method: 'POST',
      headers: {
        ...{ Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project },
        'Content-Type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  }

  const namesIn = (directory: string): string[] =>
    existsSync(directory) ? readdirSync(directory).filter((name) => name.startsWith('src_')) : [];
  const localOf = (runtime: string): string[] => namesIn(path.join(runtime, 'source-uploads'));
  const site = (text: string): Promise<Buffer> => tarOf({ name: 'index.html', body: text });

  async function uploaded(archive: Buffer): Promise<{ id: string; name: string }> {
    const { body } = await create();
    expect(await put(body.upload_url, archive)).toMatchObject({ status: 200, body: { status: 'ready' } });
    const sha256 = createHash('sha256').update(archive).digest('hex');
    return { id: body.id, name: `source-uploads/${body.id}.${sha256}` };
  }

  test('an upload that another machine has received is built, and goes with its row', async () => {
    const archive = await site('from elsewhere');
    const { id, name } = await uploaded(archive);
    expect(await store.names('source-uploads/')).toEqual([name]);
    expect(localOf(path.join(elsewhere.directory, 'runtime'))).toEqual([]);
    expect(await app.deploy({ source_upload_id: id })).toMatchObject({ status: 'active' });
    expect((await app.visit()).body).toBe('from elsewhere');
    const large = await tarOf(
      { name: 'index.html', body: 'large' },
      { name: 'x', body: randomBytes(20 * MIB).toString('hex') },
    );
    const parts = await uploaded(large);
    expect(large.length).toBeGreaterThan(17 * MIB);
    expect((await app.deploy({ source_upload_id: parts.id })).status).toBe('active');
    expect((await app.visit()).body).toBe('large');
    const files = openUploads();
    expect(await files.list(driverContext(10_000))).toEqual(expect.arrayContaining([id, parts.id]));
    await files.remove(parts.id, driverContext(10_000));
    expect(await store.names('source-uploads/')).toEqual([name]);
  });

  const openUploads = (runtimeDir = service.runtimeDir) => openSourceUploads(runtimeDir, service.platform.fileStore);

  // Most answers are those of the proxy, whatever is behind it.
  const faults: [string, Fault, string][] = [
    ['does not answer', 'reset', 'The file store does not respond.'],
    ['is busy', { status: 503, code: 'SlowDown' }, 'The file store refuses a request of the platform (SlowDown).'],
    [
      'is full',
      { status: 403, code: 'QuotaExceeded' },
      'The file store refuses a request of the platform (QuotaExceeded).',
    ],
    [
      'refuses the key',
      { status: 403, code: 'InvalidAccessKeyId' },
      'The file store refuses a request of the platform (InvalidAccessKeyId).',
    ],
    ['has no bucket', { status: 404, code: 'NoSuchBucket' }, 'The bucket of the file store does not exist.'],
  ];
  const each = test.each(kind === STORES.at(-1) ? faults : faults.slice(0, 1));

  each('a store that %s takes no upload, which may be sent again', async (_, fault, detail) => {
    const { body } = await create();
    const archive = await site('again');
    store.faults.fail(fault);
    expect(await put(body.upload_url, archive)).toMatchObject({
      ...{ status: 503, body: { code: 'service_unavailable', detail } },
    });
    expect(localOf(path.join(elsewhere.directory, 'runtime'))).toEqual([]);
    store.faults.fail('none');
    expect(await put(body.upload_url, archive)).toMatchObject({ status: 200 });
  });

  each('a deployment waits for a store that %s, and says so', async (_, fault, detail) => {
    const text = randomBytes(8).toString('hex');
    const { id } = await uploaded(await site(text));
    store.faults.fail(fault);
    const asked = await app.ask({ source_upload_id: id });
    await retryCheck(async () => {
      const now = await app.get(`/deployments/${asked.id}`);
      expect(now).toMatchObject({
        status: 'building',
        status_reason: `${detail} The platform waits for it and goes on by itself.`,
      });
    }, 40_000);
    store.faults.fail('none');
    expect(await app.ended(asked.id, 60_000)).toMatchObject({ status: 'active', status_reason: null });
    expect((await app.visit()).body).toBe(text);
  });

  test('an answer that breaks off is read on, and altered or missing bytes are never built', async () => {
    const text = randomBytes(8).toString('hex');
    const one = await uploaded(
      await tarOf({ name: 'index.html', body: text }, { name: 'x', body: randomBytes(MIB).toString('hex') }),
    );
    store.faults.fail('half', ['GET']);
    const asked = await app.ask({ source_upload_id: one.id });
    await waitFor('some broken answers', () => store.faults.count('GET') > 3);
    store.faults.fail('none');
    expect((await app.ended(asked.id, 90_000)).status).toBe('active');
    expect((await app.visit()).body).toBe(text);
    const altered = await uploaded(await site('altered'));
    await store.alter(altered.name);
    expect(await app.deploy({ source_upload_id: altered.id })).toMatchObject({
      status: 'failed',
      status_reason: expect.stringContaining('is not the one that was uploaded'),
    });
    const gone = await uploaded(await site('gone'));
    await store.remove(gone.name);
    expect(await app.deploy({ source_upload_id: gone.id })).toMatchObject({
      status: 'failed',
      status_reason: expect.stringContaining('no longer kept'),
    });
    expect(localOf(service.runtimeDir).filter((name) => name.endsWith('.part'))).toEqual([]);
    expect((await app.visit()).body).toBe(text);
  });

  test('what is refused is not stored, and no process with another store takes uploads', async () => {
    const before = await store.names('source-uploads/');
    const { body } = await create(elsewhere.base, { sha256: 'a'.repeat(64) });
    expect(await put(body.upload_url, await site('x'))).toMatchObject({
      status: 422,
      body: { code: 'archive_invalid' },
    });
    expect(await put((await create()).body.upload_url, randomBytes(500))).toMatchObject({ status: 422 });
    expect(await store.names('source-uploads/')).toEqual(before);
    for (const settings of [{ FILE_STORE: 's3://another-bucket/files' }, { FILE_STORE: '' }]) {
      const other = await startElsewhere(settings);
      expect(await create(other.base)).toMatchObject({ status: 409, body: { code: 'engine_unavailable' } });
      expect(
        await put((await create()).body.upload_url.replace(elsewhere.base, other.base), await site('x')),
      ).toMatchObject({
        ...{ status: 409, body: { code: 'engine_unavailable' } },
      });
      other.program.signal('SIGKILL');
      rmSync(other.directory, { recursive: true, force: true });
    }
  });

  test('a process that is killed while it stores leaves an upload that is sent again elsewhere', async () => {
    const other = await startElsewhere();
    const archive = await tarOf({ name: 'x', body: randomBytes(20 * MIB).toString('hex') });
    const { body } = await create(other.base);
    const puts = store.faults.count('PUT');
    store.faults.fail('late', ['PUT']);
    const sent = put(body.upload_url, archive).catch(() => null);
    await waitFor('parts in the store', () => store.faults.count('PUT') > puts);
    other.program.signal('SIGKILL');
    expect(await sent).toBeNull();
    store.faults.fail('none');
    await service.sql('update source_uploads set receiving_until = now() where id = $1', [body.id]);
    const url = body.upload_url.replace(other.base, elsewhere.base);
    expect(await put(url, archive)).toMatchObject({ status: 200, body: { status: 'ready' } });
    expect(await store.names(`source-uploads/${body.id}.`)).toHaveLength(1);
    rmSync(other.directory, { recursive: true, force: true });
  });

  test('archives of before the setting are copied to it, and those without a row are not', async () => {
    const runtime = mkdtempSync(path.join(tmpdir(), 'uploads-before-'));
    const disk = openSourceUploads(runtime);
    const { body } = await create();
    const owned = await disk.receive(body.id, Readable.from([Buffer.from('before')]), MIB);
    await disk.keep(body.id, owned, driverContext(10_000));
    const stranger = 'src_00000000000000000000000000';
    await disk.keep(
      stranger,
      await disk.receive(stranger, Readable.from([Buffer.from('stranger')]), MIB),
      driverContext(10_000),
    );
    const files = openUploads(runtime);
    const used = async (ids: string[]): Promise<string[]> => {
      const gone = await withoutUploadRow(service.platform.database, ids);
      return ids.filter((id) => !gone.includes(id));
    };
    await files.storeAll(used, driverContext(10_000));
    expect(await store.names(`source-uploads/${body.id}`)).toEqual([`source-uploads/${body.id}.${owned.sha256}`]);
    expect(await store.names(`source-uploads/${stranger}`)).toEqual([]);
    const third = mkdtempSync(path.join(tmpdir(), 'uploads-third-'));
    const found = await openUploads(third).find(body.id, owned.sha256, driverContext(10_000));
    expect(readFileSync(found as string, 'utf8')).toBe('before');
    for (const one of [runtime, third]) rmSync(one, { recursive: true });
  });

  test('an archive whose row is gone is swept, and a backup says where the others are', async () => {
    const files = openUploads();
    const gone = 'src_00000000000000000000000001';
    const received = await files.receive(gone, Readable.from([Buffer.from('gone')]), MIB);
    await files.keep(gone, received, driverContext(10_000));
    expect(await store.names(`source-uploads/${gone}`)).toHaveLength(1);
    const before = await store.names('source-uploads/');
    const hosts = { host: { uploads: files } } as unknown as Drivers;
    for await (const batch of uploadLeftovers.list(hosts, driverContext(10_000))) {
      const ids = batch.map(({ id }) => id);
      for (const id of await uploadLeftovers.withoutRow(service.platform.database, ids))
        await uploadLeftovers.remove!(id, hosts.host!, driverContext(10_000));
    }
    expect(await store.names('source-uploads/')).toEqual(before.filter((name) => !name.includes(gone)));
    const session = await openSession(service.platform.databaseUrl);
    const manifest = await takeStock(service.platform.config, session).finally(() => session.close());
    expect(manifest.file_store).toBe(store.settings.FILE_STORE);
  });

  test('the doctor says whether the store can be used', async () => {
    const probe = (more: object): Promise<void> =>
      openFileStore({ ...service.platform.config, ...more }, () => Promise.reject(new Error('unused')))!.probe(
        driverContext(20_000),
      );
    await probe({});
    await expect(probe({ fileStoreSecretKey: 'x'.repeat(40) })).rejects.toThrow(
      'refuses a request of the platform (SignatureDoesNotMatch)',
    );
    await expect(probe({ fileStore: { bucket: 'no-such-bucket-here', prefix: '' } })).rejects.toThrow(
      /does not exist|AccessDenied/,
    );
    store.faults.fail('silent');
    const soon = driverContext(1_500);
    const silent = openFileStore(service.platform.config, () => Promise.reject(new Error('unused')))!.probe(soon);
    await expect(silent).rejects.toThrow('The file store does not respond.');
    await expect(probe({ fileStoreUrl: 'http://127.0.0.1:9' })).rejects.toThrow('The file store does not respond.');
  });
});
