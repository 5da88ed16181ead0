import { symlinkSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';

setUpPlans();
import {
  builder,
  buildError,
  commands,
  detect,
  facts,
  settings,
  source,
  withPackages,
  without,
  setUpPlans,
} from '../../support/deployments/plans';

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
    ]);
    expect((await detect({ Procfile: 'web: ./run' })).steps).toEqual([]);
    expect(
      (
        await detect({ Procfile: 'web: ./run', 'package.json': { scripts: { build: 'x' } }, 'index.html': '' })
      ).steps.map(({ name }) => name),
    ).toEqual(['npm run build']);
  });

  test.each([
    ['web node x', /^Line 1 of the Procfile is not of the form .*: "web node x"\.$/],
    ['web: a\n\nweb: b', /^Line 3 of the Procfile defines the process type web a second time\.$/],
    ['Web: a', /^Line 1 .* lower-case/],
    ['web:', /^Line 1 .* no command/],
    ['\n# only\n', /is empty/],
    ['web: a\u0007b', /control characters/],
    [`web: ${'x'.repeat(2001)}`, /longer than 2000/],
  ])('%j is refused', async (text, words) => expect(await buildError(detect({ Procfile: text }))).toMatch(words));
});

describe('others', () => {
  test('sites of files', async () => {
    expect(await detect({ 'index.html': '' })).toMatchObject({
      kind: 'static',
      summary: 'Static site',
      processes: { web: 'node .platform/static_server.cjs .' },
    });
    expect(await detect({ 'public/index.html': '' })).toMatchObject({
      processes: { web: 'node .platform/static_server.cjs public' },
    });
    expect(await detect({ 'index.html': '', 'go.mod': 'module x' }, {}, without('go'))).toMatchObject({
      kind: 'static',
    });
  });

  test('Python', async () => {
    const web = async (files: Record<string, string>) => (await detect(files)).processes.web;
    expect(await detect({ 'app.py': '' })).toMatchObject({
      kind: 'python',
      steps: [{ name: 'Python environment' }],
      processes: { web: 'python3 app.py' },
    });
    expect(commands(await detect({ 'requirements.txt': '# nothing\n', 'main.py': '' }))).toHaveLength(1);
    expect(
      await web({
        'requirements.txt': 'gunicorn\nflask\n',
        'app.py': 'from flask import Flask\napp = Flask(__name__)\n',
      }),
    ).toBe('gunicorn --bind ${SVC_LISTEN_ADDRESS:-127.0.0.1}:$PORT app:app');
    expect(await web({ 'requirements.txt': 'gunicorn>=20', 'manage.py': '', 'shop/wsgi.py': '' })).toBe(
      'gunicorn --bind ${SVC_LISTEN_ADDRESS:-127.0.0.1}:$PORT shop.wsgi',
    );
    expect(await web({ 'requirements.txt': 'flask', 'main.py': '' })).toBe('python3 main.py');
    expect(await buildError(detect({ 'app.py': '' }, {}, without('python3')))).toMatch(/needs Python/);
  });

  test('Python of the version that the source asks for, as far as the host has it', async () => {
    const found = (version: string) => ({ version, path: `/usr/bin/python${version}` });
    const host = { ...facts, pythons: { '3.11': found('3.11.2'), '3.12': found('3.12.7') } };
    const plan = (files: Record<string, string>) => detect({ 'app.py': '', ...files }, {}, host);
    expect(await plan({ '.python-version': '3.11\n' })).toMatchObject({ summary: 'Python 3.11.2' });
    expect(await plan({ '.python-version': '3' })).toMatchObject({ summary: 'Python 3.11.2' });
    const newer = await plan({ 'runtime.txt': 'python-3.12.1', 'requirements.txt': 'flask' });
    expect(newer.summary).toBe('Python 3.12.7, pip install of requirements.txt');
    expect(commands(newer)[0]).toBe('python3.12 -m venv .platform/venv');
    // Without packages too: what starts is called python3.
    expect(commands(await plan({ '.python-version': '# ours\n3.12' }))).toEqual([
      'python3.12 -m venv --without-pip .platform/venv',
    ]);
    expect(await buildError(plan({ '.python-version': '3.9.1' }))).toBe(
      '.python-version asks for Python 3.9.1, and this platform has 3.11, 3.12. Ask for one of these, or ask the ' +
        'operator to install python3.9 with its venv module.',
    );
    expect(await buildError(plan({ 'runtime.txt': 'pypy' }))).toMatch(/^runtime\.txt names no version of Python/);
  });

  test('Python packages by the lock file of uv or poetry, where the host has them', async () => {
    const host = { ...facts, programs: { ...facts.programs, uv: { version: '0.5.1', path: '/usr/bin/uv' } } };
    const files = { 'pyproject.toml': '', 'main.py': '', 'uv.lock': '' };
    const plan = await detect(files, {}, host);
    expect(plan.summary).toBe('Python 3.11.2, uv install of uv.lock');
    expect(commands(plan)[1]).toMatch(/uv sync --frozen --no-dev .* \|\| /);
    expect(await buildError(detect({ 'pyproject.toml': '', 'poetry.lock': '' }, {}, host))).toBe(
      'The source has a poetry.lock, and poetry is not installed on this platform. Ask the operator to install ' +
        'poetry, or commit a requirements.txt.',
    );
    expect(commands(await detect({ ...files, 'requirements.txt': 'flask' }))[1]).toMatch(/pip install -r/);
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
    expect(plan.steps.map(({ name }) => name)).toEqual(['Build command']);
    expect(await detect({ Procfile: 'web: ./x\nrelease: y' }, { build_command })).toMatchObject({
      kind: 'custom',
      processes: { web: './x' },
      release_command: 'y',
      steps: [{ command: build_command }],
    });
    const site = await detect({ 'config.toml': '' }, { build_command });
    expect(site.steps.map(({ name }) => name)).toEqual(['Build command', 'Web server for files']);
    expect(site.processes.web).toMatch(/static_server\.cjs dist build out public _site$/);
  });

  test('a Dockerfile, honestly', async () => {
    const without = { ...facts, oci_builders: [] };
    expect(await buildError(detect({ Dockerfile: '' }, {}, without))).toMatch(/needs buildah and bubblewrap/);
    const program = { version: '1', path: '/usr/bin/bwrap' };
    const host = { ...facts, programs: { ...facts.programs, bubblewrap: program }, oci_builders: ['buildah' as const] };
    const plan = await detect({ Dockerfile: 'FROM scratch\narg COLOUR=red\nARG SIZE\n' }, {}, host);
    expect(plan).toMatchObject({ kind: 'dockerfile', summary: 'Dockerfile Dockerfile', processes: {} });
    expect(plan.steps[0]?.command).toMatch(/--build-arg COLOUR[^]*--build-arg SIZE/);
    expect(await buildError(detect({ 'index.html': '' }, { builder: 'dockerfile' }))).toMatch(/no Dockerfile/);
    expect(await detect({ Dockerfile: 'FROM scratch', 'index.html': '' }, {}, host)).toMatchObject({
      kind: 'dockerfile',
    });
    expect(await buildError(detect({ Dockerfile: '', 'index.html': '' }))).toMatch(/needs buildah and bubblewrap/);
  });

  test('nothing that fits', async () => {
    expect(await buildError(detect({ 'README.md': '' }))).toMatch(/found nothing to build or start in the source/);
    expect(await buildError(detect({ 'README.md': '' }, { root_directory: 'shop' }))).toMatch(/no directory shop/);
    expect(await detect({ 'shop/index.html': '' }, { root_directory: 'shop' })).toMatchObject({ kind: 'static' });
    expect(await buildError(detect({ 'index.html/x': '' }))).toMatch(/found nothing/);
  });

  test('no link leads out of the source', async () => {
    const outside = source({ 'package.json': 'secret {', 'index.html': '' });
    const inside = source({ 'README.md': '' });
    symlinkSync(outside, path.join(inside, 'out'));
    symlinkSync(path.join(outside, 'package.json'), path.join(inside, 'package.json'));
    symlinkSync('/etc/passwd', path.join(inside, 'Procfile'));
    symlinkSync('loop', path.join(inside, 'loop'));
    const detectBelow = (root_directory: string) =>
      builder.detect(inside, { ...settings, root_directory }, facts, driverContext(5_000));
    for (const root of ['out', '..', '../..', 'loop', 'README.md'])
      expect(await buildError(detectBelow(root))).toMatch(/no directory/);
    expect(await buildError(detectBelow('.'))).toMatch(/found nothing/);
    expect(await buildError(detect({ 'package.json': ' '.repeat((1 << 20) + 1) }))).toMatch(/larger than 1 MB/);
  });
});
