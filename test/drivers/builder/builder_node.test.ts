/** @user any */
import { satisfies } from '../../../drivers/toolchain/versions';
import { buildError, commands, detect, withPackages, setUpPlans } from '../../support/deployments/plans';

setUpPlans();

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
      processes: { web: content.startsWith('__metadata') ? 'yarn run start' : 'node x.js' },
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
        await detect({ 'package.json': { packageManager: 'yarn@1.22.22', main: 'a.js', ...withPackages }, 'a.js': '' }),
      )[0],
    ).toMatch(/^yarn install(?!.*frozen)/);
  });

  test('build script, and what starts it', async () => {
    const plan = await detect({
      'package.json': { scripts: { build: 'tsc', start: 'next start' }, ...withPackages },
      'package-lock.json': '{}',
    });
    expect(plan.summary).toBe('Node.js 20.20.2, npm ci, build script');
    expect(plan.steps.map(({ name }) => name)).toEqual(['npm ci', 'npm run build']);
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
    ]);
    expect(plan.processes.web).toBe('node .platform/static_server.cjs dist build out public _site');
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

  test.each([
    ['0.9.1', '^0', true],
    ['1.0.0', '^0', false],
    ['0.0.9', '^0.0', true],
    ['0.1.0', '^0.0', false],
    ['0.9.1', '^0.x', true],
    ['0.1.0', '^0.x', true],
    ['0.2.0', '^0.1', false],
    ['23.0.0-nightly20260101', '>=23', true],
    ['20', '20.x', true],
    ['nightly', '*', null],
  ])('%s in the range %j: %s', (version, range, answer) => expect(satisfies(version, range)).toBe(answer));

  test('a range that is longer than anybody writes cannot be read', () => {
    expect(satisfies('20.20.2', `${' '.repeat(1000)}20`)).toBe(null);
  });

  test('nonsense is named', async () => {
    expect(await buildError(detect({ 'package.json': '{\n  "name": "x",\n  oops\n}' }))).toMatch(
      /package\.json is not valid JSON: see line 3/,
    );
    expect(await buildError(detect({ 'package.json': '{' }))).toMatch(/not valid JSON/);
    expect(await buildError(detect({ 'package.json': '[]' }))).toMatch(/must be a JSON object/);
    expect(await buildError(detect({ 'package.json': { scripts: 'x' } }))).toMatch(/scripts must be an object/);
    expect(await buildError(detect({ 'package.json': { scripts: { build: 3 } } }))).toMatch(
      /the script "build" must be a string/,
    );
  });
});
