/** @tier heavy @quarter 3 @covers models/applications models/databases models/volumes models/object_storage */
// An application with a database, a volume and a bucket: each goes to the bin, and comes back in both orders.
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { binCalls } from '../support/bin_calls';
import { connect, openDatabaseWorkshop, type DatabaseWorkshop } from '../support/databases/database_hall';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { freePort } from '../support/processes/free_port';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let place: DatabaseWorkshop;
let service: DeployService;
let s3Port: number;
beforeAll(async () => {
  place = openDatabaseWorkshop();
  s3Port = await freePort();
  const settings = { ...place.settings, RETENTION_OF_DELETED_DAYS: '7', S3_PORT: String(s3Port) };
  service = await startDeployService(settings);
}, 60_000);
afterAll(async () => {
  await emptied();
  await service.close();
  place.clear();
}, 120_000);
const bin = binCalls(() => service);

/** All that a test made is purged. */
async function emptied(): Promise<void> {
  const { call } = service;
  const rowsOf = (table: string): Promise<{ id: string }[]> =>
    service.sql(`select id from ${table} where deleted_at is null`);
  for (const { id } of await rowsOf('applications')) await call('DELETE', `/v2/applications/${id}`);
  for (const { id } of await rowsOf('databases')) await call('DELETE', `/v2/databases/${id}`);
  for (const { id } of await rowsOf('volumes')) await call('DELETE', `/v2/volumes/${id}`);
  for (const entry of (await call('GET', `/v2/projects/${service.project}/bin?limit=100`)).body.data)
    await bin.purge(entry);
  await waitFor('the end of all databases', async () => !(await service.sql('select 1 from databases')).length);
}
afterEach(emptied, 120_000);

const SERVER = `
const fs = require('fs');
const { DATABASE_URL, REPORTS_URL, KEY } = process.env;
const starts = () => { try { return fs.readFileSync('/data/starts', 'utf8'); } catch { return null; } };
try { fs.appendFileSync('/data/starts', '.'); } catch {}
require('http').createServer((q, s) => s.end(JSON.stringify({ DATABASE_URL, REPORTS_URL, KEY, starts: starts() })))
  .listen(process.env.PORT);
`;
const FILES = { 'server.js': SERVER, Procfile: 'web: node server.js' };

async function made(at: string, body: object): Promise<any> {
  const answer = await service.call('POST', at, { body });
  expect([answer.status, answer.text]).toEqual([201, expect.anything()]);
  return answer.body;
}
const get = async (at: string): Promise<any> => (await service.call('GET', at)).body;
const list = async (at: string): Promise<any[]> => (await get(at)).data;
const seen = async (app: TestApplication): Promise<any> => {
  const { status, body } = await app.visit();
  return status === 200 ? JSON.parse(body) : { status };
};
const runs = (app: TestApplication): Promise<unknown> =>
  waitFor('it runs', async () => (await app.get()).status === 'running');
const stopped = (app: TestApplication): Promise<unknown> =>
  waitFor('it stops', async () => {
    const left = await service.sql('select 1 from instances where application_id = $1', [app.id]);
    return left.length === 0;
  });
const availableDatabase = (id: string): Promise<unknown> =>
  waitFor('the database', async () => (await get(`/v2/databases/${id}`)).status === 'available');

async function database(name: string): Promise<string> {
  const { id } = await made('/v2/databases', { name, engine: 'postgresql' });
  await availableDatabase(id);
  return id;
}

const answersAt = (address: string): Promise<boolean> =>
  connect(address, async (client) => void (await client.query('select 1'))).then(
    () => true,
    () => false,
  );
const destroyed = (id: string): Promise<any> => bin.deleted(`/v2/databases/${id}`);

async function attachedApplication(databaseId: string, body: object = {}): Promise<TestApplication> {
  const app = await service.application(FILES);
  await made(`/v2/databases/${databaseId}/attachments`, { application_id: app.id, ...body });
  expect((await app.deploy()).status).toBe('active');
  return app;
}

test.each(['the application first', 'the database first'])(
  'variables and credentials work again: %s',
  async (order) => {
    const id = await database('orders');
    const app = await attachedApplication(id);
    const had = await seen(app);
    const env = await list(`/v2/applications/${app.id}/env`);
    expect(await answersAt(had.DATABASE_URL)).toBe(true);
    const early = await service.call('DELETE', `/v2/databases/${id}`);
    expect([early.status, early.body.code]).toEqual([409, 'resource_in_use']);
    const ofApp = await bin.deleted(`/v2/applications/${app.id}`);
    await stopped(app);
    const ofDatabase = await destroyed(id);
    await waitFor('the server stops', async () => !(await answersAt(had.DATABASE_URL)));
    if (order === 'the application first')
      expect(await bin.restored(ofApp)).toEqual([
        'The database `orders`, which is attached to it, is deleted. Restore it too.',
      ]);
    expect(await bin.restored(ofDatabase)).toEqual([]);
    await availableDatabase(id);
    if (order === 'the database first') expect(await bin.restored(ofApp)).toEqual([]);
    await runs(app);
    expect(await seen(app)).toEqual(had);
    expect(await answersAt(had.DATABASE_URL)).toBe(true);
    const attachments = await list(`/v2/databases/${id}/attachments`);
    expect(attachments).toMatchObject([{ application_id: app.id, env_prefix: 'DATABASE' }]);
    expect(await list(`/v2/applications/${app.id}/env`)).toEqual(env);
  },
  180_000,
);

test('a password that was rotated while the application was in the bin is what it starts with', async () => {
  const id = await database('rotated');
  const app = await attachedApplication(id);
  const had = await seen(app);
  const entry = await bin.deleted(`/v2/applications/${app.id}`);
  await stopped(app);
  const { body } = await service.call('POST', `/v2/databases/${id}/credentials/rotate`, { body: {} });
  const renewed = body.endpoints[0].connection_string;
  expect(renewed).not.toBe(had.DATABASE_URL);
  await waitFor('the old password ends', async () => !(await answersAt(had.DATABASE_URL)));
  expect(await bin.restored(entry)).toEqual([]);
  await runs(app);
  expect((await seen(app)).DATABASE_URL).toBe(renewed);
  expect(await answersAt(renewed)).toBe(true);
}, 180_000);

test('a user, an endpoint or the database that it used may be deleted meanwhile, and the restore says so', async () => {
  const id = await database('shared');
  const gone = await database('gone');
  const at = `/v2/databases/${id}`;
  const user = await made(`${at}/users`, { username: 'reports' });
  const endpoint = await made(`${at}/endpoints`, { name: 'second' });
  const apps = [
    await attachedApplication(id, { user_id: user.id }),
    await attachedApplication(id, { endpoint_id: endpoint.id }),
    await attachedApplication(gone),
  ];
  const places = [`${at}/users/${user.id}`, `${at}/endpoints/${endpoint.id}`, `/v2/databases/${gone}`];
  for (const one of places) expect((await service.call('DELETE', one)).body).toMatchObject({ code: 'resource_in_use' });
  const entries: any[] = [];
  for (const app of apps) entries.push(await bin.deleted(`/v2/applications/${app.id}`));
  for (const one of places) expect((await service.call('DELETE', one)).status).toBe(204);
  expect((await bin.purge(await bin.entryOf(gone))).status).toBe(204);
  const lost =
    'The database `shared` is not attached to it any more: the user or the endpoint that it used was deleted. ' +
    'Attach it again.';
  const notes = [lost, lost, 'The database `gone`, which was attached to it, is gone.'];
  for (const [n, app] of apps.entries()) {
    expect(await bin.restored(entries[n])).toEqual([notes[n]]);
    expect(await list(`/v2/applications/${app.id}/env`)).toEqual([]);
  }
  await made(`${at}/attachments`, { application_id: apps[0]!.id });
}, 240_000);

// A volume is shown at its path by bubblewrap, but for root.
const { test: withVolume } = process.getuid?.() === 0 ? { test } : needs('bwrap');
withVolume.each(['the application first', 'the volume first'])(
  'a volume is attached again with its files: %s',
  async (order) => {
    const app = await service.application(FILES);
    const attached = { application_id: app.id, mount_path: '/data' };
    const { id } = await made('/v2/volumes', { name: 'files', size_gb: 1, ...attached });
    expect((await app.deploy()).status).toBe('active');
    expect((await seen(app)).starts).toBe('.');
    const ofApp = await bin.deleted(`/v2/applications/${app.id}`);
    await stopped(app);
    const ofVolume = await bin.deleted(`/v2/volumes/${id}`);
    if (order === 'the volume first') {
      expect(await bin.restored(ofVolume)).toEqual([]);
      expect(await bin.restored(ofApp)).toEqual([]);
      await runs(app);
    } else {
      expect(await bin.restored(ofApp)).toEqual([
        'The volume `files` is deleted. Restore it too, then it is attached again.',
      ]);
      await runs(app);
      expect(await bin.restored(ofVolume)).toEqual([
        `It is attached to the application \`${app.name}\` again. Restart the application.`,
      ]);
      await app.post('/restart');
    }
    await waitFor('a second start', async () => (await seen(app)).starts === '..');
    expect(await get(`/v2/volumes/${id}`)).toMatchObject({ ...attached, status: 'in_use' });
  },
  180_000,
);

test('a volume whose application was purged, or has another one, comes back alone', async () => {
  const volume = async (app: TestApplication): Promise<string> =>
    (await made('/v2/volumes', { name: `of-${app.name}`, size_gb: 1, application_id: app.id, mount_path: '/data' })).id;
  const apps = [await service.application(FILES), await service.application(FILES)] as const;
  const volumes = [await volume(apps[0]), await volume(apps[1])];
  const ofVolumes: any[] = [];
  for (const [n, app] of apps.entries()) {
    const entry = await bin.deleted(`/v2/applications/${app.id}`);
    ofVolumes.push(await bin.deleted(`/v2/volumes/${volumes[n]}`));
    await bin.restored(entry);
  }
  await bin.purge(await bin.deleted(`/v2/applications/${apps[0].id}`));
  await made('/v2/volumes', { name: 'other', size_gb: 1, application_id: apps[1].id, mount_path: '/data' });
  expect(await bin.restored(ofVolumes[0])).toEqual([
    'It is not attached any more: the application that had it was deleted.',
  ]);
  expect(await bin.restored(ofVolumes[1])).toEqual([
    `It is not attached: the application \`${apps[1].name}\` has another volume at /data.`,
  ]);
  for (const id of volumes) expect((await get(`/v2/volumes/${id}`)).application_id).toBeNull();
}, 120_000);

test('a bucket comes back with the rights of the key that an application has', async () => {
  const bucket = await made('/v2/buckets', { name: 'files-of-the-shop' });
  const grants = [{ bucket_id: bucket.id, permission: 'read_write' }];
  const key = await made('/v2/bucket_access_keys', { name: 'shop', grants });
  const app = await service.application(FILES);
  const value = JSON.stringify([key.access_key_id, key.secret_access_key]);
  await service.call('PUT', `/v2/applications/${app.id}/env/KEY`, { body: { value } });
  expect((await app.deploy()).status).toBe('active');
  const put = async (): Promise<unknown> => {
    const [accessKeyId, secretAccessKey] = JSON.parse((await seen(app)).KEY);
    const client = new S3Client({
      ...{ endpoint: `http://127.0.0.1:${s3Port}`, region: 'eu-central-1', forcePathStyle: true },
      credentials: { accessKeyId, secretAccessKey },
    });
    const at = { Bucket: bucket.name, Key: 'a' };
    return client
      .send(new PutObjectCommand({ ...at, Body: 'text' }))
      .then(async () => (await (await client.send(new GetObjectCommand(at))).Body?.transformToString()) ?? '')
      .finally(() => client.destroy());
  };
  const ofBucket = await bin.deleted(`/v2/buckets/${bucket.id}`);
  await expect(put()).rejects.toThrow();
  const ofApp = await bin.deleted(`/v2/applications/${app.id}`);
  await stopped(app);
  expect([await bin.restored(ofApp), await bin.restored(ofBucket)]).toEqual([[], []]);
  await runs(app);
  await waitFor('the bucket', () => put().catch(() => null));
  expect(await put()).toBe('text');
}, 120_000);
