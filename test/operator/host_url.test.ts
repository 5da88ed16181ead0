/** @user any */
// What `doctor` says of HOST_URL.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { loadConfig, type Config } from '../../core/config';
import { saveUploadsMark } from '../../models/deployments/source_upload/job_queries';
import { openSourceUploads } from '../../drivers/source/upload_files';
import { hostUrl } from '../../server/operator/doctor_host_url';
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.close());

const findings = (settings: Record<string, string>, values: Partial<Config> = {}) =>
  hostUrl({
    ...loadConfig({
      ...{ DATABASE_URL: service.platform.config.databaseUrl ?? '', WORKER: 'separate' },
      PLATFORM_DATA_DIR: service.dataDir,
      ...settings,
    }),
    ...values,
  });

test('a process that answers is in order, and nothing else is', async () => {
  expect(await findings({ HOST_URL: service.url })).toMatchObject([{ status: 'ok' }]);
  const other = http.createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(other, 'listening');
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  expect(await findings({ HOST_URL: url })).toMatchObject([
    { status: 'failed', detail: expect.stringContaining('answers something else') },
  ]);
  await new Promise((resolve) => other.close(resolve));
  expect(await findings({ HOST_URL: url })).toMatchObject([
    { status: 'failed', detail: expect.stringContaining('does not answer (ECONNREFUSED)') },
  ]);
});

test('without it, a process of the API alone has to share the directories of the worker', async () => {
  expect(await findings({})).toMatchObject([{ status: 'ok', detail: 'no worker has begun yet' }]);
  const { runtimeDir } = loadConfig({ PLATFORM_DATA_DIR: service.dataDir });
  await saveUploadsMark(service.platform.database, await openSourceUploads(runtimeDir).ensureMark());
  expect(await findings({})).toMatchObject([
    { status: 'ok', detail: expect.stringContaining('shares the data directory') },
  ]);
  expect(await findings({}, { runtimeDir: tmpdir() })).toMatchObject([
    { status: 'warning', detail: expect.stringContaining('HOST_URL is not set') },
  ]);
});

test('a process that does the work itself needs none', async () => {
  expect(await findings({ WORKER: 'in_process' })).toEqual([]);
});
