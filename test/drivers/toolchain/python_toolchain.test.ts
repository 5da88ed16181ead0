/** @tier heavy @quarter 1 @covers drivers/toolchain */
// Python and uv for hosts that lack them: what is downloaded, checked and refused, and who gets it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { HostFacts } from '../../../core/catalog/host_facts';
import { openBuilder } from '../../../drivers/builder/buildpack';
import { pythonFits } from '../../../drivers/builder/python/python_range';
import { driverContext } from '../../../core/driver';
import type { Tool } from '../../../drivers/toolchain';
import { PYTHON_PACKAGE } from '../../../drivers/toolchain/python_builds';
import { uvRelease, type PythonSource } from '../../../drivers/toolchain/python_source';
import { openToolchains } from '../../../drivers/toolchain/store';
import { zip } from '../../support/builds/go_proxy';
import { buildError, detect, facts, setUpPlans, without } from '../../support/deployments/plans';
import {
  anotherPython,
  packPython,
  pinnedUvWheel,
  startPythonIndex,
  type PythonIndex,
} from '../../support/builds/python_index';

setUpPlans();

const folder = mkdtempSync(path.join(os.tmpdir(), 'python-'));
const ctx = () => driverContext(120_000);
const here = `${process.platform}-${process.arch}`;
const file = 'uv-9.9.9-py3-none-any.whl';
const wheel = zip([
  ['uv-9.9.9.data/scripts/uv', '#!/bin/sh\necho "uv 9.9.9 (of a test)"\n'],
  ['uv-9.9.9.dist-info/METADATA', 'Name: uv\n'],
]);
const sha256 = createHash('sha256').update(wheel).digest('hex');
const uv: Tool = { name: 'uv', version: '9.9.9', package: 'uv' };
let index: PythonIndex;

beforeAll(async () => void (index = await startPythonIndex()));
beforeEach(() => {
  index.files.clear();
  index.files.set(file, wheel);
  Object.assign(index, { form: 'json', status: null, requests: [] });
});
afterAll(async () => {
  await index.close();
  rmSync(folder, { recursive: true, force: true });
});

const sourceOf = (changed: Partial<PythonSource> = {}): PythonSource => ({
  ...{ index: `${index.url}/simple`, mirror: `${index.url}/files`, builds: null },
  uv: { version: '9.9.9', wheels: { [here]: { file, sha256 } } },
  ...changed,
});
async function fresh(changed: Partial<PythonSource> = {}) {
  const directory = mkdtempSync(path.join(folder, 'store-'));
  return { directory, store: await openToolchains(directory, undefined, sourceOf(changed)) };
}

describe('uv', () => {
  test.each(['json', 'html'] as const)('is downloaded once, from an index with pages in %s', async (form) => {
    index.form = form;
    const { directory, store } = await fresh();
    await Promise.all([store.ensure([uv], ctx()), store.ensure([uv], ctx())]);
    await store.ensure([uv], ctx());
    expect(index.requests.map((one) => one.path)).toEqual(['/simple/uv/', `/files/${file}`]);
    expect(readdirSync(directory)).toEqual(['uv-9.9.9']);
    const program = path.join(store.binDirectory(uv), 'uv');
    expect(execFileSync(program, ['--version'], { encoding: 'utf8' })).toBe('uv 9.9.9 (of a test)\n');
  });

  test('of an index with a password, which builds are not told', async () => {
    const { store } = await fresh({ index: `${index.url.replace('//', '//me:a%20word@')}/simple/` });
    await store.ensure([uv], ctx());
    const authorization = `Basic ${Buffer.from('me:a word').toString('base64')}`;
    expect(index.requests.map((one) => one.authorization)).toEqual([authorization, authorization]);
    expect(JSON.stringify(await store.registry(ctx()))).not.toMatch(/PIP_INDEX_URL|word/);
    const open = await fresh();
    expect((await open.store.registry(ctx())).env.PIP_INDEX_URL).toBe(`${index.url}/simple`);
  });

  test.each([
    [
      'another hash',
      () => index.files.set(file, zip([['uv-9.9.9.data/scripts/uv', 'x']])),
      /does not have the expected hash/,
    ],
    ['no such version', () => index.files.delete(file), /has no uv 9\.9\.9\. PYTHON_INDEX names it/],
    ['an error', () => (index.status = 500), /did not send uv 9\.9\.9/],
  ])('with %s is refused, and leaves nothing', async (_, spoil, reason) => {
    spoil();
    const { directory, store } = await fresh();
    await expect(store.ensure([uv], ctx())).rejects.toThrow(reason);
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('what the source asks for', () => {
  test.each([
    ['>=3.10', true],
    ['>=3.9,<3.14', true],
    ['>=3.9,!=3.12.*', false],
    ['~=3.11', true],
    ['~=3.11.2', false],
    ['==3.12.*', true],
    ['==3.12', true],
    ['<3.12', false],
    ['>3.12.3', true],
    ['^3.9', true],
    ['~3.12', true],
    ['^3.13', false],
    ['>=3.8,<3.9 || >=3.12', true],
    ['*', true],
    ['newest', null],
    ['>=3.10; python', null],
  ])('3.12.4 is in %s: %s', (range, answer) => expect(pythonFits('3.12.4', range)).toBe(answer));

  const found = (version: string) => ({ version, path: `/usr/bin/python${version}` });
  const host: HostFacts = { ...facts, pythons: { '3.11': found('3.11.2'), '3.12': found('3.12.7') } };
  const summary = async (files: Record<string, string>) => (await detect({ 'app.py': '', ...files }, {}, host)).summary;

  test('in the files of its packages, of those that the host has', async () => {
    const project = (table: string) => ({ 'pyproject.toml': table });
    expect(await summary(project('[project]\nname = "x"\nrequires-python = ">=3.12"\n'))).toMatch(/^Python 3\.12\.7/);
    expect(await summary(project('[tool.poetry.dependencies]\npython = "^3.11"\n'))).toMatch(/^Python 3\.11\.2/);
    expect(await summary({ Pipfile: '[requires]\npython_version = "3.12"\n' })).toMatch(/^Python 3\.12\.7/);
    expect(await summary({ '.python-version': '3.11', ...project('[project]\nrequires-python = ">=3.12"\n') })).toMatch(
      /^Python 3\.11\.2/,
    );
    const none = detect({ 'app.py': '', ...project('[project]\nrequires-python = ">=3.13"\n') }, {}, host);
    expect(await buildError(none)).toBe(
      'requires-python of pyproject.toml asks for Python >=3.13, and this platform has 3.11, 3.12. Ask for one of ' +
        'these, or ask the operator to install python3.13 with its venv module.',
    );
  });
});

const release = pinnedUvWheel();
const python = anotherPython();
const withUv = release === null ? describe.skip : describe;
withUv(`Python${release === null ? ` (needs uv ${uvRelease.version} of a Python package index)` : ''}`, () => {
  const { wheels, version } = uvRelease;
  const app = { 'app.py': '', 'requirements.txt': 'flask' };
  beforeEach(() => void index.files.set(release!.name, release!.body));
  const look = (files: Record<string, string>, store: Awaited<ReturnType<typeof fresh>>['store'], host = facts) =>
    detect(files, {}, host, openBuilder(store, 'host', 'newest'));

  test('of 3.14, and of each line before that gets fixes, is among the builds that uv knows', async () => {
    const { store } = await fresh({ uv: { wheels, version } });
    const versions = (await store.versions('python', PYTHON_PACKAGE, ctx())).map((one) => one.version);
    for (const line of ['3.10', '3.11', '3.12', '3.13', '3.14'])
      expect(versions).toContainEqual(expect.stringMatching(new RegExp(`^${line.replace('.', '\\.')}\\.\\d+$`)));
    expect(versions.filter((one) => !/^3\.\d+\.\d+$/.test(one))).toEqual([]);
  });

  test('that cannot be had: the one of the host serves, or the build says why', async () => {
    const { store } = await fresh({ uv: { wheels, version } });
    const plan = await look(app, store);
    expect(plan.summary).toBe('Python 3.11.2, uv pip install of requirements.txt');
    expect(plan.tools).toEqual([{ name: 'uv', version, package: 'uv' }]);
    expect(plan.notes).toEqual([
      expect.stringMatching(
        /^Python 3\.11\.2 of the host is used, .*: .*did not send Python 3\.14\.\d+\. PYTHON_MIRROR/,
      ),
    ]);
    expect(await buildError(look({ ...app, '.python-version': '3.13' }, store))).toMatch(
      /^\.python-version asks for Python 3\.13, and .* has 3\.11\. .* It could not be downloaded: .*3\.13\.\d/,
    );
    expect(await buildError(look(app, store, without('python3')))).toMatch(/^The source needs Python, .*3\.14/);
    expect(await look({ ...app, '.python-version': '3.11' }, store)).not.toHaveProperty('notes');
  });

  test('and uv that cannot be had: pip installs, as before', async () => {
    index.files.clear();
    const { store } = await fresh({ uv: { wheels, version } });
    const plan = await look(app, store);
    expect(plan.summary).toBe('Python 3.11.2, pip install of requirements.txt');
    expect(plan.tools).toEqual([]);
    const lock = { 'app.py': '', 'pyproject.toml': '[project]\nname = "x"\n', 'uv.lock': '' };
    expect(await buildError(look(lock, store))).toMatch(/has a uv\.lock, and uv is not installed/);
  });

  const withPython = python === null ? test.skip : test;
  withPython(
    `of a mirror is downloaded, checked and moved${python === null ? ' (needs a second Python of pyenv)' : ''}`,
    async () => {
      const packed = packPython(python!);
      const builds = path.join(folder, 'builds.json');
      writeFileSync(builds, packed.list);
      const { directory, store } = await fresh({ uv: { wheels, version }, builds });
      const tool: Tool = { name: 'python', version: packed.version, package: PYTHON_PACKAGE };
      index.files.set(packed.name, Buffer.concat([packed.archive, Buffer.from('more')]));
      await expect(store.ensure([tool], ctx())).rejects.toThrow(/does not have the expected hash/);

      index.files.set(packed.name, packed.archive);
      const plan = await look({ ...app, '.python-version': packed.version }, store);
      expect(plan.tools).toEqual([tool, { name: 'uv', version, package: 'uv' }]);
      expect(plan.reasons).toEqual([`Python ${packed.version} is what .python-version asks for (${packed.version}).`]);
      expect(readdirSync(directory).sort()).toEqual([`python-${packed.version}`, `uv-${version}`]);
      const program = path.join(store.binDirectory(tool), 'python3');
      const prefix = execFileSync(program, ['-c', 'import sys, ssl; print(sys.prefix)'], { encoding: 'utf8' });
      expect(prefix.trim()).toBe(path.join(directory, `python-${packed.version}`));
      const library = path.join(prefix.trim(), 'lib');
      const texts = readdirSync(library, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.includes('_sysconfigdata_'))
        .map((name) => readFileSync(path.join(library, name), 'utf8'));
      expect(texts.join()).not.toContain('.staging-');
    },
    120_000,
  );
});
