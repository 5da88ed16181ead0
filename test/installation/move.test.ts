/** @tier heavy @quarter 2 @covers server/operator/handover.ts server/backup/stopped_applications.ts */
// An installation moves to another machine: a final backup there, a restore here. Nothing that was written is missing.
import * as fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { visitHost } from '../support/deployments/deploy';
import { wholeInstallation } from '../support/processes/whole_installation';
import { fileNeeds, testOfRoot } from '../support/runner/programs';

fileNeeds('restic', 'redis-server');
jest.setTimeout(900_000);
const asRoot = testOfRoot();
// Both machines are this one. Without networks of projects their databases would share its ports.

const READY_MS = 240_000;
const old = wholeInstallation();
const other = wholeInstallation(old.repository);
let application: { id: string; default_hostname: string };
let volume: string;
let cache: string;

afterAll(async () => {
  await other.remove();
  await old.remove();
});

async function serves(): Promise<void> {
  const { ingressPort } = other.service();
  for (const end = Date.now() + READY_MS; ; await sleep(250)) {
    const found = await visitHost(ingressPort, application.default_hostname, '/', 'GET').catch(() => null);
    if (found?.status === 200) return;
    if (Date.now() > end) throw new Error(`the application answers ${found?.status}`);
  }
}

beforeAll(async () => {
  const { call, waitFor } = await old.start();
  application = await call('POST', '/v2/applications', { name: 'shop', preset: 'node-web' });
  volume = (await call('POST', '/v2/volumes', { name: 'files', size_gb: 1 })).id;
  cache = (await call('POST', '/v2/databases', { name: 'cache', engine: 'redis' })).id;
  await waitFor(`/v2/volumes/${volume}`, ['available']);
  await call('PATCH', `/v2/volumes/${volume}`, { application_id: application.id, mount_path: '/data' });
  const deployment = await call('POST', `/v2/applications/${application.id}/deployments`, {});
  await waitFor(`/v2/applications/${application.id}/deployments/${deployment.id}`, ['active'], READY_MS);
  await waitFor(`/v2/databases/${cache}`, ['available'], READY_MS);
  await old.backedUp();
});

asRoot('a final backup stops applications and the service, and hands over', async () => {
  fs.writeFileSync(path.join(old.data, 'volumes', volume, 'data', 'last.txt'), 'written at the end');
  await old.service().call('POST', '/v2/projects', { name: 'last' });
  const { code, err } = old.platform(['backup', '--final', '--no-proof']);
  expect([code, err]).toEqual([0, expect.stringContaining('stopping the service')]);
  await expect(fetch(`http://127.0.0.1:${old.service().env.PORT}/healthz`)).rejects.toThrow();
  expect(old.platform(['doctor']).out).toMatch(/This installation was taken over by the machine to which it moves/);
});

asRoot('the restore need not wait, and everything is there and runs', async () => {
  const { code, err } = other.platform(['restore']);
  expect([code, err]).toEqual([0, expect.any(String)]);
  const { call, waitFor } = await other.start({}, old.service().first);
  expect((await call('GET', '/v2/projects?limit=100')).data.map(({ name }: { name: string }) => name)).toContain(
    'last',
  );
  await serves();
  expect(fs.readFileSync(path.join(other.data, 'volumes', volume, 'data', 'last.txt'), 'utf8')).toBe(
    'written at the end',
  );
  await waitFor(`/v2/databases/${cache}`, ['available'], READY_MS);
});

asRoot('on the old machine everything starts again when it takes over', async () => {
  await other.kill();
  expect(old.platform(['backup', 'take-over'])).toMatchObject({ code: 0 });
  const { waitFor } = await old.start();
  await waitFor(`/v2/applications/${application.id}`, ['running'], READY_MS);
});
