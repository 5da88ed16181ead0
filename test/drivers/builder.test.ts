import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { HostFacts } from '../../core/host_facts';
import { BuildError, type BuildPlan, type BuildSettings } from '../../drivers/builder';
import { openBuilder } from '../../drivers/builder/native';
import { satisfies } from '../../drivers/builder/node_range';
import { driverContext } from '../../drivers/driver';

const builder = openBuilder();
const folder = mkdtempSync(path.join(os.tmpdir(), 'builder-'));
const program = (version: string) => ({ version, path: '/usr/bin/program' });
const facts = {
  programs: {
    node: program('20.20.2'),
    npm: program('11.0.0'),
    yarn: program('1.22.0'),
    pnpm: program('9.0.0'),
    python3: program('3.11.2'),
    go: program('1.22.1'),
  },
  oci_builders: [] as string[],
} as unknown as HostFacts;
const settings: BuildSettings = {
  builder: 'buildpack',
  root_directory: '.',
  dockerfile_path: 'Dockerfile',
  build_command: null,
};
let made = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function source(files: Record<string, string | object>): string {
  const directory = path.join(folder, `source-${(made += 1)}`);
  mkdirSync(directory);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  }
  return directory;
}

function detect(
  files: Record<string, string | object>,
  changed: Partial<BuildSettings> = {},
  host = facts,
): Promise<BuildPlan> {
  return builder.detect(source(files), { ...settings, ...changed }, host, driverContext(5_000));
}

function without(name: keyof HostFacts['programs']): HostFacts {
  return { ...facts, programs: { ...facts.programs, [name]: undefined } };
}

async function complaint(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof BuildError)) throw new Error(`no BuildError but ${String(error)}`);
  expect(error.message).not.toContain(folder);
  return error.message;
}

const commands = (plan: BuildPlan) => plan.steps.map(({ command }) => command.split('\n')[0]!);
const withPackages = { dependencies: { a: '1' } };

describe('Node.js', () => {
  test.each([
    ['package-lock.json', '{}', 'npm ci --include=dev --prefer-offline --no-audit --no-fund'],
    ['npm-shrinkwrap.json', '{}', 'npm ci --include=dev --prefer-offline --no-audit --no-fund'],
    ['yarn.lock', '# yarn lockfile v1\n', 'yarn install --production=false --non-interactive --frozen-lockfile'],
    ['yarn.lock', '__metadata:\n  version: 8\n', 'yarn install --immutable'],
    ['pnpm-lock.yaml', 'lockfileVersion: 9\n', 'pnpm install --prod=false --frozen-lockfile'],
  ])('%s decides who installs', async (file, content, command) => {
    const plan = await detect({
      'package.json': { scripts: { start: 'node x.js' }, ...withPackages },
      [file]: content,
    });
    expect(plan).toMatchObject({
      kind: 'node',
      processes: { web: 'node x.js' },
      env: { NODE_ENV: 'production' },
      release_command: null,
    });
    expect(commands(plan)[0]).toBe(command);
  });

  test('without a lock file; packageManager decides between several', async () => {
    expect(
      commands(await detect({ 'package.json': { scripts: { start: 'next start' }, ...withPackages } }))[0],
    ).toMatch(/^npm install /);
    const both = { 'package-lock.json': '{}', 'pnpm-lock.yaml': '' };
    expect(
      commands(
        await detect({
          'package.json': { packageManager: 'pnpm@9.1.0', main: 'a.js', ...withPackages },
          'a.js': '',
          ...both,
        }),
      )[0],
    ).toMatch(/^pnpm install .*--frozen/);
    expect(
      commands(await detect({ 'package.json': { main: 'a.js', ...withPackages }, 'a.js': '', ...both }))[0],
    ).toMatch(/^npm ci/);
    expect(
      commands(
        await detect({ 'package.json': { packageManager: 'yarn@1.22.0', main: 'a.js', ...withPackages }, 'a.js': '' }),
      )[0],
    ).toMatch(/^yarn install(?!.*frozen)/);
  });

  test('build script, and what starts it', async () => {
    const plan = await detect({
      'package.json': { scripts: { build: 'tsc', start: 'next start' }, ...withPackages },
      'package-lock.json': '{}',
    });
    expect(plan.summary).toBe('Node.js 20.20.2, npm ci, build script');
    expect(plan.steps.map(({ name }) => name)).toEqual(['npm ci', 'npm run build', 'Profile']);
    expect(plan.processes).toEqual({ web: 'npm start' });
    const start = async (files: Record<string, string | object>) => (await detect(files)).processes.web;
    expect(await start({ 'package.json': { scripts: { start: 'node src/server.js --port=1' } } })).toBe(
      'node src/server.js --port=1',
    );
    expect(await start({ 'package.json': { scripts: { start: 'node x.js', prestart: 'x' } } })).toBe('npm start');
    expect(await start({ 'package.json': { scripts: { start: 'node x.js $(id)' } } })).toBe('npm start');
    expect(await start({ 'package.json': { main: 'lib/app.js' }, 'lib/app.js': '', 'server.js': '' })).toBe(
      'node lib/app.js',
    );
    expect(await start({ 'package.json': { main: 'gone.js' }, 'server.js': '', 'index.js': '' })).toBe(
      'node server.js',
    );
    expect(await start({ 'package.json': {}, 'index.js': '' })).toBe('node index.js');
    expect(await start({ 'package.json': { main: 'x; rm -rf ~' }, 'x; rm -rf ~': '', 'index.js': '' })).toBe(
      'node index.js',
    );
    expect((await detect({ 'package.json': {}, 'index.js': '' })).steps).toEqual([]);
  });

  test('a build script without anything to start makes a site', async () => {
    const plan = await detect({
      'package.json': { scripts: { build: 'vite build' }, devDependencies: { vite: '6' } },
      'index.html': '',
    });
    expect(plan.kind).toBe('static');
    expect(plan.steps.map(({ name }) => name)).toEqual([
      'npm install',
      'npm run build',
      'Static site',
      'Web server for files',
      'Profile',
    ]);
    expect(plan.processes.web).toBe('node .platform/static_server.js dist build out public _site .');
  });

  test('engines.node', async () => {
    const wanting = (node: string) => detect({ 'package.json': { engines: { node }, main: 'a.js' }, 'a.js': '' });
    await expect(wanting('>=18')).resolves.toMatchObject({ kind: 'node' });
    await expect(wanting('some words')).resolves.toMatchObject({ kind: 'node' });
    expect(await complaint(wanting('18.x'))).toMatch(/asks for Node\.js 18\.x .* this platform has 20\.20\.2/);
  });

  test.each([
    ['20.x', true],
    ['20', true],
    ['>=20.19', true],
    ['>=20.19 <21', true],
    ['^20.5.1', true],
    ['~20.20', true],
    ['~20.19', false],
    ['18 || 20', true],
    ['*', true],
    ['', true],
    ['>= 18', true],
    ['18 - 20', true],
    ['x', true],
    ['^18', false],
    ['<20', false],
    ['>20', false],
    ['>20.20.1', true],
    ['<=20', true],
    ['=20.20.2', true],
    ['v20.20.2', true],
    ['20.20.3', false],
    ['16 - 18', false],
    ['lts/*', null],
    ['lts/* || 20', true],
    ['^0.10', false],
  ])('20.20.2 in the range %j: %s', (range, answer) => expect(satisfies('20.20.2', range)).toBe(answer));

  test('nonsense is named', async () => {
    expect(await complaint(detect({ 'package.json': '{\n  "name": "x",\n  oops\n}' }))).toMatch(
      /package\.json is not valid JSON: something is wrong in line 3/,
    );
    expect(await complaint(detect({ 'package.json': '{' }))).toMatch(/not valid JSON/);
    expect(await complaint(detect({ 'package.json': '[]' }))).toMatch(/must be a JSON object/);
    expect(await complaint(detect({ 'package.json': { scripts: 'x' } }))).toMatch(/scripts must be an object/);
    expect(await complaint(detect({ 'package.json': { scripts: { build: 3 } } }))).toMatch(
      /the script "build" must be a text/,
    );
    expect(
      await complaint(
        detect(
          { 'package.json': { scripts: { start: 'x' }, ...withPackages }, 'pnpm-lock.yaml': '' },
          {},
          without('pnpm'),
        ),
      ),
    ).toMatch(/needs pnpm \(pnpm-lock\.yaml\).*Use npm/);
  });
});

describe('Procfile', () => {
  test('says what runs; the languages of the source are built', async () => {
    const plan = await detect({
      Procfile: '# comment\r\nweb: gunicorn app:app\r\n\r\nworker : node worker.js  \nrelease: ./migrate\n',
      'package.json': { scripts: { build: 'x' }, ...withPackages },
      'requirements.txt': 'gunicorn==23\n',
    });
    expect(plan).toMatchObject({
      kind: 'procfile',
      processes: { web: 'gunicorn app:app', worker: 'node worker.js' },
      release_command: './migrate',
      env: { NODE_ENV: 'production', PYTHONUNBUFFERED: '1' },
    });
    expect(plan.steps.map(({ name }) => name)).toEqual([
      'npm install',
      'npm run build',
      'Python environment',
      'pip install',
      'Profile',
    ]);
    expect((await detect({ Procfile: 'web: ./run' })).steps).toEqual([]);
    expect(
      (
        await detect({ Procfile: 'web: ./run', 'package.json': { scripts: { build: 'x' } }, 'index.html': '' })
      ).steps.map(({ name }) => name),
    ).toEqual(['npm run build']);
  });

  test.each([
    ['web node x', /line 1: "web node x" is not of the form/],
    ['web: a\n\nweb: b', /line 3: .* twice/],
    ['Web: a', /line 1: .* lower-case/],
    ['web:', /line 1: .* no command/],
    ['\n# only\n', /is empty/],
    ['web: a\u0007b', /control characters/],
    [`web: ${'x'.repeat(2001)}`, /longer than 2000/],
  ])('%j is refused', async (text, words) => expect(await complaint(detect({ Procfile: text }))).toMatch(words));
});

describe('others', () => {
  test('sites of files', async () => {
    expect(await detect({ 'index.html': '' })).toMatchObject({
      kind: 'static',
      summary: 'Static site',
      processes: { web: 'node .platform/static_server.js .' },
    });
    expect(await detect({ 'public/index.html': '' })).toMatchObject({
      processes: { web: 'node .platform/static_server.js public' },
    });
    expect(await detect({ 'index.html': '', 'go.mod': 'module x' }, {}, without('go'))).toMatchObject({
      kind: 'static',
    });
  });

  test('Python', async () => {
    const web = async (files: Record<string, string>) => (await detect(files)).processes.web;
    expect(await detect({ 'app.py': '' })).toMatchObject({
      kind: 'python',
      steps: [],
      processes: { web: 'python3 app.py' },
    });
    expect((await detect({ 'requirements.txt': '# nothing\n', 'main.py': '' })).steps).toEqual([]);
    expect(
      await web({
        'requirements.txt': 'gunicorn\nflask\n',
        'app.py': 'from flask import Flask\napp = Flask(__name__)\n',
      }),
    ).toBe('gunicorn --bind 127.0.0.1:$PORT app:app');
    expect(await web({ 'requirements.txt': 'gunicorn>=20', 'manage.py': '', 'shop/wsgi.py': '' })).toBe(
      'gunicorn --bind 127.0.0.1:$PORT shop.wsgi',
    );
    expect(await web({ 'requirements.txt': 'flask', 'main.py': '' })).toBe('python3 main.py');
    expect(commands(await detect({ 'pyproject.toml': '', 'main.py': '' }))[1]).toMatch(/pip install \. &&/);
    expect(await complaint(detect({ 'app.py': '' }, {}, without('python3')))).toMatch(/needs Python/);
  });

  test('a package.json for tools beside another language', async () => {
    const plan = await detect({ 'package.json': { scripts: { css: 'x' }, ...withPackages }, 'app.py': '' });
    expect(plan).toMatchObject({ kind: 'python', processes: { web: 'python3 app.py' } });
    expect(commands(plan)[0]).toMatch(/^npm install/);
  });

  test('Go', async () => {
    expect(await detect({ 'go.mod': 'module example.com/shop/v2\n', 'main.go': '// x\npackage main\n' })).toMatchObject(
      { kind: 'go', processes: { web: 'bin/shop' } },
    );
    expect(await detect({ 'go.mod': 'module example.com/shop\n', 'cmd/front/main.go': 'package main' })).toMatchObject({
      processes: { web: 'bin/front' },
    });
    expect(await complaint(detect({ 'go.mod': 'module x' }, {}, without('go')))).toMatch(/needs Go/);
  });

  test('a command of the user is in the place of all others; what starts is found as ever', async () => {
    const build_command = 'make site';
    const plan = await detect(
      { 'package.json': { scripts: { build: 'x', start: 'node a.js' }, ...withPackages } },
      { build_command },
    );
    expect(plan).toMatchObject({
      kind: 'custom',
      summary: 'Node.js 20.20.2, build command',
      processes: { web: 'node a.js' },
    });
    expect(commands(plan).slice(0, 1)).toEqual(['make site']);
    expect(plan.steps.map(({ name }) => name)).toEqual(['Build command', 'Profile']);
    expect(await detect({ Procfile: 'web: ./x\nrelease: y' }, { build_command })).toMatchObject({
      kind: 'custom',
      processes: { web: './x' },
      release_command: 'y',
      steps: [{ command: build_command }],
    });
    const site = await detect({ 'config.toml': '' }, { build_command });
    expect(site.steps.map(({ name }) => name)).toEqual(['Build command', 'Web server for files']);
    expect(site.processes.web).toMatch(/static_server\.js dist build out public _site \.$/);
  });

  test('a Dockerfile, honestly', async () => {
    expect(await complaint(detect({ Dockerfile: '' }))).toMatch(
      /needs podman, buildah or docker, which this platform does not have/,
    );
    expect(await complaint(detect({ Dockerfile: '' }, {}, { ...facts, oci_builders: ['podman'] }))).toMatch(
      /has podman, but it cannot run images yet/,
    );
    expect(await complaint(detect({ 'index.html': '' }, { builder: 'dockerfile' }))).toMatch(/no Dockerfile/);
    expect(await detect({ Dockerfile: '', 'index.html': '' })).toMatchObject({ kind: 'static' });
  });

  test('nothing that fits', async () => {
    expect(await complaint(detect({ 'README.md': '' }))).toMatch(/Nothing in the source says how/);
    expect(await complaint(detect({ 'README.md': '' }, { root_directory: 'shop' }))).toMatch(/no directory shop/);
    expect(await detect({ 'shop/index.html': '' }, { root_directory: 'shop' })).toMatchObject({ kind: 'static' });
    expect(await complaint(detect({ 'index.html/x': '' }))).toMatch(/Nothing/);
  });

  test('no link leads out of the source', async () => {
    const outside = source({ 'package.json': 'secret {', 'index.html': '' });
    const inside = source({ 'README.md': '' });
    symlinkSync(outside, path.join(inside, 'out'));
    symlinkSync(path.join(outside, 'package.json'), path.join(inside, 'package.json'));
    symlinkSync('/etc/passwd', path.join(inside, 'Procfile'));
    symlinkSync('loop', path.join(inside, 'loop'));
    const look = (root_directory: string) =>
      builder.detect(inside, { ...settings, root_directory }, facts, driverContext(5_000));
    for (const root of ['out', '..', '../..', 'loop', 'README.md'])
      expect(await complaint(look(root))).toMatch(/no directory/);
    expect(await complaint(look('.'))).toMatch(/Nothing/);
    expect(await complaint(detect({ 'package.json': ' '.repeat((1 << 20) + 1) }))).toMatch(/larger than 1 MB/);
  });
});
