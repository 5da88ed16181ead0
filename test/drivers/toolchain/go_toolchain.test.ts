// Go for hosts without one, from a proxy of Go modules: what is downloaded, checked and refused, and who gets it.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { HostFacts } from '../../../core/catalog/host_facts';
import { openBuilder } from '../../../drivers/builder/buildpack';
import { driverContext } from '../../../core/driver';
import type { Tool } from '../../../drivers/toolchain';
import { GO_MODULE, goModuleVersion, type GoSource } from '../../../drivers/toolchain/go_release';
import { openToolchains } from '../../../drivers/toolchain/store';
import { startGoProxy, zip, type GoProxy } from '../../support/builds/go_proxy';
import { buildError, detect, facts, setUpPlans, without } from '../../support/deployments/plans';

setUpPlans();

const folder = mkdtempSync(path.join(os.tmpdir(), 'go-'));
const ctx = () => driverContext(60_000);
const tool: Tool = { name: 'go', version: '1.99.1', package: GO_MODULE };
const script = `#!/bin/sh
[ "$1" != version ] || { echo "go version go1.99.1 linux/amd64"; exit; }
exec "$(dirname "$0")/../pkg/tool/compile"
`;
const files = {
  'bin/go': script,
  'pkg/tool/compile': '#!/bin/sh\necho compiled\n',
  'src/fmt/print.go': 'package fmt\n',
  'src-x/a': 'a',
};
let proxy: GoProxy;
beforeAll(async () => {
  proxy = await startGoProxy('1.99.1', files);
});
afterEach(() => {
  proxy.answer = null;
});
afterAll(async () => {
  await proxy.close();
  rmSync(folder, { recursive: true, force: true });
});

const here = `${process.platform}-${process.arch}`;
const sourceOf = (changed: Partial<GoSource> = {}): GoSource => ({
  proxy: proxy.url,
  version: '1.99.1',
  hashes: { [here]: proxy.hash },
  ...changed,
});
async function fresh(changed: Partial<GoSource> = {}) {
  const directory = mkdtempSync(path.join(folder, 'store-'));
  return { directory, store: await openToolchains(directory, sourceOf(changed)) };
}

test('is downloaded once, from the first proxy that has it, and its programs run', async () => {
  const empty = await startGoProxy('1.0.0', {});
  try {
    const { directory, store } = await fresh({ proxy: `off,${empty.url},${proxy.url}/,direct` });
    proxy.requests.length = 0;
    await Promise.all([store.ensure([tool], ctx()), store.ensure([tool], ctx())]);
    expect(empty.requests).toHaveLength(1);
    expect(proxy.requests).toEqual([`/${GO_MODULE}/@v/${goModuleVersion('1.99.1')}.zip`]);
    expect(readdirSync(directory)).toEqual(['go-1.99.1']);
    expect(execFileSync(path.join(store.binDirectory(tool), 'go'), ['build']).toString()).toBe('compiled\n');
    expect(statSync(path.join(directory, 'go-1.99.1/src/fmt/print.go')).mode & 0o777).toBe(0o644);
    await (await openToolchains(directory, sourceOf({ proxy: 'off' }))).ensure([tool], ctx());
  } finally {
    await empty.close();
  }
});

const prefix = `${GO_MODULE}@${goModuleVersion('1.99.1')}/`;
test.each([
  ['a changed file', () => zip([[`${prefix}bin/go`, `${script}#`]]), /does not have the expected hash/],
  ['a file beside the module', () => zip([[`${GO_MODULE}@v9/x`, '']]), /does not have the expected hash/],
  [
    'a file outside of its directory',
    () => zip([[`${prefix}../../../outside`, '']]),
    /does not have the expected hash/,
  ],
  ['no archive', () => Buffer.from('<html>'), /does not have the expected hash/],
  ['half an archive', () => zip([[`${prefix}bin/go`, script]]).subarray(0, 90), /does not have the expected hash/],
])('an archive with %s is refused, and nothing of it stays', async (_what, body, message) => {
  const { directory, store } = await fresh();
  proxy.answer = { status: 200, body: body() };
  await expect(store.ensure([tool], ctx())).rejects.toMatchObject({
    reason: 'transient',
    message: expect.stringMatching(message),
  });
  expect(readdirSync(directory)).toEqual([]);
  expect(readdirSync(folder).filter((name) => !name.startsWith('store-'))).toEqual([]);
});

test('a proxy that fails is asked again later; where none has it, the setting is named', async () => {
  const { store } = await fresh();
  proxy.answer = { status: 500, body: Buffer.alloc(0) };
  await expect(store.ensure([tool], ctx())).rejects.toMatchObject({
    reason: 'transient',
    message: 'The Go module proxy did not send Go 1.99.1.',
  });
  proxy.answer = { status: 404, body: Buffer.alloc(0) };
  await expect(store.ensure([tool], ctx())).rejects.toMatchObject({
    reason: 'unsupported',
    message: 'The Go module proxy did not send Go 1.99.1. GO_PROXY names no proxy that has it.',
  });
});

test('builds ask the proxies of the operator', async () => {
  const { store } = await fresh({ proxy: `${proxy.url},off` });
  expect((await store.registry(ctx())).env.GOPROXY).toBe(`${proxy.url},off`);
});

describe('who gets it', () => {
  const host = (version: string | null): HostFacts =>
    version === null
      ? without('go')
      : { ...facts, programs: { ...facts.programs, go: { version, path: '/usr/local/go/bin/go' } } };
  test.each([
    [null, 'go 1.22', 'Go 1.99.1', ['Go 1.99.1 comes from the Go module proxy: the host has none.']],
    ['1.19.8', 'go 1.18', 'Go 1.19.8', undefined],
    [
      '1.19.8',
      'go 1.22',
      'Go 1.99.1',
      ['Go 1.99.1 comes from the Go module proxy: that of the host is 1.19.8, and go.mod asks for 1.22.'],
    ],
    ['1.22.1', 'go 1.22.0', 'Go 1.22.1', undefined],
    [
      '1.22.1',
      'go 1.22\n\ntoolchain go1.24.3',
      'Go 1.22.1',
      ['go.mod asks for Go 1.24.3, which Go 1.22.1 gets from the Go module proxy.'],
    ],
    ['1.22.1', '', 'Go 1.22.1', undefined],
  ])('a host with %s, and go.mod with %j: %s', async (ours, line, version, reasons) => {
    const { store } = await fresh();
    const source = { 'go.mod': `module example.test/x\n\n${line}\n`, 'main.go': 'package main\n' };
    const found = await detect(source, {}, host(ours), openBuilder(store));
    expect(found).toMatchObject({ summary: `${version}, go build`, env: { GOTOOLCHAIN: 'auto' } });
    expect(found.reasons).toEqual(reasons);
    expect(found.tools).toEqual(version === 'Go 1.99.1' ? [tool] : []);
  });

  test('where nobody publishes it for the host, the message says what is needed', async () => {
    const { store } = await fresh({ hashes: {} });
    const source = { 'go.mod': 'module example.test/x\n\ngo 1.24\n', 'main.go': 'package main\n' };
    expect(await buildError(detect(source, {}, without('go'), openBuilder(store)))).toMatch(/needs Go 1\.24 or newer/);
  });
});
