/** @tier heavy @quarter 4 @covers drivers/builder/go */
/** @user any */
// Which program of a Go module is built and starts, and what else counts: constraints, workspaces, modules above.
import { spawnSync } from 'node:child_process';
import { builtPackageOf } from '../../../drivers/builder/go/go_constraints';
import type { BuildSettings } from '../../../drivers/builder';
import { buildError, commands, detect, facts, setUpPlans, without } from '../../support/deployments/plans';
import { needs } from '../../support/runner/programs';
import { openWorkshop } from '../../support/runner/built';

setUpPlans();

const main = 'package main\n\nfunc main() {}\n';
const shop = (name = 'example.com/shop') => ({ 'go.mod': `module ${name}\n\ngo 1.20\n` });
const plan = (files: Record<string, string>, changed: Partial<BuildSettings> = {}, host = facts) =>
  detect(files, changed, host);
const built = async (files: Record<string, string>, changed: Partial<BuildSettings> = {}): Promise<string[]> => {
  const { steps } = await plan(files, changed);
  return steps[0]!.command.split('\n').slice(1);
};

describe('the program that is meant', () => {
  test.each<[string, Record<string, string>, string | undefined]>([
    ['that of the root directory', { 'main.go': main, 'cmd/admin/main.go': main }, 'bin/shop'],
    ['of two with the same last name', { 'cmd/shop/main.go': main, 'tools/shop/main.go': main }, 'bin/shop'],
    ['with the name of the module', { 'cmd/shop/main.go': main, 'cmd/worker/main.go': main }, 'bin/shop'],
    ['the only one below cmd/', { 'cmd/api/main.go': main, 'examples/a/main.go': main }, 'bin/api'],
    ['the only one', { 'server/main.go': main, 'lib/lib.go': 'package lib\n' }, 'bin/server'],
    ['the only one that is no example', { 'server/main.go': main, 'examples/x/main.go': main }, 'bin/server'],
    ['none of several', { 'cmd/a/main.go': main, 'cmd/b/main.go': main }, undefined],
  ])('%s', async (_, files, web) => {
    expect((await plan({ ...shop(), ...files })).processes.web).toBe(web);
  });

  test('with the name of the application', async () => {
    const files = { ...shop(), 'cmd/a/main.go': main, 'cmd/b/main.go': main };
    expect((await plan(files, { application_name: 'b' })).processes.web).toBe('bin/b');
  });

  test('that a Procfile or a setting names is built, of two with the same name that in cmd/', async () => {
    const files = { ...shop(), 'cmd/a/main.go': main, 'cmd/b/main.go': main, 'x/a/main.go': main };
    expect(await built({ ...files, Procfile: 'web: ./bin/a --port $PORT' })).toEqual([
      'go build -v -o bin/a ./cmd/a || exit 1',
      expect.stringMatching(/^go build -v -o bin\/b \.\/cmd\/b \|\| echo 'The program cmd\/b did not compile/),
    ]);
    expect((await built(files, { commands: { web: 'b' } }))[0]).toBe('go build -v -o bin/b ./cmd/b || exit 1');
    const same = { ...shop(), Procfile: 'web: bin/a', 'x/a/main.go': main, 'y/a/main.go': main };
    expect(await buildError(plan(same))).toMatch(
      /starts `a`, and the Go module has 2 programs.*: x\/a, y\/a\. Move one/,
    );
  });

  test('is said with the others, and what is missing where there is none', async () => {
    const several = await plan({ ...shop(), 'cmd/a/main.go': main, 'cmd/b/main.go': main });
    expect(several.missing).toMatch(/the programs cmd\/a, cmd\/b, and none.*Procfile with the line `web: bin\/a`/);
    expect((await plan({ ...shop(), 'lib/x.go': 'package lib\n' })).missing).toMatch(/no package `main` was found/);
    const { reasons } = await plan({ ...shop(), 'main.go': main, 'cmd/b/main.go': main });
    expect(reasons).toContain('The Go module has the programs ., cmd/b. `web` is ., unless another command is stated.');
  });

  test('where the source has a folder of its name below bin/', async () => {
    expect((await plan({ ...shop(), 'bin/api/main.go': main })).processes.web).toBe('bin/api/api');
  });
});

test.each<[string, string, string | null]>([
  ['x.go', '//go:build ignore\n\npackage main\n', null],
  ['x.go', '// +build ignore\n\npackage main\n', null],
  ['x.go', '//go:build linux && (!cgo || !windows)\n\npackage main\n', process.platform === 'linux' ? 'main' : null],
  ['x.go', '//go:build !(windows)\npackage main\n', 'main'],
  ['x.go', '//go:build integration || tools\npackage main\n', null],
  ['x_windows.go', 'package main\n', null],
  ['x_plan9_arm.go', 'package main\n', null],
  ['windows.go', 'package main\n', 'main'],
  ['x_test.go', 'package main\n', null],
  ['_x.go', 'package main\n', null],
  ['x.go', '/*\npackage main\n*/\npackage lib\n', 'lib'],
])('%s with %j: %s', (name, text, found) => {
  expect(builtPackageOf(name, text)).toBe(found);
});

test('constraints and comments that are made to take long do not', () => {
  const before = Date.now();
  for (const text of [`//go:build ${'('.repeat(100_000)}`, '/*'.repeat(100_000), '// +build '.repeat(50_000)])
    expect(builtPackageOf('x.go', `${text}\npackage main\n`)).toBeNull();
  expect(Date.now() - before).toBeLessThan(1000);
});

describe('modules and workspaces', () => {
  const member = { 'apps/api/go.mod': 'module example.com/api\n\ngo 1.20\n', 'apps/api/main.go': main };
  const root_directory = 'apps/api';

  test('a folder of a module is built with the go.mod above it', async () => {
    const found = await plan({ ...shop(), 'cmd/api/main.go': main }, { root_directory: 'cmd/api' });
    expect(found.processes.web).toBe('bin/api');
    expect(await buildError(plan({ ...shop(), 'web/readme.md': '' }, { root_directory: 'web' }))).toMatch(/nothing/);
  });

  test('the go.work above counts where it names the module, else Go is told to ignore it', async () => {
    const named = await plan(
      { ...member, 'go.work': 'go 1.20\n\nuse (\n\t./apps/api // x\n\t"./lib"\n)\n' },
      { root_directory },
    );
    expect(named.summary).toMatch(/in the workspace at \.\.\/\.\./);
    expect(named.env.GOWORK).toBeUndefined();
    const newer = { ...member, 'go.work': 'go 1.25.1\nuse ./apps/api\n' };
    expect((await plan(newer, { root_directory })).reasons?.join(' ')).toMatch(/asks for Go 1\.25\.1/);
    const other = await plan({ ...member, 'go.work': 'go 1.25.1\nuse ./lib\n' }, { root_directory });
    expect(other).toMatchObject({ env: { GOWORK: 'off' } });
    expect(other.reasons).toBeUndefined();
  });

  test('the top of a workspace asks to choose a member', async () => {
    const top = { ...member, 'go.work': 'go 1.20\nuse ./apps/api\nuse ./worker\n' };
    expect(await buildError(plan(top))).toMatch(
      /Go workspace \(go\.work\): apps\/api, worker\. Set build\.root_directory/,
    );
    expect((await plan({ ...top, ...shop(), 'x.go': 'package x\n' })).missing).toMatch(/go\.work: apps\/api, worker/);
  });

  test('vendored, nested and test modules are no programs', async () => {
    const files = {
      'vendor/x/main.go': main,
      'testdata/y/main.go': main,
      'sub/go.mod': 'module y',
      'sub/main.go': main,
    };
    expect((await plan({ ...shop(), ...files, 'srv/main.go': main })).processes.web).toBe('bin/srv');
  });

  test('a host without Go says so', async () => {
    expect(commands(await plan({ ...shop(), 'main.go': main }, {}, without('go')))[0]).toBe('mkdir -p bin || exit 1');
  });
});

describe('builds', () => {
  const workshop = openWorkshop();
  afterAll(() => workshop.close());
  const answering = (text: string) =>
    'package main\n\nimport ("net/http"; "os")\n\nfunc main() {\n' +
    '\thttp.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), http.HandlerFunc(func(w http.ResponseWriter, ' +
    `_ *http.Request) { w.Write([]byte(${text})) }))\n}\n`;
  const goVersion = /go1\.\d+/.exec(spawnSync('go', ['version'], { encoding: 'utf8' }).stdout ?? '')?.[0]?.slice(2);

  needs('go').test(
    'the program that is meant, beside others that do not compile or have its name',
    async () => {
      const directory = workshop.source({
        'go.mod': `module example.com/shop\n\ngo ${goVersion}\n`,
        'cmd/shop/main.go': answering('"meant"'),
        'internal/old/shop/main.go': answering('"old"'),
        'cmd/broken/main.go': 'package main\n\nfunc main() { undefined() }\n',
        'examples/x/main.go': 'package main\n\nfunc main() { undefined() }\n',
        'gen.go': '//go:build ignore\n\npackage main\n\nfunc main() { undefined() }\n',
        'doc.go': 'package shop\n',
      });
      const one = await workshop.build(directory);
      expect(one).toMatchObject({ code: 0, output: expect.stringMatching(/The program cmd\/broken did not compile/) });
      expect(await (await fetch((await workshop.start(one)).url)).text()).toBe('meant');
    },
    240_000,
  );

  needs('go').test(
    'a member of a workspace, with a module that no proxy has',
    async () => {
      const directory = workshop.source({
        'go.work': `go ${goVersion}\n\nuse (\n\t./apps/api\n\t./lib\n)\n`,
        'lib/go.mod': `module example.com/private/lib\n\ngo ${goVersion}\n`,
        'lib/lib.go': 'package lib\n\nfunc Text() string { return "private" }\n',
        'apps/api/go.mod': `module example.com/api\n\ngo ${goVersion}\n\nrequire example.com/private/lib v0.0.0\n`,
        'apps/api/main.go': answering('lib.Text()').replace('"net/http";', '"net/http"; "example.com/private/lib";'),
      });
      const one = await workshop.build(directory, { root_directory: 'apps/api' });
      expect(one).toMatchObject({ code: 0 });
      expect(await (await fetch((await workshop.start(one)).url)).text()).toBe('private');
    },
    240_000,
  );
});
