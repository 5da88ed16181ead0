/** @user any */
// What a source with an index.html is taken for: a program first, a site last, and never the source of a program.
import type { HostFacts } from '../../../core/catalog/host_facts';
import { buildError, commands, detect, facts, withPackages, setUpPlans } from '../../support/deployments/plans';

setUpPlans();

const index = { 'index.html': '' };
const kindOf = async (files: Record<string, string | object>): Promise<string> => (await detect(files)).kind;
const express = "const app = require('express')();\napp.listen(process.env.PORT);\n";
const bubblewrap = { version: '1', path: '/usr/bin/bwrap' };
const withBuildah: HostFacts = {
  ...facts,
  programs: { ...facts.programs, bubblewrap },
  oci_builders: ['buildah'],
};

describe('a program beside an index.html', () => {
  const programs: [Record<string, string | object>, string, string][] = [
    [{ 'app.py': '' }, 'python', 'python3 app.py'],
    [{ 'requirements.txt': '', 'main.py': '' }, 'python', 'python3 main.py'],
    [{ 'go.mod': 'module shop', 'main.go': 'package main' }, 'go', 'bin/shop'],
    [{ 'go.mod': 'module shop', 'cmd/front/main.go': 'package main' }, 'go', 'bin/front'],
    [{ 'server.js': '' }, 'node', 'node server.js'],
    [{ 'server.mjs': '' }, 'node', 'node server.mjs'],
    [{ 'app.js': express }, 'node', 'node app.js'],
    [{ 'package.json': {}, 'server.js': '' }, 'node', 'node server.js'],
    [{ 'package.json': {}, 'main.js': express }, 'node', 'node main.js'],
    [{ 'package.json': { scripts: { css: 'x' } }, 'app.py': '' }, 'python', 'python3 app.py'],
    [{ 'package.json': { scripts: { build: 'x' } }, 'app.py': '' }, 'python', 'python3 app.py'],
    [{ 'package.json': { scripts: { start: 'node x' } }, 'composer.json': '' }, 'node', 'npm start'],
    [{ Procfile: 'web: ./start', start: '', 'config.php': '' }, 'procfile', './start'],
  ];
  test.each(programs)('%j starts', async (files, kind, web) => {
    for (const site of [index, { 'public/index.html': '' }]) {
      const plan = await detect({ ...site, ...files });
      expect(plan).toMatchObject({ kind });
      expect(plan.processes.web!.replace('node x', 'npm start')).toBe(web);
      expect(plan.steps.map(({ name }) => name)).not.toContain('Web server for files');
    }
  });

  const unbuilt: [string, string][] = [
    ['Shop.csproj', '.NET'],
    ['mix.exs', 'Elixir'],
    ['deno.json', 'Deno'],
    ['Package.swift', 'Swift'],
    ['contact.cgi', 'Perl'],
  ];
  test.each(unbuilt)('%s is refused, with a Dockerfile as the way', async (file, language) => {
    const words = await buildError(detect({ ...index, [file]: '' }));
    expect(words).toContain(`The source has ${file} (${language}), and this platform does not build ${language}`);
    expect(words).toMatch(/Add a Dockerfile.*the operator has to install buildah.*build\.root_directory/);
    expect(await buildError(detect({ [file]: '' }))).not.toContain('root_directory');
    expect(await buildError(detect({ 'public/index.html': '', [`public/${file}`]: '' }))).toContain(language);
    expect(await buildError(detect({ ...index, 'package.json': withPackages, [file]: '' }))).toContain(language);
    expect(await kindOf({ [`shop/${file}`]: '', ...index })).toBe('static');
    expect(
      await buildError(detect({ ...index, 'shop/index.html': '', [`shop/${file}`]: '' }, { root_directory: 'shop' })),
    ).toContain(language);
    expect(await detect({ ...index, [file]: '', Dockerfile: 'FROM scratch' }, {}, withBuildah)).toMatchObject({
      kind: 'dockerfile',
    });
  });

  test('where the language has a builder, what is missing is named', async () => {
    expect(await buildError(detect({ ...index, 'tool.py': '' }))).toMatch(
      /tool\.py \(Python\).*`web: python3 tool\.py`/,
    );
    expect(await buildError(detect({ ...index, 'main.go': '' }))).toMatch(/main\.go \(Go\).*go mod init/);
    const enumeration = { 'server.ts': 'enum Colour { red }\n' };
    expect(await buildError(detect({ ...index, ...enumeration }))).toMatch(/server\.ts \(TypeScript\).*start script/);
    expect(await detect({ ...index, 'requirements.txt': 'flask' })).toMatchObject({ kind: 'python', processes: {} });
    expect(await detect({ ...index, 'go.mod': '', 'lib/x.go': '' })).toMatchObject({ kind: 'go', processes: {} });
    const odd = 'x\u202e\n"`$(id)`.php';
    expect(await buildError(detect({ ...index, [odd]: '' }))).not.toContain('\n');
  });
});

describe('a site', () => {
  test('of files for browsers, with settings of tools around it', async () => {
    const tools = { 'pyproject.toml': '[tool.black]\n', Makefile: '', 'go.mod': 'module example.com/theme' };
    const scripts = {
      'app.js': 'document.title = 1',
      'index.js': "import './app.js'",
      'main.js': 'window.app.listen()',
    };
    expect(await kindOf({ ...index, ...tools, ...scripts, 'style.css': '', '.github/x.py': '' })).toBe('static');
    expect((await detect({ ...index, ...scripts })).notes).toBeUndefined();
  });

  test('with programs in its folders: a note says that they do not run', async () => {
    const plan = await detect({ ...index, 'forms/contact.php': '', 'node_modules/x/y.rb': '' });
    expect(plan.notes).toEqual([expect.stringMatching(/^forms\/contact\.php \(PHP\) does not run/)]);
    expect((await detect({ ...index, 'vendor/x/y.rb': '', 'node_modules/x/y.rb': '' })).notes).toBeUndefined();
  });

  test('of a build script is what the script made, not the source, which may be that of a program', async () => {
    const built = { 'package.json': { scripts: { build: 'x' } }, ...index };
    expect((await detect(built)).processes.web).toMatch(/_site$/);
    const mixed = await detect({ ...built, Gemfile: '' });
    expect(mixed.processes.web).toMatch(/ dist build out public _site$/);
    expect(mixed.notes).toEqual([expect.stringMatching(/^Gemfile \(Ruby\) does not run/)]);
    expect((await detect({ ...built, 'requirements.txt': 'x' })).processes.web).toMatch(/_site$/);
    expect(await detect({ ...built, Gemfile: '', Dockerfile: 'FROM scratch' }, {}, withBuildah)).toMatchObject({
      kind: 'dockerfile',
    });
  });

  test('of a build command of the user: the same', async () => {
    const build_command = 'make site';
    const web = async (files: Record<string, string>): Promise<string | undefined> =>
      (await detect(files, { build_command })).processes.web;
    expect(await web(index)).toMatch(/ dist build out public _site$/);
    for (const [name, text] of [
      ['config.php', ''],
      ['requirements.txt', 'mkdocs'],
    ] as const)
      expect(await web({ ...index, [name]: text })).toMatch(/ dist build out public _site$/);
    expect(commands(await detect({ 'requirements.txt': 'mkdocs' }, { build_command }))[0]).toBe('make site');
  });
});
