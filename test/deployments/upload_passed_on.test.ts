/** @tier heavy @quarter 2 @covers server/http/pass_on.ts server/http/source_uploads.ts */
// A process of the API on another machine than the host: archives that it gets are passed on to a process that has the
// directories (HOST_URL).
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openSourceUploads } from '../../drivers/source/upload_files';
import { saveUploadsMark } from '../../models/deployments/source_upload/job_queries';
import { application, archive, filesOf, MIB, put, service, useUploads } from '../support/deployments/source_uploads';
import { endPrograms, startProgram } from '../support/processes/program';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
useUploads();

const folder = mkdtempSync(path.join(tmpdir(), 'platform-elsewhere-'));
let elsewhere: string;

async function startElsewhere(host: string): Promise<string> {
  const { databaseUrl, config } = service.platform;
  const program = startProgram({
    ...{
      DATABASE_URL: databaseUrl,
      PLATFORM_DATA_DIR: mkdtempSync(path.join(folder, 'data-')),
      WORKER: 'separate',
      SOURCE_SIZE_MB: '2',
    },
    ...{ PLATFORM_SECRET_KEY: readFileSync(path.join(config.dataDir, 'secret-key'), 'utf8').trim(), HOST_URL: host },
  });
  return program.ready();
}

async function create(base: string, body: object = {}): Promise<any> {
  const answer = await fetch(`${base}/v2/applications/${application}/source_uploads`, {
    method: 'POST',
    headers: {
      ...{ Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project },
      'Content-Type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(201);
  return answer.json();
}

beforeAll(async () => {
  const { config, database } = service.platform;
  await saveUploadsMark(database, await openSourceUploads(config.runtimeDir).ensureMark());
  elsewhere = await startElsewhere(service.url);
}, 60_000);
afterAll(async () => {
  await endPrograms();
  rmSync(folder, { recursive: true, force: true });
});

test('an archive arrives where the host is, and what is refused is refused as there', async () => {
  const upload = await create(elsewhere);
  expect(upload.upload_url.startsWith(elsewhere)).toBe(true);
  const sha256 = createHash('sha256').update(archive).digest('hex');
  const received = { id: upload.id, status: 'ready', sha256, size_bytes: archive.length };
  expect(await put(upload.upload_url, archive)).toEqual({ status: 200, body: received });
  expect(filesOf(upload.id)).toEqual([`${upload.id}.${sha256}`]);
  expect(await put(upload.upload_url, archive)).toMatchObject({ status: 409, body: { code: 'invalid_state' } });
  const broken = await create(elsewhere);
  expect(await put(broken.upload_url, randomBytes(500))).toMatchObject({
    status: 422,
    body: { code: 'archive_invalid' },
  });
  const large = await create(elsewhere);
  expect(await put(large.upload_url, randomBytes(3 * MIB))).toMatchObject({ status: 413 });
  expect(await put(upload.upload_url.replace(/.$/, '!'), archive)).toMatchObject({ status: 404 });
});

test('a sender that vanishes leaves an upload that can be sent again', async () => {
  const upload = await create(elsewhere);
  await new Promise<void>((resolve) => {
    const request = http.request(upload.upload_url, { method: 'PUT', headers: { 'Content-Length': MIB } });
    request.on('error', () => resolve());
    request.write(archive.subarray(0, 100), () => setTimeout(() => request.destroy(new Error('vanished')), 200));
  });
  await waitFor('its end', async () => (await put(upload.upload_url, archive)).status === 200);
});

test('a host that does not answer is said, and two that name each other end', async () => {
  const alone = await startElsewhere('http://127.0.0.1:9');
  expect(await put((await create(alone)).upload_url, archive)).toMatchObject({
    status: 503,
    body: { code: 'service_unavailable', detail: 'The machine with the files does not answer.' },
  });
  // It has not got the directories either: the request is not passed on again.
  const first = await startElsewhere(elsewhere);
  const upload = await create(first);
  const answer = await put(upload.upload_url, archive);
  expect(answer).toMatchObject({ status: 409, body: { code: 'engine_unavailable' } });
}, 120_000);
