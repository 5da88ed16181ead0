// Compiles the sources to dist/ and copies other files beside them.
//   node tools/scripts/build.mjs            builds if dist/ is absent or older than the sources
//   node tools/scripts/build.mjs --force    always builds
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

requireNode();
const ROOT = path.resolve(import.meta.dirname, '../..');
const DIST = path.join(ROOT, 'dist');
/** Its time is the start of the last good build. */
const STAMP = path.join(DIST, '.built');
const LOCK = path.join(ROOT, '.cache/build.lock');
const LOCK_LIMIT_MS = 600_000;
const SOURCE = /\.(?:ts|graphql|json)$/;
const BUNDLERS = { cli: 'esbuild', dashboard: 'vite' };
const ASSETS = [
  ['schema', /\.graphql$/],
  ['rest/console', /\.(?:html|css|js|svg)$/],
  ['drivers/builder', /\.(?:c?js|py|sh)$/],
  ['drivers/toolchain', /\.requirements$/],
  ['drivers/network', /\.js$/],
  ['drivers/hosted_server', /\.js$/],
];

/** Debian 12 has Node 18: everything that npm runs here begins with this file, and would end in a stack. */
function requireNode() {
  const { engines } = JSON.parse(fs.readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const [wanted, found] = [engines.node, process.versions.node].map((text) => text.match(/\d+/g).map(Number));
  if (found[0] > wanted[0] || (found[0] === wanted[0] && found[1] >= wanted[1])) return;
  const needed = `${wanted.join('.')} or newer: https://nodejs.org`;
  console.error(`This is Node.js ${process.versions.node}, and the platform needs ${needed}`);
  process.exit(1);
}

if (process.argv[1] && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exitCode =
    (process.argv.includes('--force') ? rebuild() : buildIfStale()) || buildClient('cli') || buildClient('dashboard');
  if (!process.exitCode) linkCommandLine();
}

/** Built where its bundler is installed: `npm ci --omit=dev` brings none, and takes what was built before. */
function buildClient(name) {
  const folder = path.join(ROOT, 'clients', name);
  if (!isInstalled(BUNDLERS[name])) return 0;
  return spawnSync(process.execPath, [path.join(folder, 'build.mjs'), '--if-stale'], { stdio: 'inherit' }).status ?? 1;
}

/** `npx svc`: npm links the commands of workspaces before this builds them, and none whose file is absent. */
function linkCommandLine() {
  const link = path.join(ROOT, 'node_modules/.bin/svc');
  if (!fs.existsSync(path.join(ROOT, 'clients/cli/dist/svc.cjs')) || fs.existsSync(link)) return;
  fs.rmSync(link, { force: true });
  fs.symlinkSync('../../clients/cli/dist/svc.cjs', link);
}

function isInstalled(name) {
  try {
    return Boolean(createRequire(import.meta.url).resolve(`${name}/package.json`));
  } catch {
    return false;
  }
}

/** Builds where needed. Returns the exit code; the compiler has reported the errors. */
export function buildIfStale() {
  if (!isStale()) return 0;
  return findCompiler() ? alone(() => (isStale() ? build() : 0)) : useAsItIs();
}

function rebuild() {
  if (!findCompiler()) return useAsItIs();
  return alone(() => {
    fs.rmSync(path.join(DIST, '.tsbuildinfo'), { force: true }); // else the compiler trusts its outdated build info
    return build();
  });
}

function isStale() {
  const built = fs.statSync(STAMP, { throwIfNoEntry: false })?.mtimeMs;
  return built === undefined || newestSource() > built;
}

/** The time of a folder changes when files are added, renamed or removed. */
function newestSource() {
  const times = ['package.json', 'tsconfig.json'].map((file) => fs.statSync(path.join(ROOT, file)).mtimeMs);
  for (const folder of sourceFolders()) {
    for (const { file, time, isFolder } of walk(path.join(ROOT, folder))) {
      if (isFolder || SOURCE.test(file) || isAsset(path.relative(ROOT, file))) times.push(time);
    }
  }
  return Math.max(...times);
}

function sourceFolders() {
  const { include } = JSON.parse(fs.readFileSync(path.join(ROOT, 'tsconfig.json'), 'utf8'));
  return include.map((pattern) => pattern.replace(/\/\*.*/, ''));
}

/** Processes that start together: one compiles, the others wait and find the work done. */
function alone(work) {
  lock();
  try {
    return work();
  } finally {
    fs.rmSync(LOCK, { force: true });
  }
}

function lock() {
  fs.mkdirSync(path.dirname(LOCK), { recursive: true });
  while (!tryLock()) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
}

function tryLock() {
  try {
    fs.writeFileSync(LOCK, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    if (!holderLives()) fs.rmSync(LOCK, { force: true });
    return false;
  }
}

function holderLives() {
  try {
    if (fs.statSync(LOCK).mtimeMs < Date.now() - LOCK_LIMIT_MS) return false;
    const pid = Number(fs.readFileSync(LOCK, 'utf8'));
    if (pid) process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function build() {
  const started = new Date();
  fs.rmSync(STAMP, { force: true });
  const { status } = spawnSync(process.execPath, [findCompiler(), '-p', 'tsconfig.json'], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) return 1;
  copyAssets();
  prune();
  makeProgramsExecutable();
  fs.writeFileSync(STAMP, '');
  fs.utimesSync(STAMP, started, started);
  return 0;
}

function findCompiler() {
  try {
    const compiler = createRequire(import.meta.url).resolve('typescript/package.json');
    // What bin/tsc starts: an optional package.
    createRequire(compiler).resolve(`@typescript/typescript-${process.platform}-${process.arch}/package.json`);
    return path.join(path.dirname(compiler), 'bin/tsc');
  } catch {
    return undefined;
  }
}

/** Installed without development or optional packages (npm ci --omit=dev): dist/ must have been built before. */
function useAsItIs() {
  if (fs.existsSync(DIST)) return 0;
  process.stderr.write(
    'dist/ is missing and TypeScript is not installed: run npm ci without --omit, or bring a built dist/\n',
  );
  return 1;
}

function copyAssets() {
  for (const { file, isFolder } of ASSETS.flatMap(([folder]) => walk(path.join(ROOT, folder)))) {
    const name = path.relative(ROOT, file);
    if (isFolder || !isAsset(name)) continue;
    fs.mkdirSync(path.dirname(path.join(DIST, name)), { recursive: true });
    fs.copyFileSync(file, path.join(DIST, name));
  }
}

function isAsset(name) {
  return ASSETS.some(([folder, kind]) => name.startsWith(`${folder}/`) && kind.test(name));
}

/** Folders are registries: compiled files of a removed source would still be loaded. */
function prune() {
  for (const { file, isFolder } of walk(DIST)) {
    const name = path.relative(DIST, file);
    const isMine = !isFolder && /\.(?:c?js|js\.map|graphql|html|css|svg)$/.test(name);
    const sources = [name, name.replace(/\.js(?:\.map)?$/, '.ts')];
    if (isMine && !sources.some((source) => fs.existsSync(path.join(ROOT, source)))) fs.rmSync(file);
  }
}

function makeProgramsExecutable() {
  const { bin = {} } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  for (const file of Object.values(bin))
    if (fs.existsSync(path.join(ROOT, file))) fs.chmodSync(path.join(ROOT, file), 0o755);
}

function walk(folder) {
  if (!fs.existsSync(folder)) return [];
  const entries = fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => path.join(entry.parentPath, entry.name));
  return [folder, ...entries].map((file) => {
    const stat = fs.statSync(file);
    return { file, time: stat.mtimeMs, isFolder: stat.isDirectory() };
  });
}
