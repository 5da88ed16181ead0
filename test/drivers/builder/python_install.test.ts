/** @tier heavy @quarter 3 @covers drivers/builder/python drivers/builder/build_script.ts */
// Builds of Python sources that really run, with uv and an index of packages beside them.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import type { BuildDriver } from '../../../drivers/builder';
import { openBuilder } from '../../../drivers/builder/buildpack';
import { openToolchains } from '../../../drivers/toolchain/store';
import { PUBLIC_PYTHON } from '../../../drivers/toolchain/python_source';
import { pinnedUvWheel, shelfWheel, startPythonIndex, type PythonIndex } from '../../support/builds/python_index';
import { facts, settings } from '../../support/deployments/plans';

const uv = pinnedUvWheel();
const hasPython = spawnSync('/usr/bin/python3', ['--version']).status === 0;
const describeHere = uv === null || !hasPython ? describe.skip : describe;
const version = (spawnSync('/usr/bin/python3', ['--version'], { encoding: 'utf8' }).stdout ?? '').slice(7).trim();

describeHere(`uv and the packages of a source${uv === null ? ' (needs uv of a Python package index)' : ''}`, () => {
  let folder: string;
  let index: PythonIndex;
  let builder: BuildDriver;
  beforeAll(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'python-install-'));
    index = await startPythonIndex();
    index.files.set(uv!.name, uv!.body);
    const shelf = shelfWheel('1', 'def serve(): pass\n');
    index.files.set(shelf.name, shelf.body);
    const python = { ...PUBLIC_PYTHON, index: `${index.url}/simple`, builds: path.join(folder, 'none.json') };
    writeFileSync(path.join(folder, 'none.json'), '{}');
    builder = openBuilder(await openToolchains(path.join(folder, 'toolchains'), undefined, python), 'host', 'newest');
  }, 120_000);
  afterAll(async () => {
    await index?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Builds the files in a fresh directory with the cache of this name. */
  async function build(
    files: Record<string, string>,
    cache: string,
    variables: Record<string, string> = {},
  ): Promise<{ status: number | null; output: string; directory: string; packages: string[] }> {
    const directory = path.join(folder, `files-${cache}`);
    rmSync(directory, { recursive: true, force: true });
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
      writeFileSync(path.join(directory, name), text);
    }
    const caches = path.join(folder, `cache-${cache}`);
    mkdirSync(caches, { recursive: true });
    const host = { ...facts, programs: { ...facts.programs, python3: { version, path: '/usr/bin/python3' } } };
    const ctx = driverContext(120_000);
    const plan = await builder.detect(directory, settings, host, ctx);
    await builder.ensureTools(plan, ctx);
    const { command, env, defaults } = await builder.task(plan, { directory, cache: caches }, ctx);
    // The index is in this process.
    const child = spawn('/bin/sh', ['-c', command], {
      cwd: directory,
      env: { PATH: '/usr/bin:/bin', ...defaults, ...variables, ...plan.env, ...env },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
    const [status] = (await once(child, 'close')) as [number | null];
    const library = path.join(directory, '.platform/venv/lib');
    const [line = ''] = existsSync(library) ? readdirSync(library) : [];
    const packages = line === '' ? [] : readdirSync(path.join(library, line, 'site-packages'));
    return { status, output, directory, packages };
  }

  const app = { 'main.py': 'print(1)\n' };
  const asked = (): string[] => index.requests.map((one) => one.path).filter((one) => one.includes('shelf'));

  test('nothing is installed again for an unchanged lock, and an index that is down is not missed', async () => {
    const files = { ...app, 'requirements.txt': 'shelf==1\n' };
    const first = await build(files, 'unchanged');
    expect([first.status, first.packages.includes('shelf.py')]).toEqual([0, true]);
    expect(first.packages).toContain('pip');
    index.requests.length = 0;
    const second = await build(files, 'unchanged');
    expect([second.status, second.packages]).toEqual([0, first.packages]);
    expect(second.output).toContain('The packages are unchanged');
    expect(second.output).not.toMatch(/^(?:Prepared|Installed) /m);
    expect(asked()).toEqual([]);
    const serve = spawnSync(path.join(second.directory, '.platform/venv/bin/python'), ['-c', 'import shelf']);
    expect(serve.status).toBe(0);
    // Other settings of the installers, or another lock, are another environment.
    const third = await build(files, 'unchanged', { PIP_TRUSTED_HOST: '127.0.0.1' });
    expect([third.status, third.output]).toEqual([0, expect.stringMatching(/^Installed 1 package/m)]);
  });

  test('a package of the application that cannot be built falls back to its dependencies, and says so', async () => {
    const project =
      '[build-system]\nrequires = []\nbuild-backend = "no_such_backend"\n[project]\nname = "x"\nversion = "1"\n' +
      'dependencies = ["shelf"]\n[project.scripts]\nx = "x:y"\n';
    const { status, output, packages } = await build({ ...app, 'pyproject.toml': project }, 'fallback');
    expect([status, packages.includes('shelf.py')]).toEqual([0, true]);
    expect(output).toMatch(/no_such_backend[^]*package of the application itself could not be installed/);
  });

  test('pip.conf of the source counts, with variables for its passwords; that of the host does not', async () => {
    const conf = `[global]\nindex-url = ${index.url.replace('//', '//me:${TOKEN}@')}/simple\ntimeout = 5\n`;
    const files = { ...app, 'pip.conf': conf, 'requirements.txt': 'shelf\n' };
    index.requests.length = 0;
    const { status, output } = await build(files, 'conf', { TOKEN: 's3cr3t-w0rd', PIP_INDEX_URL: '' });
    expect(status).toBe(0);
    expect(output).not.toContain('s3cr3t-w0rd');
    const authorization = `Basic ${Buffer.from('me:s3cr3t-w0rd').toString('base64')}`;
    expect(index.requests).toContainEqual({ path: '/simple/shelf/', authorization });
    const { defaults } = await builder.task(
      await builder.detect(path.join(folder, 'files-conf'), settings, facts, driverContext(60_000)),
      { directory: folder, cache: folder },
      driverContext(60_000),
    );
    expect(defaults).toMatchObject({ PIP_CONFIG_FILE: '/dev/null', npm_config_globalconfig: '/dev/null', CI: '1' });
  });

  test('an application whose version is that of its history gets that of its commit', async () => {
    const project =
      '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "my.shop"\n' +
      'dynamic = ["version", "dependencies"]\n[tool.hatch.version]\nsource = "vcs" # hatch-vcs\n';
    const backend =
      'import os\nraise SystemExit("version " + os.environ["SETUPTOOLS_SCM_PRETEND_VERSION_FOR_MY_SHOP"])\n';
    const files = { ...app, 'backend.py': backend, 'pyproject.toml': project };
    const { output } = await build(files, 'scm', { SVC_COMMIT_SHA: 'abc123' });
    expect(output).toContain('version 0.0.0+gabc123');
  });
});
