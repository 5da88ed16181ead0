/** @tier heavy @quarter 3 @covers drivers/builder drivers/toolchain */
// The programs of a plan (Node.js, package managers) are part of the release, whether anything was built or not.
import { execFileSync } from 'node:child_process';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { managerPackage, nodePackage, startNpmRegistry, type NpmRegistry } from '../support/builds/npm_registry';
import { waitFor } from '../support/wait_for';

let registry: NpmRegistry;
let service: DeployService;
beforeAll(async () => {
  registry = await startNpmRegistry([
    ...['18.20.8', '24.21.0'].map(nodePackage),
    managerPackage('npm', 'npm', '10.9.9', '^18.17.0 || >=20.5.0'),
    managerPackage('pnpm', 'pnpm', '10.34.9', '>=18.12'),
    managerPackage('yarn', 'yarn', '1.22.22', '>=4.0.0'),
  ]);
  service = await startDeployService({ BUILD_CONCURRENCY: '4', PREFERRED_NODE: 'long_term' });
}, 60_000);
afterAll(async () => {
  await service?.close();
  await registry?.close();
}, 60_000);

// What each program that is called by name says of itself.
const program = (version: string) => `
const { execSync } = require('child_process');
const fs = require('fs');
const versionOf = (one) => execSync(one + ' --version', { stdio: 'pipe' }).toString().trim();
const say = (one) => { try { return versionOf(one); } catch { return 'none'; } };
const text = ['${version}', ...['node', 'yarn', 'pnpm'].map(say)].join(' ');
const released = fs.existsSync('released') ? ' released by ' + fs.readFileSync('released', 'utf8').trim() : '';
require('http').createServer((q, s) => s.end(text + released)).listen(process.env.PORT, '127.0.0.1');
console.log('I am ' + text);
`;
const manifest = (fields: object) => JSON.stringify({ name: 'x', version: '1.0.0', main: 'index.js', ...fields });

const hostNode = execFileSync('node', ['--version']).toString().trim();

/** The first of each version is downloaded. */
const PATIENCE_MS = 200_000;

async function active(application: TestApplication): Promise<{ id: string; status_reason: string | null }> {
  const ended = await application.ended((await application.ask()).id, PATIENCE_MS);
  if (ended.status !== 'active')
    throw new Error(`${ended.status_reason}\n${(await application.log(ended.id)).join('\n')}`);
  return ended;
}

test('without a registry the Node.js of the host serves, and the log and the reason say so', async () => {
  const application = await service.application({ 'index.js': program('v1'), 'package.json': manifest({}) });
  registry.isDown = true;
  try {
    const ended = await active(application);
    expect((await application.visit()).body).toBe(`v1 ${hostNode} none none`);
    expect(ended.status_reason).toMatch(
      /^Node\.js .* of the host is used, because a newer one could not be installed: /,
    );
    expect((await application.log(ended.id)).join('\n')).toContain(ended.status_reason);
  } finally {
    registry.isDown = false;
  }
}, 240_000);

test('without a wish it is the newest long-term line, and the log says why', async () => {
  const application = await service.application({ 'index.js': program('v1'), 'package.json': manifest({}) });
  const ended = await active(application);
  expect((await application.visit()).body).toBe('v1 v24.21.0 none none');
  expect(ended.status_reason).toBeNull();
  expect(await application.log(ended.id)).toContain(
    'Node.js 24.21.0 is of the newest long-term line, since the source names no version.',
  );
}, 240_000);

test.each([
  ['engines.node', { 'package.json': manifest({ engines: { node: '24' } }) }, /^v1 v24\.21\.0 /],
  ['.nvmrc', { 'package.json': manifest({}), '.nvmrc': '24' }, /^v1 v24\.21\.0 /],
  ['packageManager of pnpm', { 'package.json': manifest({ packageManager: 'pnpm@10.34.9' }) }, / 10\.34\.9$/],
  ['packageManager of yarn', { 'package.json': manifest({ packageManager: 'yarn@1.22.22' }) }, / 1\.22\.22 none$/],
  [
    'a Procfile',
    { 'package.json': manifest({}), '.node-version': '18', Procfile: 'web: node index.js' },
    /^v1 v18\.20\.8 /,
  ],
])(
  '%s without dependencies and without a build: the application runs with it',
  async (_name, files, seen) => {
    const application = await service.application({ 'index.js': program('v1'), ...files });
    const ended = await active(application);
    expect((await application.visit()).body).toMatch(seen);
    expect((await application.log(ended.id)).join('\n')).not.toMatch(/The build succeeded/);
  },
  240_000,
);

test('release commands, workers, restarts, previews, and the version that a rollback returns to', async () => {
  const files = (node: string, version: string) => ({
    'package.json': manifest({ engines: { node } }),
    'index.js': program(version),
    'worker.js': program(`worker ${version}`),
    Procfile: 'web: node index.js\nworker: node worker.js\nrelease: node --version > released\n',
  });
  const application = await service.application(files('24', 'v1'));
  const first = await active(application);
  const before = 'v1 v24.21.0 none none released by v24.21.0';
  expect((await application.visit()).body).toBe(before);

  const worker = (await application.get('/processes')).data.find(({ type }: { type: string }) => type === 'worker');
  await application.post(`/processes/${worker.id}/scale`, { instances: 1 });
  await waitFor('the line of the worker', async () =>
    (await application.get('/logs?source=app')).data.find((line: { message: string }) =>
      line.message.includes('I am worker v1 v24.21.0'),
    ),
  );
  await application.post(`/processes/${worker.id}/scale`, { instances: 0 });

  service.git.commit(application.name, files('18', 'v2'), { branch: 'next' });
  const preview = await application.post('/previews', { branch: 'next' });
  await application.ended((await application.get(`/deployments?preview_id=${preview.id}`)).data[0].id, PATIENCE_MS);
  await waitFor('the preview', async () => (await application.get(`/previews/${preview.id}`)).status === 'running');

  application.push(files('18', 'v2'));
  await active(application);
  expect((await application.visit()).body).toBe('v2 v18.20.8 none none released by v18.20.8');
  const back = await application.post('/rollback', { deployment_id: first.id });
  expect(await application.ended(back.id)).toMatchObject({ status: 'active' });
  expect((await application.visit()).body).toBe(before);
  await application.post('/restart');
  await waitFor('running again', async () => (await application.get()).status === 'running');
  expect((await application.visit()).body).toBe(before);
}, 240_000);
