/** @tier heavy @quarter 1 @covers drivers/builder */
// Builds that really run. Nothing here needs a network: packages lie beside the source.
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { openWorkshop } from '../../support/runner/built';

const workshop = openWorkshop();
const hasPython = spawnSync('python3', ['-m', 'venv', '--help']).status === 0;
const hasGo = spawnSync('go', ['version']).status === 0;
const onlyIf = (found: boolean) => (found || process.env.CI ? test : test.skip);

afterAll(() => workshop.close());

const answering = (text: string) =>
  `require('http').createServer((q, s) => s.end(${text})).listen(process.env.PORT, '127.0.0.1')`;

/** A package with a program, as pip takes it without asking anyone else (the wheel format, PEP 427). */
function makeWheel(directory: string): void {
  const module =
    'import http.server, os, sys\n\n\nclass Handler(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n' +
    '        self.send_response(200)\n        self.end_headers()\n' +
    '        self.wfile.write(sys.prefix.encode())\n\n    do_HEAD = do_GET\n\n\ndef serve():\n' +
    '    http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()\n';
  const files = {
    'shelf.py': module,
    'shelf-1.dist-info/METADATA': 'Metadata-Version: 2.1\nName: shelf\nVersion: 1\n',
    'shelf-1.dist-info/WHEEL': 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    'shelf-1.dist-info/entry_points.txt': '[console_scripts]\nshelf-serve = shelf:serve\n',
    'shelf-1.dist-info/RECORD': '',
  };
  const program =
    'import json, sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], "w") as wheel:\n' +
    '    for name, text in json.load(sys.stdin).items():\n        wheel.writestr(name, text)\n';
  execFileSync('python3', ['-c', program, path.join(directory, 'shelf-1-py3-none-any.whl')], {
    input: JSON.stringify(files),
  });
}

interface SecondPython {
  series: string;
  program: string;
}

/** Of another series than `python3`, wherever this machine has one. */
function anotherPython(): SecondPython | undefined {
  const usual = /3\.\d+/.exec(spawnSync('python3', ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[0];
  const versions = path.join(os.homedir(), '.pyenv/versions');
  const places = ['/usr/bin', '/usr/local/bin', ...filesIn(versions).map((name) => path.join(versions, name, 'bin'))];
  const found = places.flatMap((directory) =>
    filesIn(directory).flatMap((name) => {
      const series = /^python(3\.\d+)$/.exec(name)?.[1];
      return series && series !== usual ? [{ series, program: path.join(directory, name) }] : [];
    }),
  );
  // What is no longer maintained may not know today's wheels.
  return found
    .filter(({ series }) => Number(series.slice(2)) >= 10)
    .find(({ program }) => spawnSync(program, ['-m', 'venv', '--help']).status === 0);
}

function filesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

describe('builds', () => {
  test('npm ci with a lock file, development packages for the build script, NODE_ENV', async () => {
    const lock = {
      name: 'app',
      version: '1.0.0',
      lockfileVersion: 3,
      requires: true,
      packages: {
        '': {
          name: 'app',
          version: '1.0.0',
          dependencies: { plain: 'file:plain' },
          devDependencies: { tool: 'file:tool' },
        },
        'node_modules/plain': { resolved: 'plain', link: true },
        'node_modules/tool': { resolved: 'tool', link: true },
        plain: { version: '1.0.0' },
        tool: { version: '1.0.0', dev: true, bin: { tool: 'tool.js' } },
      },
    };
    const built = await workshop.build(
      workshop.source({
        'package.json': {
          name: 'app',
          version: '1.0.0',
          dependencies: { plain: 'file:plain' },
          devDependencies: { tool: 'file:tool' },
          scripts: { build: 'tool', start: 'node server.js' },
        },
        'package-lock.json': lock,
        'plain/package.json': { name: 'plain', version: '1.0.0' },
        'plain/index.js': 'module.exports = "plain"',
        'tool/package.json': { name: 'tool', version: '1.0.0', bin: { tool: 'tool.js' } },
        'tool/tool.js':
          '#!/usr/bin/env node\nrequire("fs").writeFileSync("made.txt", "made in " + process.env.NODE_ENV + ", ' +
          'CI " + process.env.CI)',
        'server.js': answering('require("plain") + ": " + require("fs").readFileSync("made.txt")'),
      }),
    );
    expect(built).toMatchObject({
      code: 0,
      output: expect.stringMatching(/-----> npm ci\n[^]*-----> npm run build\n/),
    });
    const running = await workshop.start(built);
    expect(await (await fetch(running.url)).text()).toBe('plain: made in production, CI 1');
  });

  test('a Procfile whose command is a program of a package', async () => {
    const built = await workshop.build(
      workshop.source({
        Procfile: 'web: serve-it --fast\n',
        'package.json': { dependencies: { 'serve-it': 'file:serve-it' } },
        'serve-it/package.json': { name: 'serve-it', version: '1.0.0', bin: { 'serve-it': 'serve.js' } },
        'serve-it/serve.js': `#!/usr/bin/env node\n${answering('process.argv[2]')}`,
      }),
    );
    expect(built.code).toBe(0);
    expect(await (await fetch((await workshop.start(built)).url)).text()).toBe('--fast');
  });

  test('the first failure ends it, with its code; a step cannot spoil the next', async () => {
    const failed = await workshop.build(
      workshop.source({ 'package.json': { scripts: { build: 'echo broken >&2; exit 3', start: 'x' } } }),
    );
    expect(failed).toMatchObject({
      code: 3,
      output: expect.stringMatching(/broken[^]*npm run build failed with exit code 3\./),
    });
    const custom = (build_command: string) => workshop.build(workshop.source({ 'index.html': '' }), { build_command });
    expect(await custom("cd /; set -e; trap 'echo never' USR1; echo 'it''s' \"$HOME\" && exit 0")).toMatchObject({
      code: 0,
      output: expect.stringMatching(/-----> Build command\nits .*\/cache\/home\n-----> Web server for files/),
    });
    expect(await custom('echo a; false')).toMatchObject({ code: 1 });
    expect(await custom('kill -9 $$')).toMatchObject({ code: 137 });
  });

  test('a site that a build script makes; and one that makes none', async () => {
    const built = await workshop.build(
      workshop.source({
        'package.json': { scripts: { build: 'mkdir out && echo made > out/index.html' } },
        'index.html': 'source',
      }),
    );
    expect(built.code).toBe(0);
    expect(await (await fetch((await workshop.start(built)).url)).text()).toBe('made\n');
    const none = await workshop.build(workshop.source({ 'package.json': { scripts: { build: 'echo nothing' } } }));
    expect(none).toMatchObject({ code: 1, output: expect.stringMatching(/left no index\.html in dist\/, build\//) });
    const custom = await workshop.build(workshop.source({ 'site.md': '' }), {
      build_command: 'mkdir public && cp site.md public/',
    });
    const running = await workshop.start(custom);
    expect(running.child.exitCode).toBe(1);
    expect(running.output()).toMatch(/There is no index\.html in dist, build/);
  });

  onlyIf(hasPython)(
    'Python (needs python3 with venv): packages, and their programs from another directory',
    async () => {
      const directory = workshop.source({
        'requirements.txt': './shelf-1-py3-none-any.whl\n',
        Procfile: 'web: shelf-serve\n',
      });
      makeWheel(directory);
      const built = await workshop.build(directory);
      expect(built).toMatchObject({ code: 0, plan: { kind: 'procfile', env: { PYTHONUNBUFFERED: '1' } } });
      const text = await (await fetch((await workshop.start(built)).url)).text();
      expect(text).toMatch(/\/instance-[^/]+\/\.platform\/venv$/);
    },
    120_000,
  );

  const other = anotherPython();
  (other && hasPython ? test : test.skip)(
    'Python of the version that .python-version asks for (needs python3 and a second Python with venv)',
    async () => {
      const { series, program } = other as SecondPython;
      // Alone in its directory: where it lives there may be a python3 too.
      const programs = workshop.source({});
      symlinkSync(program, path.join(programs, `python${series}`));
      const directory = workshop.source({
        '.python-version': `${series}\n`,
        'requirements.txt': './shelf-1-py3-none-any.whl\n',
        'app.py': 'import sys, shelf\nsys.prefix = sys.version\nshelf.serve()\n',
      });
      makeWheel(directory);
      const built = await workshop.build(directory, {}, [programs]);
      expect(built).toMatchObject({ code: 0, plan: { summary: expect.stringContaining(`Python ${series}.`) } });
      const text = await (await fetch((await workshop.start(built)).url)).text();
      expect(text.split('.').slice(0, 2).join('.')).toBe(series);
    },
    120_000,
  );

  (hasGo ? test : test.skip)(
    'Go (needs go)',
    async () => {
      const built = await workshop.build(
        workshop.source({
          'go.mod': 'module example.com/shop\n\ngo 1.19\n',
          'main.go':
            'package main\n\nimport ("net/http"; "os")\n\nfunc main() {\n' +
            '\thttp.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(func(w http.ResponseWriter, ' +
            '_ *http.Request) { w.Write([]byte("go")) }))\n}\n',
        }),
      );
      expect(built.code).toBe(0);
      expect(await (await fetch((await workshop.start(built)).url)).text()).toBe('go');
    },
    120_000,
  );
});
