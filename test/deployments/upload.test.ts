/** @tier heavy @quarter 2 @covers drivers/source server/http/source_uploads models/deployments jobs/deployments */
// Deployments of uploads, with all that runs: a folder by tar and curl, a rollback, an archive that is gone, and the
// control plane killed on the way.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import {
  configuredApplication,
  startDeployService,
  visitHost,
  type DeployService,
} from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are checked by the OpenAPI document */
let service: DeployService;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'upload-'));
  service = await startDeployService();
}, 120_000);
afterAll(async () => {
  await service?.close();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

let serial = 0;
function writeFolder(files: Record<string, string>): string {
  const directory = path.join(folder, String((serial += 1)));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), text);
  }
  return directory;
}

async function application(source: object = { type: 'upload' }): Promise<any> {
  const { body } = await service.call('POST', '/v2/applications', { body: { name: `up-${(serial += 1)}`, source } });
  return configuredApplication(service, body);
}

/** As the documentation says: tar into curl. */
async function upload(app: any, directory: string): Promise<string> {
  const made = await app.post('/source_uploads', {});
  await promisify(execFile)('sh', ['-c', `tar cz -C ${directory} . | curl -sS -f -T - '${made.upload_url}'`]);
  return made.id;
}

const site = (text: string): Record<string, string> => ({ 'index.html': text });
const visit = async (app: any): Promise<string> =>
  (await visitHost(service.platform.config.ingressPort, app.host)).body;

test('a folder by tar and curl serves; the next one replaces it; a rollback needs no upload', async () => {
  const app = await application();
  const first = await app.deploy({ source_upload_id: await upload(app, writeFolder(site('one'))) });
  expect(first).toMatchObject({ status: 'active', source: { type: 'upload' } });
  expect(await visit(app)).toBe('one');
  const second = await upload(app, writeFolder(site('two')));
  expect((await app.deploy({ source_upload_id: second })).status).toBe('active');
  expect(await visit(app)).toBe('two');
  // Once more, without the cache.
  expect((await app.deploy({ source_upload_id: second, clear_cache: true })).status).toBe('active');
  for (const name of readdirSync(path.join(service.runtimeDir, 'source-uploads')))
    if (name.startsWith('src_')) rmSync(path.join(service.runtimeDir, 'source-uploads', name));
  const back = await app.ended((await app.post('/rollback', { deployment_id: first.id })).id);
  expect(back).toMatchObject({
    status: 'active',
    trigger: 'rollback',
    source: { type: 'upload', sha256: first.source.sha256 },
  });
  expect(await visit(app)).toBe('one');
  // The archive is what a new build would need.
  const gone = await app.deploy({ source_upload_id: second });
  expect(gone).toMatchObject({ status: 'failed', status_reason: expect.stringMatching(/no longer kept/) });
  expect(await visit(app)).toBe('one');
}, 180_000);

test('local changes of an application with another source are built, and said to be so', async () => {
  const app = await application({ type: 'preset', preset: 'static-site' });
  const deployed = await app.deploy({
    source_upload_id: await upload(app, writeFolder(nodeApp('local') as Record<string, string>)),
  });
  expect(deployed.status).toBe('active');
  expect(await visit(app)).toContain('local');
  const log = await app.log(deployed.id);
  expect(log.some((line: string) => /Upload src_\w+ \(/.test(line))).toBe(true);
  expect(log).toContainEqual(expect.stringMatching(/^Local changes/));
  expect((await app.deploy({})).source.type).toBe('preset');
  expect(await visit(app)).not.toContain('local');
}, 180_000);

test('files in one folder: the log says so, and root_directory leads there', async () => {
  const app = await application();
  const id = await upload(app, writeFolder({ 'package/index.html': 'below' }));
  const first = await app.deploy({ source_upload_id: id });
  expect(await app.log(first.id)).toContainEqual(expect.stringMatching(/All files are in the folder package/));
  await service.call('PATCH', `/v2/applications/${app.id}/settings`, {
    body: { build: { root_directory: 'package' } },
  });
  expect((await app.deploy({ source_upload_id: id })).status).toBe('active');
  expect(await visit(app)).toBe('below');
}, 180_000);

test('a deleted application takes its uploads along', async () => {
  const app = await application();
  const id = await upload(app, writeFolder(site('x')));
  await service.call('DELETE', `/v2/applications/${app.id}`);
  await waitFor(
    'no row',
    async () => (await service.sql('select 1 from source_uploads where id = $1', [id])).length === 0,
  );
}, 60_000);
