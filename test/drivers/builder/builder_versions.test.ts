/** @tier heavy @quarter 4 @covers drivers/builder drivers/toolchain */
/** @user any */
// Which versions of Node.js and of the package managers a source gets, from a registry that the test describes.
import { mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { BuildDriver, BuildPlan } from '../../../drivers/builder';
import { openBuilder } from '../../../drivers/builder/buildpack';
import type { ToolchainDriver } from '../../../drivers/toolchain';
import { openToolchains } from '../../../drivers/toolchain/store';
import {
  buildError,
  commands,
  detect,
  facts,
  longTermBuilder,
  registry,
  without,
  setUpPlans,
} from '../../support/deployments/plans';

setUpPlans();

const chosen = ({ tools = [] }: BuildPlan): string => tools.map(({ name, version }) => `${name} ${version}`).join(', ');
const withPackages = { dependencies: { a: '1' }, main: 'a.js' };
const plan = (fields: object, files: Record<string, string> = {}): Promise<BuildPlan> =>
  detect({ 'package.json': { ...withPackages, ...fields }, 'a.js': '', ...files });
const planLongTerm = (fields: object, files: Record<string, string> = {}, host = facts): Promise<BuildPlan> =>
  detect({ 'package.json': { ...withPackages, ...fields }, 'a.js': '', ...files }, {}, host, longTermBuilder);
const freshToolchains = (): Promise<ToolchainDriver> =>
  openToolchains(mkdtempSync(path.join(os.tmpdir(), 'toolchains-')));

describe('Node.js', () => {
  test.each([
    ['>=18', 'node 24.21.0, npm 12.2.0'],
    ['20.x', ''],
    ['>=18 <21', ''],
    ['some words', 'node 24.21.0, npm 12.2.0'],
    ['18.x', 'node 18.20.8, npm 10.9.9'],
    ['>=22', 'node 24.21.0, npm 12.2.0'],
    ['22', 'node 22.23.3, npm 12.2.0'],
    ['22.5.1', 'node 22.5.1, npm 10.9.9'],
    ['^23', 'node 23.11.1, npm 11.21.2'],
    ['>=25', 'node 26.10.0, npm 12.2.0'],
  ])('engines.node %j with 20.20.2: %j', async (node, tools) => {
    expect(chosen(await planLongTerm({ engines: { node } }))).toBe(tools);
  });

  test('.nvmrc and .node-version count where engines.node is absent', async () => {
    expect(chosen(await plan({}, { '.nvmrc': 'v22.5.1\n' }))).toMatch(/^node 22\.5\.1/);
    expect(chosen(await plan({}, { '.node-version': '18' }))).toMatch(/^node 18\.20\.8/);
    expect(chosen(await plan({}, { '.nvmrc': 'lts/jod' }))).toMatch(/^node 22\.23\.3/);
    expect(chosen(await plan({ engines: { node: '20' } }, { '.nvmrc': '18' }))).toBe('');
  });

  test.each(['20.20.2', '22.1.0', '18.0.0', '26.0.0', '24.3.0'])(
    'without a wish it is the newest long-term line on a host with %s, and the log says why',
    async (version) => {
      const host = { ...facts, programs: { ...facts.programs, node: { version, path: '/usr/bin/node' } } };
      const found = await planLongTerm({}, {}, host);
      expect(chosen(found)).toBe(version.startsWith('24.') ? '' : 'node 24.21.0, npm 12.2.0');
      const what = version.startsWith('24.') ? version : '24.21.0';
      expect(found.summary).toBe(`Node.js ${what}, npm install`);
      expect(found.reasons).toEqual([
        `Node.js ${what} is of the newest long-term line, since the source names no version.`,
      ]);
      expect(found.notes).toBeUndefined();
    },
  );

  const lock = (needs: Record<string, unknown>): Record<string, string> => ({
    'package-lock.json': JSON.stringify({
      lockfileVersion: 3,
      packages: {
        '': { dependencies: Object.fromEntries(Object.keys(needs).map((name) => [name, '1'])) },
        'node_modules/of-a-package': { engines: { node: '18' } },
        ...Object.fromEntries(
          Object.entries(needs).map(([name, node]) => [`node_modules/${name}`, { engines: { node } }]),
        ),
      },
    }),
  });
  test.each([
    [{ a: '>=18' }, '24.21.0', /newest long-term line, since the source names no version/],
    [{ a: '^20.19.0 || >=22.12.0' }, '24.21.0', /newest/],
    [{ a: '18 || 20 || 22' }, '22.23.3', /that the packages allow: a needs 18 \|\| 20 \|\| 22\.$/],
    [{ a: '>=18 <22.10', b: '*' }, '22.5.1', /a needs >=18 <22\.10/],
    [{ a: '<=18', b: '>=18' }, '18.20.8', /a needs <=18/],
    // Nothing has it: it counts for every line alike.
    [{ a: '0.10.x' }, '24.21.0', /newest/],
    [{ a: '0.10.x', b: '<=22' }, '22.23.3', /b needs <=22/],
    [{ a: 17, b: 'words', c: { node: '18' } }, '24.21.0', /newest/],
  ])('the packages of package-lock.json that need %j get %s', async (needs, version, reason) => {
    const found = await planLongTerm({ dependencies: needs }, lock(needs));
    expect(found.summary).toBe(`Node.js ${version}, npm ci`);
    expect(found.reasons?.[0]).toMatch(reason);
  });

  test('ranges that are made to take long do not', async () => {
    const long = Array.from({ length: 30_000 }, (_, i) => `^${i}`).join(' || ');
    const needs = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`x${i}`, long]));
    const started = performance.now();
    const found = await planLongTerm({ engines: { node: long } }, lock(needs));
    expect(found.summary).toMatch(/^Node\.js 24\.21\.0/);
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test('what the source states wins over what its packages need', async () => {
    expect((await planLongTerm({ engines: { node: '22' } }, lock({ a: '18' }))).summary).toMatch(/^Node\.js 22\.23\.3/);
    expect((await planLongTerm({ engines: { node: '>=18' } }, lock({ a: '<=22' }))).summary).toMatch(
      /^Node\.js 22\.23\.3/,
    );
  });

  test('lock files larger than a source file may be are read all the same', async () => {
    const large = JSON.parse(lock({ a: '<23' })['package-lock.json']!) as { packages: object };
    const filler = Object.fromEntries(Array.from({ length: 9000 }, (_, i) => [`x${i}`, { resolved: 'y'.repeat(200) }]));
    Object.assign(large.packages, filler);
    expect((await planLongTerm({}, { 'package-lock.json': JSON.stringify(large) })).summary).toMatch(
      /^Node\.js 22\.23\.3/,
    );
    const yarn = `# yarn lockfile v1\n\n${'x'.repeat(2 << 20)}`;
    expect(chosen(await planLongTerm({ engines: { node: '20' } }, { 'yarn.lock': yarn }))).toBe('yarn 1.22.22');
  });

  test('a registry that does not answer, or sends what is broken: that of the host serves, with a note', async () => {
    const look = (fields: object, by: BuildDriver) =>
      detect({ 'package.json': { ...withPackages, ...fields }, 'a.js': '' }, {}, facts, by);
    const used = 'Node.js 20.20.2 of the host is used, because a newer one could not be installed: ';
    try {
      registry.isCorrupt = true;
      const broken = await look({}, openBuilder(await freshToolchains()));
      expect(chosen(broken)).toBe('');
      expect(broken.notes?.[0]).toContain(used);
      expect(broken.notes?.[0]).toMatch(/did not have the integrity that the npm registry states/);
      registry.isCorrupt = false;
      registry.isDown = true;
      const alone = openBuilder(await freshToolchains());
      const down = await look({}, alone);
      expect(down.summary).toBe('Node.js 20.20.2, npm install');
      expect(down.notes).toEqual([
        `${used}The npm registry did not answer for the package node-${process.platform}-${process.arch}.`,
      ]);
      // A wish that the host does not meet leaves no choice.
      await expect(look({ engines: { node: '22' } }, alone)).rejects.toMatchObject({ reason: 'transient' });
    } finally {
      registry.isDown = registry.isCorrupt = false;
    }
  }, 90_000);

  test('where the operator prefers the Node.js of the host, it is used wherever it fits', async () => {
    const before = registry.requests.length;
    expect(await plan({})).toMatchObject({ summary: 'Node.js 20.20.2, npm install', tools: [] });
    expect(await plan({ engines: { node: '>=18' } })).toMatchObject({ tools: [] });
    expect(registry.requests).toHaveLength(before);
    expect(chosen(await plan({ engines: { node: '22' } }))).toMatch(/^node 22\.23\.3/);
  });

  test('a host without Node.js gets one of the registry', async () => {
    const bare = await detect({ 'package.json': withPackages, 'a.js': '' }, {}, without('node'));
    expect(chosen(bare)).toBe('node 24.21.0, npm 12.2.0');
    expect(bare.summary).toBe('Node.js 24.21.0, npm install');
  });

  test('a version that nobody published is named, with where it is asked for', async () => {
    expect(await buildError(plan({ engines: { node: '99' } }))).toBe(
      'The source asks for Node.js 99 (engines.node of package.json), but the npm registry has no such version.',
    );
    expect(await buildError(plan({ packageManager: 'pnpm@11.28.6' }))).toBe(
      'The source asks for pnpm 11.28.6 (packageManager), but the npm registry has no such version that runs ' +
        'with Node.js 20.20.2.',
    );
  });
});

describe('package managers', () => {
  const lock = (format: string): Record<string, string> => ({ 'yarn.lock': `__metadata:\n  version: ${format}\n` });
  test.each([
    [{ packageManager: 'yarn@4.1.0+sha512.0123abcd' }, lock('8'), 'yarn 4.1.0'],
    [{ packageManager: 'yarn@1.22.22' }, {}, 'yarn 1.22.22'],
    [{ engines: { yarn: '>=3 <4' } }, lock('6'), 'yarn 3.8.7'],
    [{}, lock('8'), 'yarn 4.18.1'],
    [{}, lock('6'), 'yarn 3.8.7'],
    [{}, { 'yarn.lock': '# yarn lockfile v1\n' }, 'yarn 1.22.22'],
    [{}, { 'pnpm-lock.yaml': "lockfileVersion: '6.0'\n" }, 'pnpm 8.15.9'],
    [{}, { 'pnpm-lock.yaml': "lockfileVersion: '9.0'\n" }, 'pnpm 10.34.9'],
    [{ packageManager: 'pnpm@9.1.0' }, {}, 'pnpm 9.1.0'],
    [{ engines: { node: '22', pnpm: '11' } }, { 'pnpm-lock.yaml': '' }, 'node 22.23.3, npm 12.2.0, pnpm 11.28.6'],
    [{ engines: { npm: '>=8' } }, {}, ''],
    [{ packageManager: 'npm@10.9.9' }, {}, 'npm 10.9.9'],
  ])('%j with %j: %s', async (fields, files, tools) => expect(chosen(await plan(fields, files))).toBe(tools));

  test('what the host has of yarn and pnpm does not count: a sandbox may not see it', async () => {
    const { programs } = facts;
    const host = { ...facts, programs: { ...programs, yarn: { version: '1.22.0', path: '/root/yarn' } } };
    expect(chosen(await detect({ 'package.json': withPackages, 'a.js': '', 'yarn.lock': '' }, {}, host))).toBe(
      'yarn 1.22.22',
    );
  });

  test('Yarn 2 and later install also where nothing is to be installed: they run nothing before', async () => {
    const steps = async (packageManager: string): Promise<string[]> =>
      commands(await detect({ 'package.json': { packageManager, scripts: { start: 'node a.js' } }, 'a.js': '' }));
    expect(await steps('yarn@4.1.0')).toEqual(['yarn install --no-immutable']);
    expect(await steps('yarn@1.22.22')).toEqual([]);
  });

  test('Yarn without node_modules starts programs through yarn', async () => {
    const start = { scripts: { start: 'node a.js' } };
    expect((await plan(start, lock('8'))).processes.web).toBe('yarn run start');
    expect((await plan(start, { ...lock('8'), '.yarnrc.yml': 'nodeLinker: node-modules\n' })).processes.web).toBe(
      'node a.js',
    );
    expect((await plan({}, lock('8'))).processes.web).toBe('yarn node a.js');
  });
});

describe('development packages', () => {
  const last = async (fields: object, files: Record<string, string> = {}): Promise<string | undefined> =>
    (await plan({ devDependencies: { tool: '1' }, ...fields }, files)).steps.at(-1)?.command.split('\n').at(-1);

  test.each([
    [{}, {}, /npm prune --omit=dev/],
    [{}, { 'yarn.lock': '# v1\n' }, /yarn install --production --frozen-lockfile/],
    [{}, { 'yarn.lock': '__metadata:\n  version: 8\n' }, /yarn workspaces focus --all --production/],
    [{}, { 'pnpm-lock.yaml': '' }, /pnpm prune --prod/],
  ])('%j with %j are removed after the build', async (fields, files, command) => {
    expect(await last(fields, files)).toMatch(command);
  });

  test('are left alone where there are none, and where the user builds', async () => {
    expect((await plan({})).steps.map(({ name }) => name)).toEqual(['npm install']);
    const own = await detect(
      { 'package.json': { ...withPackages, devDependencies: { tool: '1' } }, 'a.js': '' },
      { build_command: 'make' },
    );
    expect(commands(own)).toEqual(['make']);
  });
});
