/** @tier heavy @quarter 2 @covers drivers/toolchain */
// The store of toolchains against a registry that speaks npm's protocol.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import type { Tool, ToolchainDriver } from '../../../drivers/toolchain';
import { openToolchains } from '../../../drivers/toolchain/store';
import { managerPackage, nodePackage, startNpmRegistry, type NpmRegistry } from '../../support/builds/npm_registry';

const folder = mkdtempSync(path.join(os.tmpdir(), 'toolchains-'));
const ctx = () => driverContext(60_000);
const node = `node-${process.platform}-${process.arch}`;
const node22: Tool = { name: 'node', version: '22.23.3', package: node };
let registry: NpmRegistry;
let serial = 0;

beforeAll(async () => {
  registry = await startNpmRegistry([
    nodePackage('22.23.3'),
    { ...nodePackage('24.0.0'), files: { 'bin/node': '#!/bin/sh\nexit 127\n' } },
    managerPackage('yarn', 'yarn', '1.22.22'),
    managerPackage('@yarnpkg/cli-dist', 'yarn', '4.18.1', '>=18.12.0'),
  ]);
});

afterEach(() => {
  registry.isDown = false;
  registry.isCorrupt = false;
  registry.requests.length = 0;
});

afterAll(async () => {
  await registry.close();
  rmSync(folder, { recursive: true, force: true });
});

async function fresh(): Promise<{ directory: string; store: ToolchainDriver }> {
  const directory = path.join(folder, `store-${(serial += 1)}`);
  return { directory, store: await openToolchains(directory) };
}

test('downloads a program once, for all to read, and leaves nothing else', async () => {
  const { directory, store } = await fresh();
  const yarn: Tool = { name: 'yarn', version: '4.18.1', package: '@yarnpkg/cli-dist' };
  await Promise.all([store.ensure([node22, yarn], ctx()), store.ensure([node22], ctx())]);
  const PATH = [node22, yarn].map((tool) => store.binDirectory(tool)).join(':');
  const run = (...args: string[]) =>
    execFileSync('/bin/sh', ['-c', args.join(' ')], { env: { PATH: `${PATH}:/usr/bin:/bin` } }).toString();
  expect(run('node --version')).toBe('v22.23.3\n');
  expect(run('yarn install')).toBe('yarn 4.18.1 install\n');
  expect(readdirSync(directory).sort()).toEqual(['node-22.23.3', 'yarn-4.18.1']);
  expect(statSync(path.join(directory, 'node-22.23.3')).mode & 0o777).toBe(0o755);
  expect(registry.requests.filter((one) => one.endsWith('.tgz'))).toHaveLength(2);
});

test('what is here is used without the registry; what is not is an answer that says so', async () => {
  const { directory, store } = await fresh();
  await store.ensure([node22], ctx());
  registry.isDown = true;
  const again = await openToolchains(directory);
  await again.ensure([node22], ctx());
  expect(await again.versions('node', node, ctx())).toEqual([{ version: '22.23.3', node: null }]);
  await expect(again.versions('yarn', 'yarn', ctx())).rejects.toMatchObject({
    reason: 'transient',
    message: 'The npm registry did not answer for the package yarn.',
  });
}, 60_000);

test('a download with a flipped byte is refused, and does not stay', async () => {
  const { directory, store } = await fresh();
  registry.isCorrupt = true;
  await expect(store.ensure([node22], ctx())).rejects.toMatchObject({
    message: expect.stringMatching(/22\.23\.3 did not have the integrity that the npm registry states/),
  });
  expect(readdirSync(directory)).toEqual([]);
  registry.isCorrupt = false;
  await store.ensure([node22], ctx());
  expect(existsSync(path.join(store.binDirectory(node22), 'node'))).toBe(true);
}, 60_000);

test('a Node.js that does not run on this host is refused', async () => {
  const { directory, store } = await fresh();
  await expect(store.ensure([{ ...node22, version: '24.0.0' }], ctx())).rejects.toMatchObject({
    reason: 'unsupported',
    message: expect.stringMatching(/24\.0\.0 does not run on this host\.$/),
  });
  expect(readdirSync(directory)).toEqual([]);
});

test('versions are those of the registry, with the Node.js that they need; an unknown package has none', async () => {
  const { store } = await fresh();
  expect(await store.versions('yarn', '@yarnpkg/cli-dist', ctx())).toEqual([{ version: '4.18.1', node: '>=18.12.0' }]);
  expect(await store.versions('node', node, ctx())).toEqual([
    { version: '22.23.3', node: null },
    { version: '24.0.0', node: null },
  ]);
  expect(await store.versions('bun', '@oven/nothing', ctx())).toEqual([]);
  await expect(store.ensure([{ ...node22, version: '1.2.3' }], ctx())).rejects.toMatchObject({ reason: 'invalid' });
});

test('builds learn how to reach the registry, and no credential', async () => {
  const userconfig = path.join(folder, 'npmrc');
  writeFileSync(
    userconfig,
    `//127.0.0.1/:_authToken=secret-token\n@acme:registry=${registry.url}\nhttps-proxy=http://ada:secret@127.0.0.1:1\n`,
  );
  process.env.npm_config_userconfig = userconfig;
  try {
    const { store } = await fresh();
    const settings = await store.registry(ctx());
    expect(settings.files['.npmrc']).toEqual(
      expect.arrayContaining([`registry=${registry.url}`, `@acme:registry=${registry.url}`]),
    );
    expect(settings.files['.yarnrc.yml']).toContain(`npmRegistryServer: "${registry.url}"`);
    expect(JSON.stringify(settings)).not.toMatch(/secret/);
  } finally {
    delete process.env.npm_config_userconfig;
  }
});

test("programs come from the registry that npm's global configuration names", async () => {
  const prefix = mkdtempSync(path.join(folder, 'prefix-'));
  const npm = execFileSync('/bin/sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  for (const name of ['bin', 'etc']) mkdirSync(path.join(prefix, name));
  writeFileSync(path.join(prefix, 'etc/npmrc'), `registry=${registry.url}\n`);
  writeFileSync(path.join(prefix, 'bin/npm'), `#!/bin/sh\nPREFIX='${prefix}' exec '${npm}' "$@"\n`, { mode: 0o755 });
  const before = { ...process.env };
  for (const name of ['npm_config_registry', 'npm_config_globalconfig', 'npm_config_prefix']) delete process.env[name];
  process.env.PATH = `${prefix}/bin:${process.env.PATH ?? ''}`;
  try {
    const { store } = await fresh();
    await store.ensure([node22], ctx());
    expect(registry.requests.filter((one) => one.endsWith('.tgz'))).toHaveLength(1);
  } finally {
    Object.assign(process.env, before);
  }
}, 60_000);
