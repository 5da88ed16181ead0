/** @tier heavy @quarter 1 @covers models/deployments/source_upload server/http/source_uploads drivers/source */
// The control plane is killed at moments spread over an upload, and over the deployment of one: an archive is whole
// or can be sent again, and what was asked for is served.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { tarOf } from '../../support/builds/archives';
import { createTestDatabase } from '../../support/databases/database';
import { destroyUnits, visitHost } from '../../support/deployments/deploy';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { waitFor } from '../../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the program as it is */
const MIB = 2 ** 20;
const FILES = 40;
/** The state of the deployment, and how long it has been in it, at each kill. */
const KILLS = [
  { status: 'queued', forMs: 0 },
  { status: 'building', forMs: 0 },
  { status: 'building', forMs: 250 },
  { status: 'building', forMs: 500 },
  { status: 'deploying', forMs: 0 },
];
const ingressPort = 19_000 + (process.pid % 1000);
let database: Awaited<ReturnType<typeof createTestDatabase>>;
let directory: string;
let sql: Client;
let program: Program;
let base: string;
let key: { key: string; project_id: string };

beforeAll(async () => {
  database = await createTestDatabase();
  directory = mkdtempSync(path.join(tmpdir(), 'platform-upload-killed-'));
  sql = new Client({ connectionString: database.url });
  await sql.connect();
  await startAgain();
}, 60_000);

afterAll(async () => {
  await endPrograms();
  await destroyUnits(path.join(directory, 'runtime'));
  await sql.end();
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
}, 60_000);

async function startAgain(): Promise<void> {
  program = startProgram({
    DATABASE_URL: database.url,
    PLATFORM_DATA_DIR: directory,
    INGRESS_PORT: String(ingressPort),
    LOG_LEVEL: 'info',
    SHUTDOWN_GRACE_SECONDS: '2',
  });
  base = await program.ready();
  key = JSON.parse(readFileSync(path.join(directory, 'first-key.json'), 'utf8'));
}

async function killAndStart(): Promise<void> {
  program.signal('SIGKILL');
  await program.ended;
  await startAgain();
}

async function call(method: string, place: string, body?: unknown): Promise<any> {
  const response = await fetch(`${base}${place}`, {
    method,
    headers: {
      Authorization: `Bearer ${key.key}`,
      'X-Svc-Project': key.project_id,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status >= 300) throw new Error(`${method} ${place}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

interface Site {
  archive: Buffer;
  marker: string;
  last: string;
}

/** An archive whose last file tells whether all of it was unpacked. */
async function siteOf(marker: string): Promise<Site> {
  const files = Array.from({ length: FILES }, (_, at) => ({
    name: `file-${at}.txt`,
    body: randomBytes(MIB / 4).toString('hex'),
  }));
  const last = files.at(-1)?.body as string;
  return { archive: await tarOf({ name: 'index.html', body: marker }, ...files), marker, last };
}

/** The status of the answer, or null where the connection ended without one. In pieces, as a slow line sends it. */
function put(address: string, archive: Buffer, pauseMs: number): Promise<number | null> {
  const { pathname, search } = new URL(address);
  return new Promise((resolve) => {
    const request = http.request(`${base}${pathname}${search}`, {
      method: 'PUT',
      headers: { 'Content-Length': archive.length },
    });
    request.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? null));
      response.on('error', () => resolve(null));
    });
    request.on('error', () => resolve(null));
    void (async () => {
      for (let from = 0; from < archive.length && !request.destroyed; from += MIB) {
        request.write(archive.subarray(from, from + MIB));
        await sleep(pauseMs);
      }
      request.end();
    })();
  });
}

const uploadOf = (application: string, id: string): Promise<any> =>
  call('GET', `/v2/applications/${application}/source_uploads/${id}`);

/** Sends the archive, and again after a kill in between, until it is there. */
async function sendThroughKill({ archive }: Site, application: string, killAfterMs: number): Promise<string> {
  const sha256 = createHash('sha256').update(archive).digest('hex');
  const { id, upload_url } = await call('POST', `/v2/applications/${application}/source_uploads`, { sha256 });
  const sent = put(upload_url, archive, 10);
  await sleep(killAfterMs);
  await killAndStart();
  const answered = await sent;
  const { status } = await uploadOf(application, id);
  if (answered === 200) expect(status).toBe('ready');
  if (status === 'waiting') {
    // The claim of the process that is gone ends by itself.
    await sql.query('update source_uploads set receiving_until = now() where id = $1', [id]);
    expect(await put(upload_url, archive, 0)).toBe(200);
  }
  expect(await uploadOf(application, id)).toMatchObject({ status: 'ready', sha256, size_bytes: archive.length });
  return id;
}

/** Waits for the state, or for one behind it. */
async function reaches(deployment: string, wanted: string): Promise<void> {
  const states = ['queued', 'building', 'deploying', 'active'];
  for (;;) {
    const [{ status }] = (await sql.query('select status from deployments where id = $1', [deployment])).rows;
    if (!(states.indexOf(status) < states.indexOf(wanted))) return;
    await sleep(2);
  }
}

test('killed while an archive is received, and while it is unpacked, built and deployed', async () => {
  const { id: application, default_hostname: host } = await call('POST', '/v2/applications', {
    name: 'uploaded',
    source: { type: 'upload' },
  });
  await call('PATCH', `/v2/applications/${application}/settings`, { run: { shutdown_grace_seconds: 2 } });
  for (const [at, kill] of KILLS.entries()) {
    const site = await siteOf(`version ${at}`);
    const upload = await sendThroughKill(site, application, 30 + at * 90);
    const { id: deployment } = await call('POST', `/v2/applications/${application}/deployments`, {
      source_upload_id: upload,
    });
    await reaches(deployment, kill.status);
    await sleep(kill.forMs);
    await killAndStart();
    await waitFor(
      `deployment ${at} is active`,
      async () => (await call('GET', `/v2/applications/${application}/deployments/${deployment}`)).status === 'active',
      60_000,
    );
    await waitFor(site.marker, async () => (await visitHost(ingressPort, host)).body === site.marker);
    expect((await visitHost(ingressPort, host, `/file-${FILES - 1}.txt`)).body === site.last).toBe(true);
  }
  const uploads = readdirSync(path.join(directory, 'runtime/source-uploads')).filter((name) => name.startsWith('src_'));
  expect(uploads.filter((name) => !name.endsWith('.part'))).toHaveLength(KILLS.length);
}, 300_000);
