/** @tier heavy @quarter 4 @covers server/backup server/operator/backup.ts drivers/volume/restored.ts */
// An installation with applications, databases, volumes, objects and variables is backed up while it runs, destroyed,
// and restored to an empty directory.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { version } from '../../package.json';
import { visitHost } from '../support/deployments/deploy';
import { freePort } from '../support/processes/free_port';
import { startService, type StartedService } from '../support/processes/started_service';
import { fileNeeds } from '../support/runner/programs';
import { ROOT } from '../support/runner/repository';

fileNeeds('restic', 'pg_basebackup', 'redis-server');
jest.setTimeout(900_000);

const DEPLOYED_MS = 180_000;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'whole-'));
const data = path.join(folder, 'data');
const settings: Record<string, string> = { VOLUME_DRIVER: 'auto', DNS_PORT: '0', SHUTDOWN_GRACE_SECONDS: '2' };
/** Of the command at first: the service would make backups by itself, at the same time. */
const repository = {
  RESTIC_REPOSITORY: path.join(folder, 'repository'),
  RESTIC_PASSWORD_FILE: path.join(folder, 'passphrase'),
};
const journal = path.join(data, 'backup/last.json');
let service: StartedService;

interface Kept {
  application: { id: string; default_hostname: string };
  volume: string;
  bucket: string;
  databases: Record<string, string>;
}
let kept: Kept;

beforeAll(async () => {
  fs.chmodSync(folder, 0o755);
  Object.assign(settings, { S3_PORT: String(await freePort()), REGISTRY_PORT: String(await freePort()) });
  fs.mkdirSync(data, { mode: 0o755 });
  fs.writeFileSync(repository.RESTIC_PASSWORD_FILE, 'a passphrase of the test\n', { mode: 0o600 });
  service = await startService(settings, { data });
  kept = await fill();
});

afterAll(async () => {
  await destroy();
  fs.rmSync(folder, { recursive: true, force: true });
});

async function fill(): Promise<Kept> {
  const { call, waitFor } = service;
  const application = await call('POST', '/v2/applications', { name: 'shop', preset: 'node-web' });
  await call('PUT', `/v2/applications/${application.id}/env/GREETING`, { value: 'Good morning' });
  const volume = await call('POST', '/v2/volumes', { name: 'files', size_gb: 1 });
  await waitFor(`/v2/volumes/${volume.id}`, ['available']);
  await call('PATCH', `/v2/volumes/${volume.id}`, { application_id: application.id, mount_path: '/data' });
  const bucket = await call('POST', '/v2/buckets', { name: `whole-${process.pid}` });
  const databases: Record<string, string> = {};
  for (const engine of ['postgresql', 'redis'])
    databases[engine] = (await call('POST', '/v2/databases', { name: engine, engine })).id;
  expect((await fetch(await presigned(bucket.id, 'PUT'), { method: 'PUT', body: 'an object' })).status).toBe(200);
  for (const id of Object.values(databases)) await waitFor(`/v2/databases/${id}`, ['available'], DEPLOYED_MS);
  await query(databases.postgresql as string, 'create table orders as select generate_series(1, 20000) as number');
  const deployment = await call('POST', `/v2/applications/${application.id}/deployments`, {});
  await waitFor(`/v2/applications/${application.id}/deployments/${deployment.id}`, ['active'], DEPLOYED_MS);
  fs.writeFileSync(path.join(filesOf(volume.id), 'photo.jpg'), Buffer.alloc(300_000, 'photo'));
  return { application, volume: volume.id, bucket: bucket.id, databases };
}

async function presigned(bucket: string, method: 'PUT' | 'GET'): Promise<string> {
  return (await service.call('POST', `/v2/buckets/${bucket}/presign`, { key: 'one.txt', method })).url;
}

function filesOf(volume: string): string {
  const home = path.join(data, 'volumes', volume);
  return [path.join(home, 'mount/data'), path.join(home, 'data')].find((one) => fs.existsSync(one)) as string;
}

async function query(database: string, text: string): Promise<unknown[]> {
  const { endpoints } = await service.call('GET', `/v2/databases/${database}/credentials`);
  const connectionString = (endpoints[0].connection_string as string).replace('sslmode=require', 'sslmode=no-verify');
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

interface Ran {
  code: number | null;
  out: string;
  err: string;
}

function platform(args: string[], env: Record<string, string> = {}): Ran {
  const ran = spawnSync(process.execPath, ['tools/scripts/start.mjs', 'server/operator/main.js', ...args], {
    ...{ cwd: ROOT, encoding: 'utf8', env: { ...service.env, ...repository, ...env } },
  });
  return { code: ran.status, out: ran.stdout, err: ran.stderr };
}

/** Everything of the installation ends at once, and its directory is gone. */
async function destroy(): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)) {
      if (isOfInstallation(pid)) process.kill(Number(pid), 'SIGKILL');
    }
    await sleep(500);
  }
  const mounts = fs.readFileSync('/proc/mounts', 'utf8').split('\n');
  for (const point of mounts.map((line) => line.split(' ')[1] ?? '').filter((at) => at.startsWith(`${data}/`)))
    spawnSync('umount', ['-l', point]);
  fs.rmSync(data, { recursive: true, force: true });
}

function isOfInstallation(pid: string): boolean {
  try {
    const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return (
      words.includes(data) || fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`PLATFORM_DATA_DIR=${data}`)
    );
  } catch {
    return false;
  }
}

function hashOf(file: string): string {
  return createHash('sha256').update(fs.readFileSync(file)).digest('hex');
}

test('it is backed up while it runs, and the backup is proven', async () => {
  const { code, out, err } = platform(['backup', '--json']);
  expect([code, err]).toEqual([0, expect.any(String)]);
  const [row] = JSON.parse(out).data;
  expect(row).toMatchObject({ proven: true });
  expect(row.files).toBeGreaterThan(500);
  expect(JSON.parse(platform(['backup', 'list', '--json']).out).data).toEqual([
    {
      ...{ id: row.point, at: expect.any(String), hostname: os.hostname(), version, bytes: row.bytes },
      proven_at: expect.stringMatching(/^\d{4}-\S+Z$/),
    },
  ]);
  expect(fs.existsSync(path.join(data, 'backup/point'))).toBe(false);
});

test('a second backup adds little, and one at the same time is refused', async () => {
  const first = spawn(
    process.execPath,
    ['tools/scripts/start.mjs', 'server/operator/main.js', 'backup', '--no-proof'],
    {
      ...{ cwd: ROOT, env: { ...service.env, ...repository }, stdio: 'ignore' },
    },
  );
  const ended = new Promise<number | null>((resolve) => first.on('exit', resolve));
  while (!fs.existsSync(path.join(data, 'backup/point'))) await sleep(50);
  const { code, err } = platform(['backup', '--no-proof']);
  expect({ code, err }).toEqual({ code: 1, err: 'platform: another backup of this installation is being made\n' });
  expect(await ended).toBe(0);
});

test('a backup that is killed leaves the one before it, and the next one goes through', async () => {
  const killed = spawn(
    process.execPath,
    ['tools/scripts/start.mjs', 'server/operator/main.js', 'backup', '--no-proof'],
    {
      ...{ cwd: ROOT, env: { ...service.env, ...repository }, stdio: 'ignore' },
    },
  );
  while (!fs.existsSync(path.join(data, 'backup/point/manifest.json'))) await sleep(20);
  killed.kill('SIGKILL');
  expect(platform(['backup', '--no-proof'])).toMatchObject({ code: 0, err: expect.stringContaining('copying') });
});

test.each([
  ['the wrong passphrase', { RESTIC_PASSWORD_FILE: path.join(ROOT, 'package.json') }, /does not open the repository/],
  ['no passphrase', { RESTIC_PASSWORD_FILE: '/nowhere' }, /passphrase of the backups cannot be read: \/nowhere/],
  ['no repository', { RESTIC_REPOSITORY: '' }, /RESTIC_REPOSITORY is not set/],
])('with %s it says what to do', (_, env, sentence) => {
  const { code, err } = platform(['backup'], env);
  expect(code).toBe(1);
  expect(err).toMatch(sentence);
});

test('a restore onto the running installation is refused', () => {
  const { code, err } = platform(['restore']);
  expect(code).toBe(1);
  expect(err).toContain(`the platform has run in ${data}`);
});

test('destroyed and restored, it is as before: rows, files, objects, databases, pages, credentials', async () => {
  const photo = hashOf(path.join(filesOf(kept.volume), 'photo.jpg'));
  const page = (await visitHost(service.ingressPort, kept.application.default_hostname, '/', 'GET')).body;
  await destroy();
  fs.mkdirSync(data, { mode: 0o755 });
  for (const step of ['fetch', 'place', 'volumes', 'control']) await restoreKilledAfter(step);
  const { code, err } = platform(['restore']);
  expect([code, err]).toEqual([0, expect.any(String)]);
  expect(err).not.toContain('making the disks of volumes');
  expect(fs.readdirSync(data)).not.toContain('restore');
  service = await startService({ ...settings, ...repository }, { data, first: service.first });
  const { waitFor, call } = service;
  for (const id of Object.values(kept.databases))
    expect(await waitFor(`/v2/databases/${id}`, ['available'], DEPLOYED_MS)).toMatchObject({ status_reason: null });
  expect(
    await query(kept.databases.postgresql as string, 'select count(*)::int, sum(number)::int from orders'),
  ).toEqual([{ count: 20_000, sum: 200_010_000 }]);
  await waitFor(`/v2/volumes/${kept.volume}`, ['in_use', 'available']);
  // A disk is mounted once its volume is looked at.
  while (!filesOf(kept.volume)) await sleep(100);
  expect(hashOf(path.join(filesOf(kept.volume), 'photo.jpg'))).toBe(photo);
  expect(await (await fetch(await presigned(kept.bucket, 'GET'))).text()).toBe('an object');
  expect((await call('GET', `/v2/applications/${kept.application.id}/env`)).data).toContainEqual(
    expect.objectContaining({ key: 'GREETING', value: 'Good morning' }),
  );
  await pageIs(page);
});

/** Kills a restore as soon as the step is done. */
async function restoreKilledAfter(step: string): Promise<void> {
  const words = ['tools/scripts/start.mjs', 'server/operator/main.js', 'restore'];
  const child = spawn(process.execPath, words, {
    ...{ cwd: ROOT, env: { ...service.env, ...repository }, detached: true, stdio: ['ignore', 'ignore', 'pipe'] },
  });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const steps = path.join(data, 'restore.json');
  const done = (): string[] => (fs.existsSync(steps) ? JSON.parse(fs.readFileSync(steps, 'utf8')).done : []);
  while (child.exitCode === null && !done().includes(step)) await sleep(5);
  if (child.exitCode !== null) throw new Error(`the restore has ended before ${step} was done: ${said}`);
  process.kill(-(child.pid as number), 'SIGKILL');
  await ended;
  expect(done()).toContain(step);
}

async function pageIs(page: string): Promise<void> {
  for (const end = Date.now() + DEPLOYED_MS; ; await sleep(500)) {
    const found = await visitHost(service.ingressPort, kept.application.default_hostname, '/', 'GET').catch(() => null);
    if (found?.status === 200 && found.body === page) return;
    if (Date.now() > end) throw new Error(`the application answers ${found?.status}: ${found?.body.slice(0, 300)}`);
  }
}

test('the service makes a backup by itself, and proves it', async () => {
  const read = (): { error: null; proof: { error: null } | null } => JSON.parse(fs.readFileSync(journal, 'utf8'));
  for (const end = Date.now() + DEPLOYED_MS; !fs.existsSync(journal) || read().proof === null; await sleep(500))
    if (Date.now() > end) throw new Error('the service has made no backup');
  expect(read()).toMatchObject({ error: null, point: expect.any(String), proof: { error: null } });
});

test('a byte that has changed in the repository is told by the proof', () => {
  const packs = execFileSync('find', [path.join(repository.RESTIC_REPOSITORY, 'data'), '-type', 'f'], {
    encoding: 'utf8',
  });
  for (const pack of packs.split('\n').filter(Boolean)) {
    const bytes = fs.readFileSync(pack);
    const at = Math.floor(bytes.length / 2);
    bytes[at] = (bytes[at] as number) ^ 1;
    fs.chmodSync(pack, 0o600);
    fs.writeFileSync(pack, bytes);
  }
  const { code, err } = platform(['backup', 'prove']);
  expect(code).toBe(1);
  expect(err).toMatch(/is not usable/);
});
