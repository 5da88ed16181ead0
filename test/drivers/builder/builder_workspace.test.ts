// Members of workspaces: what stands at the top decides, and is installed there.
import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import type { BuildPlan } from '../../../drivers/builder';
import { driverContext } from '../../../core/driver';
import { isNamed, pnpmPackages } from '../../../drivers/builder/node/workspace_patterns';
import { openWorkshop } from '../../support/runner/built';
import { buildError, builder, detect, facts, setUpPlans, settings, source } from '../../support/deployments/plans';

setUpPlans();

const workshop = openWorkshop();
afterAll(() => workshop.close());

const server = `require('node:http').createServer((q, s) => s.end(require('greet')())).listen(process.env.PORT)`;
const chosen = ({ tools = [] }: BuildPlan): string => tools.map(({ name, version }) => `${name} ${version}`).join(', ');
const lines = (plan: BuildPlan): string[] => plan.steps.map(({ command }) => command);
const web = (fields: object = {}) => ({
  'apps/web/package.json': {
    name: 'web',
    dependencies: { ui: 'workspace:*' },
    scripts: { start: 'next start' },
    ...fields,
  },
});
const plan = (files: Record<string, string | object>, root_directory = 'apps/web'): Promise<BuildPlan> =>
  detect(files, { root_directory });

describe('the top of a workspace', () => {
  test.each([
    ['npm', { workspaces: ['apps/*'] }, { 'package-lock.json': '{}' }, '', 'npm ci --include=dev'],
    [
      'yarn',
      { workspaces: ['apps/*'], packageManager: 'yarn@4.1.0' },
      { 'yarn.lock': '' },
      'yarn 4.1.0',
      'yarn install',
    ],
    ['yarn', { workspaces: { packages: ['apps/web'] } }, { 'yarn.lock': '# v1\n' }, 'yarn 1.22.22', 'yarn install'],
    ['yarn', { workspaces: ['**'] }, { 'yarn.lock': '__metadata:\n  version: 6\n' }, 'yarn 3.8.7', 'yarn install'],
    [
      'pnpm',
      { packageManager: 'pnpm@9.1.0' },
      {
        'pnpm-workspace.yaml': "packages:\n  - 'apps/*'\n  - packages/*\n",
        'pnpm-lock.yaml': "lockfileVersion: '9.0'\n",
      },
      'pnpm 9.1.0',
      'pnpm install --prod=false --frozen-lockfile',
    ],
    [
      'pnpm',
      {},
      {
        'pnpm-workspace.yaml': 'packages: ["packages/*", "apps/*"] # all\n',
        'pnpm-lock.yaml': "lockfileVersion: '6.0'\n",
      },
      'pnpm 8.15.9',
      'pnpm install',
    ],
  ])('%s with %j and %j', async (_manager, top, files, tools, install) => {
    const found = await plan({ 'package.json': top, ...files, ...web() });
    expect(chosen(found)).toBe(tools);
    expect(lines(found)[0]).toMatch(`cd -P ../.. && ${install}`);
    expect(found.summary).toMatch(/ install|npm ci/);
    expect(found.summary).toContain('in the workspace at ../..');
    const isPnp = /^yarn [34]/.test(tools);
    expect(found.programs).toEqual(isPnp ? [] : ['node_modules/.bin', '../../node_modules/.bin']);
  });

  test.each([
    ['no pattern names it', { workspaces: ['packages/*'] }, {}],
    ['a pattern takes it away', { workspaces: ['apps/*', '!apps/web'] }, {}],
    ['there is none', {}, {}],
    ['pnpm-workspace.yaml has settings only', {}, { 'pnpm-workspace.yaml': 'catalog:\n  apps/web: 1\n' }],
  ])('is the root directory itself where %s', async (_why, top, more) => {
    const found = await plan({ 'package.json': top, 'package-lock.json': '{}', ...more, ...web() });
    expect(lines(found)[0]).toMatch(/^npm install /);
    expect(found.programs).toEqual(['node_modules/.bin']);
  });

  test('pnpm is kept from a workspace above that does not name the root directory', async () => {
    const own = { 'apps/web/pnpm-lock.yaml': "lockfileVersion: '9.0'\n", ...web() };
    const above = { 'pnpm-workspace.yaml': 'packages: [packages/*]\n', 'pnpm-lock.yaml': '' };
    expect(lines(await plan({ ...own, ...above }))[0]).toMatch(/^pnpm install .*--frozen-lockfile --ignore-workspace$/);
    expect(lines(await plan(own))[0]).toMatch(/--frozen-lockfile$/);
  });

  test('its Node.js counts where the member states none; .nvmrc and packageManager count above any', async () => {
    const top = { workspaces: ['apps/*'], engines: { node: '22' } };
    expect(chosen(await plan({ 'package.json': top, ...web() }))).toMatch(/^node 22\.23\.3/);
    expect(chosen(await plan({ 'package.json': top, ...web({ engines: { node: '18' } }) }))).toMatch(/^node 18\.20\.8/);
    expect(chosen(await plan({ '.nvmrc': '22', ...web() }))).toMatch(/^node 22\.23\.3/);
    const stranger = { packageManager: 'pnpm@9.1.0', engines: { node: '22' } };
    expect(chosen(await plan({ 'package.json': stranger, ...web() }))).toBe('pnpm 9.1.0');
    expect(chosen(await plan({ 'package.json': stranger, ...web(), 'apps/web/package-lock.json': '{}' }))).toBe('');
  });

  test('engines of the packages that the member itself names are looked up in the lock file at the top', async () => {
    const packages = {
      '': {},
      'apps/web': { dependencies: { a: '1', b: '1' } },
      'node_modules/a': { engines: { node: '18 || 20 || 22' } },
      'node_modules/b': { engines: { node: '18' } },
      'apps/web/node_modules/b': { engines: { node: '>=18' } },
    };
    const files = { 'package.json': { workspaces: ['apps/*'] }, 'package-lock.json': JSON.stringify({ packages }) };
    const host = { ...facts, programs: { ...facts.programs, node: undefined } };
    const found = await detect({ ...files, ...web() }, { root_directory: 'apps/web' }, host);
    expect(found.summary).toMatch(/^Node\.js 22\.23\.3/);
  });

  test('nothing outside of the source is looked at, and a linked root directory is where it points', async () => {
    const outer = source({ 'package.json': { workspaces: ['**'] }, 'yarn.lock': '', ...web() });
    const inner = path.join(outer, 'apps');
    const look = (directory: string, root_directory: string) =>
      builder.detect(directory, { ...settings, root_directory }, facts, driverContext(30_000));
    expect(lines(await look(inner, 'web'))[0]).toMatch(/^npm install/);
    expect(lines(await look(path.join(inner, 'web'), '.'))[0]).toMatch(/^npm install/);
    mkdirSync(path.join(outer, 'a/b'), { recursive: true });
    symlinkSync('../../apps/web', path.join(outer, 'a/b/c'));
    expect(lines(await look(outer, 'a/b/c'))[0]).toMatch(/^cd -P \.\.\/\.\. && yarn install/);
  });

  test('what is wrong at the top is named with its way', async () => {
    expect(await buildError(plan({ 'package.json': '{', ...web() }))).toMatch(
      /^\.\.\/\.\.\/package\.json is not valid/,
    );
  });
});

test.each([
  ['apps/web', ['apps/*'], true],
  ['apps/web', ['./apps/web/'], true],
  ['apps/web/deep', ['apps/*'], false],
  ['apps/web/deep', ['apps/**'], true],
  ['apps/web', ['**'], true],
  ['apps/web', ['{apps,packages}/*'], true],
  ['apps/web', ['{apps,packages}/{api,w?b}'], true],
  ['apps/web', ['packages/*', '*/w*b'], true],
  ['apps/web', ['apps/.*'], false],
  ['apps/web', ['APPS/*'], false],
  ['apps/web.v2', ['apps/web.v2'], true],
  ['apps/webxv2', ['apps/web.v2'], false],
  ['a/b/c/d', ['a/**/d'], true],
  ['a/d', ['a/**/d'], true],
  ['apps/web', ['!apps/web', 'apps/*'], false],
  ['apps/web', ['{apps'], false],
  ['apps/web', [], false],
])('%s in %j: %s', (directory, patterns, answer) => expect(isNamed(directory, patterns)).toBe(answer));

test.each([
  ["packages:\n  - 'apps/*' # ours\n\n  - packages/*\ncatalog:\n  - x\n", ['apps/*', 'packages/*']],
  ['packages:\n- "apps/*"\n- tools\nother: 1\n', ['apps/*', 'tools']],
  ['# first\npackages: [\'{a,b}/*\', "c/*", d]\n', ['{a,b}/*', 'c/*', 'd']],
  ['packages: [\n  apps/*,\n  libs/*,\n]\nx: [y]\n', ['apps/*', 'libs/*']],
  ['catalog:\n  react: 19\n', []],
  ['', []],
])('the packages of %j', (text, patterns) => expect(pnpmPackages(text)).toEqual(patterns));

test('patterns that are made to take long do not', () => {
  const started = performance.now();
  const patterns = [
    `${'**/'.repeat(150)}x`,
    `${'*a'.repeat(200)}b`,
    '{a,b}'.repeat(60),
    ...Array.from({ length: 500 }, () => `${'**/*a*/'.repeat(60)}x`),
  ];
  expect(isNamed(Array.from({ length: 60 }, () => 'a'.repeat(60)).join('/'), patterns)).toBe(false);
  expect(isNamed('a'.repeat(250), patterns)).toBe(false);
  expect(pnpmPackages(`packages: [${'{,'.repeat(30_000)}]`)).toHaveLength(1);
  expect(performance.now() - started).toBeLessThan(10_000);
});

describe('what is built before the member', () => {
  const top = { workspaces: ['apps/*', 'packages/**'] };
  const member = (name: string, dependencies: object, scripts: object = { build: 'tsc' }) => ({
    name,
    dependencies,
    scripts,
  });
  const names = (found: BuildPlan): string[] => found.steps.map(({ name }) => name);

  test('members that it depends on, in their order, without strangers and those without a build script', async () => {
    const found = await plan({
      'package.json': top,
      ...web({ scripts: { build: 'next build', start: 'next start' } }),
      'packages/ui/package.json': member('ui', { tokens: '*', icons: '*', next: '1' }),
      'packages/deep/tokens/package.json': member('tokens', { icons: '*', ui: '*' }),
      'packages/icons/package.json': member('icons', {}, {}),
      'packages/other/package.json': member('other', {}),
    });
    expect(names(found)).toEqual([
      'npm install',
      'npm run build of packages/deep/tokens',
      'npm run build of packages/ui',
      'npm run build',
    ]);
    expect(lines(found)[1]).toBe("cd -P '../../packages/deep/tokens' && npm run build");
  });

  test('Turborepo does it where the top has it with a task for builds', async () => {
    const files = {
      'package.json': { ...top, devDependencies: { turbo: '2' } },
      ...web({ scripts: { build: 'next build', start: 'next start' } }),
      'packages/ui/package.json': member('ui', {}),
    };
    const tasks = (name: string) => ({ 'turbo.json': JSON.stringify({ tasks: { [name]: {} } }) });
    const found = await plan({ ...files, ...tasks('build') });
    expect(names(found)).toEqual(['npm install', 'turbo run build']);
    expect(lines(found)[1]).toMatch(/^cd -P \.\.\/\.\. && .* turbo run build '--filter=\.\/apps\/web'$/);
    expect(names(await plan({ ...files, ...tasks('lint') }))).toContain('npm run build of packages/ui');
    expect(names(await plan(files))).toContain('npm run build of packages/ui');
  });
});

test('a member runs with packages of the top and with members that were built before it', async () => {
  const files = {
    'package.json': { name: 'top', private: true, workspaces: ['apps/*', 'packages/*'] },
    'packages/greet/package.json': {
      name: 'greet',
      version: '1.0.0',
      main: 'built.js',
      bin: { greet: 'bin.js' },
      scripts: { build: `node -e "require('fs').copyFileSync('source.js', 'built.js')"` },
    },
    'packages/greet/source.js': `module.exports = () => 'Hello from a member';`,
    'packages/greet/bin.js': `#!/usr/bin/env node\n${server}\n`,
    'apps/web/package.json': {
      name: 'web',
      version: '1.0.0',
      dependencies: { greet: '*' },
      scripts: { start: 'greet' },
    },
  };
  const built = await workshop.build(workshop.source(files), { root_directory: 'apps/web' });
  expect(built.output).toContain('-----> npm run build of packages/greet');
  expect(built.code).toBe(0);
  const running = await workshop.start(built);
  expect(await (await fetch(running.url)).text()).toBe('Hello from a member');
  // By its name alone: programs of the top are found as those of the member are.
  const direct = { ...built, plan: { ...built.plan, processes: { web: 'greet' } } };
  expect(await (await fetch((await workshop.start(direct)).url)).text()).toBe('Hello from a member');
}, 120_000);
