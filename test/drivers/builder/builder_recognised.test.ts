/** @user any */
// What is said of sources that the platform does not start or build: what was recognised, and the line that is missing.
import type { HostFacts } from '../../../core/catalog/host_facts';
import { buildError, detect, facts, longTermBuilder, setUpPlans } from '../../support/deployments/plans';

setUpPlans();

type Files = Record<string, string | object>;
const missing = async (files: Files): Promise<string | undefined> => {
  const { missing: found, processes } = await detect(files);
  expect(processes.web).toBeUndefined();
  return found;
};
const refused = (files: Files, changed = {}, host = facts): Promise<string> => buildError(detect(files, changed, host));
const nodeServer = "import http from 'node:http';\nhttp.createServer((q, s) => s.end()).listen(process.env.PORT);\n";
const withBuildah: HostFacts = {
  ...facts,
  programs: { ...facts.programs, bubblewrap: { version: '1', path: '/usr/bin/bwrap' } },
  oci_builders: ['buildah'],
};

describe('Node.js', () => {
  test.each<[string, Files, string]>([
    ['of src/', { 'src/server.js': nodeServer }, 'node src/server.js'],
    ['of src/ with another usual name', { 'src/index.mjs': nodeServer }, 'node src/index.mjs'],
    ['of server/', { 'server/index.js': nodeServer }, 'node server/index.js'],
    ['of TypeScript', { 'src/index.ts': nodeServer }, 'node src/index.ts'],
    ['of TypeScript at the top', { 'main.mts': nodeServer }, 'node main.mts'],
  ])('a server %s starts without a start script', async (_, files, web) => {
    const plan = await detect({ 'package.json': {}, ...files });
    expect(plan.processes.web).toBe(web);
    expect(plan.summary).toMatch(web.endsWith('ts') ? /Node\.js 24\./ : /Node\.js 20\./);
  });

  test('TypeScript runs with a Node.js that can, within what the source asks for', async () => {
    const files = { 'src/index.ts': nodeServer };
    expect((await detect(files)).processes.web).toBe('node src/index.ts');
    const asked = (node: string) => ({ ...files, 'package.json': { engines: { node } } });
    expect((await detect(asked('>=20'), {}, facts, longTermBuilder)).summary).toMatch(/Node\.js 24\./);
    expect((await detect(asked('22.x'))).summary).toMatch(/Node\.js 22\.23/);
    expect(await refused(asked('20.x'))).toMatch(
      /src\/index\.ts is TypeScript.*from 22\.18 on, and engines\.node.*20\.x/,
    );
  });

  const express = { 'package.json': { dependencies: { express: '5' } } };
  test.each<[string, Files, RegExp]>([
    [
      'that has to be compiled',
      { ...express, 'src/index.ts': `enum A { b }\n${nodeServer}` },
      /with Express.*tsx src\/index\.ts/,
    ],
    [
      'with imports of a bundler',
      { ...express, 'src/app.ts': `import './routes';\n${nodeServer}` },
      /tsx src\/app\.ts/,
    ],
    [
      'with imports of types',
      {
        ...express,
        'src/app.ts':
          "import express, { Request, Response } from 'express';\n" +
          "express().get('/', (q: Request, s: Response) => s.end()).listen(process.env.PORT);\n",
      },
      /tsx src\/app\.ts/,
    ],
    [
      'that opens no port',
      { 'package.json': { dependencies: { hono: '4' } }, 'src/index.ts': 'export default new Hono()' },
      /with Hono.*src\/index\.ts opens no port.*@hono\/node-server.*"start": "node src\/index\.ts"/,
    ],
    ['without a usual file', express, /with Express \(package\.json\) without a start script.*"start": "node <file>"/],
    [
      'of a site without a build script',
      { 'package.json': { devDependencies: { astro: '5' } } },
      /"build": "astro build"/,
    ],
    [
      'of nothing that is known',
      { 'package.json': {} },
      /is a Node\.js project \(package\.json\) without a start script/,
    ],
    [
      'that is compiled by its build script',
      {
        'package.json': { dependencies: { express: '5' }, scripts: { build: 'tsc' } },
        'src/server.ts': nodeServer,
      },
      /with Express.*"start": "node dist\/server\.js"/,
    ],
    [
      'with applications in folders',
      { 'package.json': {}, 'backend/go.mod': '', 'frontend/package.json': {} },
      /applications in folders: backend, frontend/,
    ],
  ])('a source %s is told what to add', async (_, files, words) => {
    expect(await missing(files)).toMatch(words);
  });

  test('the top of a workspace asks to choose a member, at once where its build leaves nothing there', async () => {
    const members = { 'apps/api/package.json': { name: 'api' }, 'apps/web/package.json': { name: 'web' } };
    const words = /Choose a member: set build\.root_directory to one of apps\/api, apps\/web\./;
    expect(await missing({ ...members, 'package.json': { workspaces: ['apps/*'] } })).toMatch(words);
    const scripts = { build: 'turbo run build' };
    expect(await missing({ ...members, 'package.json': { workspaces: ['apps/*'], scripts } })).toMatch(words);
    const pnpm = { ...members, 'package.json': { scripts }, 'pnpm-workspace.yaml': 'packages:\n  - "apps/*"\n' };
    expect(await missing(pnpm)).toMatch(words);
    const own = { ...members, 'package.json': { workspaces: ['apps/*'], scripts: { build: 'vite build' } } };
    expect(await detect(own)).toMatchObject({ kind: 'static' });
  });

  test('a program of Bun or Deno is not started by Node.js', async () => {
    const deno = { 'main.ts': 'Deno.serve(() => new Response("x"));\n' };
    expect(await refused(deno)).toMatch(/main\.ts \(TypeScript\)/);
    expect(await missing({ 'package.json': {}, 'index.ts': 'Bun.serve({ fetch() {} });\n' })).toMatch(/start/);
  });
});

test.each<[Record<string, string>, RegExp]>([
  [{ 'requirements.txt': 'flask' }, /Python project with Flask without a server.*`web: gunicorn <module>:app`/],
  [{ 'requirements.txt': 'Django' }, /with Django.*a manage\.py with a wsgi\.py.*`web: gunicorn <project>\.wsgi`/],
  [{ 'requirements.txt': 'discord.py' }, /Python project without a server.*`web: python3 <file>\.py`/],
  [{ 'requirements.txt': 'mkdocs-material\nmkdocs', 'mkdocs.yml': '' }, /a site of MkDocs \(mkdocs\.yml\)/],
])('Python: %j', async (files, words) => {
  expect(await missing(files)).toMatch(words);
});

test('a Procfile without web names the process types that it has', async () => {
  expect(await missing({ Procfile: 'worker: node x\nclock: node y\n' })).toMatch(
    /process types worker, clock, and no web/,
  );
});

test.each<[string, Record<string, string>, string]>([
  ['Hugo', { 'hugo.toml': '' }, 'hugo'],
  ['Hugo', { 'config.toml': 'baseURL = "https://example.com"\n', 'themes/x': '' }, 'hugo'],
  ['Zola', { 'config.toml': 'base_url = "https://example.com"\ncompile_sass = true\n' }, 'zola build'],
  ['Jekyll', { '_config.yml': '', Gemfile: '' }, 'jekyll build'],
  ['MkDocs', { 'mkdocs.yml': '' }, 'mkdocs build'],
  ['Sphinx', { 'conf.py': "project = 'x'\nextensions = []\n" }, 'sphinx-build docs public'],
  ['Sphinx', { 'docs/conf.py': 'extensions = []\n' }, 'sphinx-build docs public'],
  ['Eleventy', { '.eleventy.js': '' }, 'npx @11ty/eleventy'],
  ['Pelican', { 'pelicanconf.py': '' }, 'pelican content'],
  ['mdBook', { 'book.toml': '' }, 'mdbook build'],
  ['Middleman', { 'config.rb': 'activate :blog\n', Gemfile: '' }, 'middleman build'],
])('a site of %s is named, with %j', async (title, files, command) => {
  const words = await refused(files);
  expect(words).toContain(`The source is a site of ${title} (`);
  expect(words).toContain(`Run \`${command}\` elsewhere`);
  expect(words).not.toContain('Dockerfile');
  expect(await refused(files, {}, withBuildah)).toContain('or add a Dockerfile');
});

describe('languages that are not built', () => {
  test.each<[string, Files, string]>([
    ['Scala', { 'build.sbt': '' }, 'target/universal/stage/bin/shop -Dhttp.port=${PORT}'],
    ['Clojure', { 'project.clj': '' }, 'java -jar target/shop.jar'],
    ['.NET', { 'Shop.slnx': '' }, 'cd Shop/bin/publish/; ./Shop --urls http://*:$PORT'],
    ['Elixir', { 'mix.exs': '' }, 'mix phx.server'],
    ['C++', { 'CMakeLists.txt': '' }, 'build/server'],
  ])('%s with a Procfile is named', async (language, files, command) => {
    const source = { ...files, Procfile: `web: ${command}\n` };
    const words = await refused(source);
    expect(words).toContain(`(${language}), and this platform does not build ${language} by itself`);
    expect(words).toMatch(/Add a Dockerfile.*set build\.builder to `dockerfile`.*install buildah/);
    expect(await refused({ ...source, Dockerfile: 'FROM scratch' }, {}, withBuildah)).toMatch(/Set build\.builder to/);
    expect((await detect(source, { build_command: 'make' })).processes.web).toBe(command);
  });

  test('a Procfile of a language of the host without a program of it is refused', async () => {
    const source = { 'Cargo.toml': '', Procfile: 'web: ./target/release/shop\n' };
    expect(await refused(source)).toMatch(/Cargo\.toml \(Rust\), and no program in it, so what the Procfile starts/);
  });

  test('what the source has finished runs, and programs of languages that are built', async () => {
    const runs = async (files: Files, command: string): Promise<void> =>
      expect((await detect({ ...files, Procfile: `web: ${command}\n` })).processes.web).toBe(command);
    await runs({ 'pom.xml': '', 'shop.jar': '' }, 'java -jar shop.jar');
    await runs({ Gemfile: '', 'package.json': {}, 'server.js': '' }, 'node server.js');
    await runs({ Gemfile: '', 'server.js': '' }, 'node server.js');
    await runs({ Gemfile: '', 'go.mod': 'module x', 'main.go': 'package main' }, 'bin/x');
    await runs({ 'CMakeLists.txt': '', 'bin/server': '' }, 'bin/server');
  });

  test.each<[string, Files]>([
    ['.NET', { 'Shop.csproj': '', 'Program.cs': '' }],
    ['Elixir', { 'mix.exs': '' }],
  ])('an application of %s is named before the build script of its package.json runs', async (language, files) => {
    const source = { 'package.json': { scripts: { build: 'vite build' } }, ...files };
    expect(await refused(source)).toContain(`this platform does not build ${language} by itself`);
    expect(await detect(source, { output_directory: 'dist' })).toMatchObject({ kind: 'static' });
  });
});

test('folders that are applications of their own are named', async () => {
  const words = await refused({ 'backend/requirements.txt': '', 'frontend/package.json': {}, 'docs/x.md': '' });
  expect(words).toBe(
    'The source has applications in folders: backend, frontend. Set build.root_directory to one of them, and make an ' +
      'application for each that should run.',
  );
  expect(await refused({ 'services/a/go.mod': '', 'services/b/Pipfile': '' })).toMatch(/services\/a, services\/b/);
  expect(await refused({ 'README.md': '' })).toMatch(/found nothing to build or start in the source\. Add a Procfile/);
});
