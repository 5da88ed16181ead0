// Local store of programs: one directory `<name>-<version>` each, staged and renamed when complete, so that existing
// ones can be used without a network.
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { highest, isExact } from './versions';
import { DriverError, asDriverErrors, driverContext, type DriverContext } from '../../core/driver';
import { removeTree } from '../../core/process/remove_tree';
import type { PublishedVersion, RegistrySettings, Tool, ToolchainDriver, ToolName } from '../toolchain';
import { downloadGo } from './go_download';
import { GO_MODULE, goHash, goRelease, type GoSource } from './go_release';
import { openGoLibraries, type GoLibraries } from './go_libraries';
import { compileLibrary, libraryName, useLibrary } from './go_library';
import { NpmFailed, npm } from './npm_client';
import { installPackage, linkProgram } from './npm_package';
import { packageOf } from './packages';
import { downloadPython, listPythons, PYTHON_PACKAGE, UvFailed } from './python_builds';
import {
  installProgram,
  isPythonProgram,
  PROGRAM_PYTHONS,
  programVersion,
  type PythonProgram,
} from './python_programs';
import { indexSettings, PUBLIC_PYTHON, uvWheel, type PythonSource } from './python_source';
import { readRegistrySettings } from './registry_settings';
import { downloadUv } from './uv_download';

interface Store {
  directory: string;
  /** Pending downloads, by directory. */
  downloads: Map<string, Promise<void>>;
  published: Map<string, { at: number; found: PublishedVersion[] }>;
  settings: { at: number; found: RegistrySettings } | null;
  go: GoSource;
  python: PythonSource;
  goLibraries: GoLibraries;
}

const PUBLIC_GO: GoSource = { ...goRelease, proxy: 'https://proxy.golang.org' };
const DOWNLOAD_MS = 10 * 60_000;
const ANSWER_MS = 60_000;
const TRIAL_MS = 20_000;
const TRUSTED_MS = 10 * 60_000;
const STAGING = '.staging-';

/** Opens the store in a directory, which is created if missing. Only one process at a time downloads. */
export async function openToolchains(
  directory: string,
  go: GoSource = PUBLIC_GO,
  python: PythonSource = PUBLIC_PYTHON,
): Promise<ToolchainDriver> {
  // Tenants read the programs in it.
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const leftovers = (await readdir(directory)).filter((name) => name.startsWith(STAGING));
  await Promise.all(leftovers.map((name) => removeTree(path.join(directory, name))));
  const store: Store = {
    directory,
    downloads: new Map(),
    published: new Map(),
    settings: null,
    go,
    python,
    goLibraries: openGoLibraries(),
  };
  return {
    packageOf: (name, version) => {
      if (name === 'go') return goHash(go) === null ? null : GO_MODULE;
      if (name === 'python') return uvWheel(python) && PYTHON_PACKAGE;
      if (name === 'uv' || isPythonProgram(name)) return uvWheel(python) && name;
      return packageOf(name, version);
    },
    versions: (name, packageName, ctx) => asDriverErrors(() => versions(store, name, packageName, ctx)),
    ensure: (tools, ctx) => asDriverErrors(() => ensure(store, tools, ctx)),
    hasGoLibrary: async (version) =>
      store.goLibraries.hasFailed(version) || (await readdir(directory)).includes(libraryName({ version })),
    ensureGoLibrary: (version, program, ctx) => ensureGoLibrary(store, version, program, ctx),
    useGoLibrary: (version) => useLibrary(path.join(directory, libraryName({ version }))),
    binDirectory: (tool) => path.join(directoryOf(store, tool), 'bin'),
    registry: (ctx) => asDriverErrors(() => registry(store, ctx)),
  };
}

async function versions(
  store: Store,
  name: ToolName,
  packageName: string,
  ctx: DriverContext,
): Promise<PublishedVersion[]> {
  if (name === 'go') return [{ version: store.go.version, node: null }];
  if (name === 'uv') return [{ version: store.python.uv.version, node: null }];
  if (name === 'python') return pythons(store, ctx);
  if (isPythonProgram(name)) return [{ version: programVersion(name), node: null }];
  const known = store.published.get(packageName);
  if (known !== undefined && Date.now() - known.at < TRUSTED_MS) return known.found;
  try {
    const found = await published(store, packageName, ctx);
    store.published.set(packageName, { at: Date.now(), found });
    return found;
  } catch (error) {
    if (!(error instanceof NpmFailed)) throw error;
    if (/\bE404\b/.test(error.output)) return [];
    const kept = await keptVersions(store, name, packageName);
    if (kept.length > 0) return kept;
    throw Object.assign(
      new DriverError('transient', `The npm registry did not answer for the package ${packageName}.`),
      {
        cause: error,
      },
    );
  }
}

async function pythons(store: Store, ctx: DriverContext): Promise<PublishedVersion[]> {
  const uv = await uvProgram(store, ctx);
  return inStaging(store, (staging) => listPythons(uv, store.python, staging, driverContext(ANSWER_MS, ctx.signal)));
}

/** Downloads uv if it is missing. */
async function uvProgram(store: Store, ctx: DriverContext): Promise<string> {
  const tool: Tool = { name: 'uv', version: store.python.uv.version, package: 'uv' };
  await ensure(store, [tool], ctx);
  return path.join(directoryOf(store, tool), 'bin/uv');
}

async function published(store: Store, packageName: string, ctx: DriverContext): Promise<PublishedVersion[]> {
  const fields = ['name', 'version', 'engines.node'];
  const inner = driverContext(ANSWER_MS, ctx.signal);
  const text = await inStaging(store, (staging) =>
    npm(['view', `${packageName}@>=0`, ...fields, '--json'], staging, inner),
  );
  const answer: unknown = text.trim() === '' ? [] : JSON.parse(text);
  return (Array.isArray(answer) ? (answer as unknown[]) : [answer]).flatMap((entry) => {
    const { version, 'engines.node': node } = entry as Record<string, unknown>;
    return typeof version === 'string' && isExact(version)
      ? [{ version, node: typeof node === 'string' ? node : null }]
      : [];
  });
}

/** Stored versions of that package only: yarn has two packages. */
async function keptVersions(store: Store, name: ToolName, packageName: string): Promise<PublishedVersion[]> {
  const found = (await readdir(store.directory)).flatMap((entry) => {
    const version = entry.startsWith(`${name}-`) ? entry.slice(name.length + 1) : '';
    return isExact(version) && packageOf(name, version) === packageName ? [{ version, node: null }] : [];
  });
  return found;
}

async function ensure(store: Store, tools: readonly Tool[], ctx: DriverContext): Promise<void> {
  const present = new Set(await readdir(store.directory));
  // Sequential: npm needs the Node.js that is installed with it.
  for (const tool of tools) {
    const target = directoryOf(store, tool);
    if (present.has(path.basename(target))) continue;
    const running =
      store.downloads.get(target) ?? download(store, tool, ctx).finally(() => store.downloads.delete(target));
    store.downloads.set(target, running);
    await running;
  }
}

async function ensureGoLibrary(
  store: Store,
  version: string,
  program: string | null,
  ctx: DriverContext,
): Promise<void> {
  const target = path.join(store.directory, libraryName({ version }));
  if (store.goLibraries.hasFailed(version) || (await readdir(store.directory)).includes(path.basename(target))) return;
  const ofStore = path.join(directoryOf(store, { name: 'go', version }), 'bin/go');
  const compile = (signal: AbortSignal): Promise<void> =>
    inStaging(store, async (staging) => {
      const prefix = path.join(staging, 'prefix');
      await compileLibrary({ version, program: program ?? ofStore }, { staging, prefix }, signal);
      await chmod(prefix, 0o755);
      await rename(prefix, target);
    });
  await store.goLibraries.compile(version, compile, ctx.signal);
}

async function download(store: Store, tool: Tool, ctx: DriverContext): Promise<void> {
  const inner = driverContext(DOWNLOAD_MS, ctx.signal);
  await inStaging(store, async (staging) => {
    const prefix = path.join(staging, 'prefix');
    await mkdir(prefix, { mode: 0o755 });
    await downloadInto(store, tool, { staging, prefix }, inner);
    await linkProgram(prefix, tool);
    await requireWorking(prefix, tool, store);
    await chmod(prefix, 0o755);
    await rename(prefix, directoryOf(store, tool));
  });
}

async function downloadInto(
  store: Store,
  tool: Tool,
  places: { staging: string; prefix: string },
  ctx: DriverContext,
): Promise<void> {
  if (tool.name === 'go') return downloadGo(tool, store.go, places, ctx);
  if (tool.name === 'uv') return downloadUv(tool, store.python, places, ctx);
  if (isPythonProgram(tool.name)) return downloadProgram(store, { ...tool, name: tool.name }, places, ctx);
  if (tool.name !== 'python') return installPackage(tool, places, ctx);
  const target = directoryOf(store, tool);
  return downloadPython(tool, await uvProgram(store, ctx), store.python, { ...places, target }, ctx);
}

/** With a Python that is there, else with one that is downloaded. */
async function downloadProgram(
  store: Store,
  tool: Tool & { name: PythonProgram },
  places: { staging: string; prefix: string },
  ctx: DriverContext,
): Promise<void> {
  const uv = await uvProgram(store, ctx);
  const kept = (await readdir(store.directory)).flatMap((name) => /^python-(3\.1[0-4]\.\d+)$/.exec(name)?.[1] ?? []);
  const install = (python: string) => installProgram(tool, { uv, python }, store.python, places, ctx);
  const own = highest(kept.map((version) => ({ version })));
  if (own !== null) return install(path.join(store.directory, `python-${own.version}`, 'bin/python3'));
  try {
    return await install(PROGRAM_PYTHONS);
  } catch (error) {
    if (!(error instanceof UvFailed)) throw error;
  }
  const found = highest((await pythons(store, ctx)).filter(({ version }) => /^3\.1[0-4]\./.test(version)));
  if (found === null) throw new DriverError('unsupported', `There is no Python for ${tool.name} on this host.`);
  const python: Tool = { name: 'python', version: found.version, package: PYTHON_PACKAGE };
  await ensure(store, [python], ctx);
  return install(path.join(directoryOf(store, python), 'bin/python3'));
}

/**
 * A Node.js may be built for another C library than that of the host; npm, yarn and pnpm run with the platform's
 * Node.js.
 */
async function requireWorking(prefix: string, tool: Tool, { directory }: Store): Promise<void> {
  const program = path.join(prefix, 'bin', tool.name);
  const env = { PATH: `${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`, HOME: directory, LC_ALL: 'C' };
  if (!['node', 'bun', 'go', 'uv', 'python', 'poetry', 'pdm'].includes(tool.name)) return;
  const args = tool.name === 'go' ? ['version'] : ['--version'];
  const answer = await new Promise<string | null>((resolve) =>
    execFile(program, args, { env, timeout: TRIAL_MS, killSignal: 'SIGKILL' }, (error, stdout) =>
      resolve(
        error === null ? (/(?:^v?|\bgo|^uv |^Python |\bversion )(\d[^\s)]*)/.exec(stdout.trim())?.[1] ?? null) : null,
      ),
    ),
  );
  if (answer === tool.version) return;
  throw new DriverError('unsupported', `The package ${tool.package} ${tool.version} does not run on this host.`);
}

async function registry(store: Store, ctx: DriverContext): Promise<RegistrySettings> {
  if (store.settings !== null && Date.now() - store.settings.at < TRUSTED_MS) return store.settings.found;
  const loaded = await loadRegistrySettings(store, ctx);
  const found = { ...loaded, env: { ...loaded.env, GOPROXY: store.go.proxy, ...indexSettings(store.python) } };
  store.settings = { at: Date.now(), found };
  return found;
}

async function loadRegistrySettings(store: Store, ctx: DriverContext): Promise<RegistrySettings> {
  const inner = driverContext(ANSWER_MS, ctx.signal);
  try {
    return readRegistrySettings(await inStaging(store, (staging) => npm(['config', 'list', '--json'], staging, inner)));
  } catch (error) {
    if (error instanceof NpmFailed) return readRegistrySettings('{}');
    throw error;
  }
}

async function inStaging<T>(store: Store, work: (staging: string) => Promise<T>): Promise<T> {
  const staging = await mkdtemp(path.join(store.directory, STAGING));
  try {
    return await work(staging);
  } finally {
    await rm(staging, { recursive: true, force: true }).catch(() => removeTree(staging));
  }
}

function directoryOf({ directory }: Store, { name, version }: Pick<Tool, 'name' | 'version'>): string {
  return path.join(directory, `${name}-${version}`);
}
