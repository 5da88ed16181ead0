/** @tier heavy @quarter 3 @covers server/backup server/platform/wal_state.ts */
// Rows are written each second; the machine ends at once and its directory is gone. What is restored, and what is lost.
import * as fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../support/processes/free_port';
import { wholeInstallation } from '../support/processes/whole_installation';
import { fileNeeds } from '../support/runner/programs';

fileNeeds('restic', 'pg_basebackup');
jest.setTimeout(900_000);

const READY_MS = 240_000;
const LOST_MS_MAX = 60_000;
const whole = wholeInstallation();
const pushed = path.join(whole.data, 'backup/wal-pushed.json');

interface Push {
  until: string;
  next_transaction: string;
}

afterAll(() => whole.remove());

function readJson<T>(file: string): T | null {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as T;
  } catch {
    return null;
  }
}

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + READY_MS; !(await holds()); await sleep(250))
    if (Date.now() > end) throw new Error(`${what}: not within ${READY_MS} ms`);
}

async function query(database: string, text: string): Promise<Record<string, unknown>[]> {
  const { endpoints } = await whole.service().call('GET', `/v2/databases/${database}/credentials`);
  const connectionString = (endpoints[0].connection_string as string).replace('sslmode=require', 'sslmode=no-verify');
  for (const end = Date.now() + READY_MS; ; await sleep(500)) {
    const client = new pg.Client({ connectionString });
    try {
      await client.connect();
      return (await client.query(text)).rows as Record<string, unknown>[];
    } catch (error) {
      // A server that is available may be started again once more, with settings that it got meanwhile.
      if ((error as { code?: string }).code !== 'ECONNREFUSED' || Date.now() > end) throw error;
    } finally {
      await client.end().catch(() => {});
    }
  }
}

const settings: Record<string, string> = {};
const written: { name: string; at: number }[] = [];
let database: string;
let moment: string;

test('between two backups, what is written is in the repository within a minute', async () => {
  settings.S3_PORT = String(await freePort());
  const { call, waitFor } = await whole.start(settings);
  database = (await call('POST', '/v2/databases', { name: 'orders', engine: 'postgresql' })).id;
  await waitFor(`/v2/databases/${database}`, ['available'], READY_MS);
  await query(database, 'create table orders (name text, at timestamptz default now())');
  // The one that the service has made by itself at its start may be from before the database.
  await whole.backedUp();
  expect(whole.platform(['backup', '--no-proof'])).toMatchObject({ code: 0 });
  const { until: before } = readJson<Push>(pushed) as Push;
  await call('POST', '/v2/projects', { name: 'soon' });
  await until('a push', () => (readJson<Push>(pushed)?.until ?? '') > before);
  expect(Date.parse((readJson<Push>(pushed) as Push).until) - Date.parse(before)).toBeLessThan(LOST_MS_MAX);
});

test('the doctor says how far the repository leads', () => {
  const { out } = whole.platform(['doctor', '--json']);
  const found = JSON.parse(out).data.find(({ check }: { check: string }) => check === 'write-ahead log');
  expect(found).toMatchObject({ status: 'ok', detail: expect.stringMatching(/^in the repository up to 20/) });
});

test('killed and destroyed in the middle of writing, it loses at most the last minute', async () => {
  const { call, waitFor } = whole.service();
  const bucket = await call('POST', '/v2/buckets', { name: `late-${process.pid}` });
  const { url } = await call('POST', `/v2/buckets/${bucket.id}/presign`, { key: 'late.txt', method: 'PUT' });
  expect((await fetch(url, { method: 'PUT', body: 'after the files' })).status).toBe(200);
  const application = await call('POST', '/v2/applications', { name: 'late', preset: 'node-web' });
  const deployment = await call('POST', `/v2/applications/${application.id}/deployments`, {});
  await waitFor(`/v2/applications/${application.id}/deployments/${deployment.id}`, ['active'], READY_MS);
  // An account may have 100 projects.
  for (const end = Date.now() + 75_000; Date.now() < end; await sleep(900)) {
    const name = `p${written.length}`;
    await call('POST', '/v2/projects', { name });
    await query(database, `insert into orders (name) values ('${name}')`);
    written.push({ name, at: Date.now() });
    if (moment === undefined && written.length === 20) moment = new Date(Date.now() + 1).toISOString();
  }
  const killedAt = Date.now();
  await whole.destroy();
  const { code, err } = whole.platform(['restore']);
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(/has backed up to this repository \d+ s ago/) });
  const restored = whole.platform(['restore', '--even-if-it-runs', '--json']);
  expect([restored.code, restored.err]).toEqual([0, expect.stringMatching(/Rows are of 20.*, files of 20/)]);
  expect(restored.err).toMatch(/missing: 1 objects: late-\d+\/late\.txt\./);
  expect(restored.err).toContain('The application late of');
  await whole.start(settings);
  const names = new Set<string>(await allProjects());
  const firstLost = written.find(({ name }) => !names.has(name));
  expect(killedAt - (firstLost?.at ?? killedAt)).toBeLessThan(LOST_MS_MAX);
  expect(written.findLastIndex(({ name }) => names.has(name))).toBe(names.size - 1 - OTHERS);
  await whole.service().waitFor(`/v2/databases/${database}`, ['available'], READY_MS);
  // Built again from its source: its release was newer than the files.
  const deployments = `/v2/applications/${application.id}/deployments`;
  const newest = async () => (await whole.service().call('GET', `${deployments}?sort=-number`)).data[0];
  await until('the second deployment', async () => (await newest()).number === 2);
  await whole.service().waitFor(`${deployments}/${(await newest()).id}`, ['active'], READY_MS);
  const rows = await query(database, 'select name from orders order by at');
  const lastRow = written.find(({ name }) => name === rows.at(-1)?.name)?.at ?? 0;
  console.info(
    `lost: ${killedAt - (firstLost?.at ?? killedAt)} ms of the platform, ${killedAt - lastRow} ms of orders`,
  );
  expect(killedAt - lastRow).toBeLessThan(LOST_MS_MAX + 5_000);
});

/** Made by the first start, and by the test before. */
const OTHERS = 2;

async function allProjects(): Promise<string[]> {
  const found = await whole.service().call('GET', '/v2/projects?limit=100');
  return found.data.map(({ name }: { name: string }) => name);
}

test('it is restored to a moment, the databases too; one that is not covered is refused', async () => {
  await whole.destroy();
  const refused = whole.platform(['restore', '--even-if-it-runs', '--at', '2020-01-01T00:00:00Z']);
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('has no backup from before 2020') });
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const ahead = whole.platform(['restore', '--even-if-it-runs', '--at', later]);
  expect(ahead).toMatchObject({ code: 1, err: expect.stringMatching(/does not lead to 20.*: choose a moment of 20/) });
  const restored = whole.platform(['restore', '--even-if-it-runs', '--at', moment]);
  expect([restored.code, restored.err]).toEqual([0, expect.any(String)]);
  await whole.start();
  const names = await allProjects();
  expect(names.filter((name) => /^p\d+$/.test(name))).toHaveLength(20);
  await whole.service().waitFor(`/v2/databases/${database}`, ['available'], READY_MS);
  expect(await query(database, 'select name from orders')).toHaveLength(20);
});
