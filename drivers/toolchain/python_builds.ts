// Python builds of uv, which knows their list and origin, and verifies their hashes.
import { execFile } from 'node:child_process';
import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isExact } from './versions';
import { diskFull, DriverError, type DriverContext, saysDiskFull } from '../../core/driver';
import type { PublishedVersion, Tool } from '../toolchain';
import type { PythonSource } from './python_source';

export const PYTHON_PACKAGE = 'python-build-standalone';
const OUTPUT_BYTES_MAX = 16 << 20;
/** Inherited variables: access to the mirror. */
const INHERITED = /^(https?_proxy|no_proxy|all_proxy|ssl_cert_(file|dir))$/i;

/** CPython releases for this host, without variants and pre-releases. @throws DriverError */
export async function listPythons(
  uv: string,
  source: PythonSource,
  staging: string,
  ctx: DriverContext,
): Promise<PublishedVersion[]> {
  const args = ['python', 'list', '--only-downloads', '--all-versions', '--output-format', 'json'];
  const found = JSON.parse(await runUv(uv, args, source, staging, ctx)) as Record<string, unknown>[];
  return found.flatMap(({ version, implementation, variant }) =>
    implementation === 'cpython' && (variant ?? 'default') === 'default' && isExact(String(version))
      ? [{ version: String(version), node: null }]
      : [],
  );
}

/** Installs it in `prefix`, relocated to `target`. @throws DriverError */
export async function downloadPython(
  { version }: Tool,
  uv: string,
  source: PythonSource,
  { staging, prefix, target }: { staging: string; prefix: string; target: string },
  ctx: DriverContext,
): Promise<void> {
  const mirror = source.mirror === null ? [] : ['--mirror', source.mirror];
  const installed = path.join(staging, 'pythons');
  const args = ['python', 'install', version, '--no-bin', '--install-dir', installed, ...mirror];
  await runUv(uv, args, source, staging, ctx).catch((error: unknown) => {
    throw error instanceof UvFailed ? Object.assign(downloadError(version, error.output), { cause: error }) : error;
  });
  const name = (await readdir(installed)).find((one) => one.startsWith(`cpython-${version}-`));
  if (name === undefined) throw new DriverError('transient', `Python ${version} was not installed by uv.`);
  await rename(path.join(installed, name), prefix);
  await moveSettings(prefix, path.join(installed, name), target);
}

/** Replaces the directory in the settings used to compile extensions. */
async function moveSettings(prefix: string, from: string, to: string): Promise<void> {
  for (const entry of await readdir(path.join(prefix, 'lib'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/^_sysconfigdata_.*\.py$|\.pc$/.test(entry.name)) continue;
    const file = path.join(entry.parentPath, entry.name);
    const text = await readFile(file, 'utf8');
    if (text.includes(from)) await writeFile(file, text.replaceAll(from, to));
  }
}

export class UvFailed extends Error {
  override readonly name = 'UvFailed';

  constructor(readonly output: string) {
    super('uv failed');
  }
}

function downloadError(version: string, output: string): DriverError {
  if (/hash mismatch/i.test(output))
    return new DriverError('transient', `The Python ${version} of the mirror does not have the expected hash.`);
  if (saysDiskFull(output)) return diskFull();
  if (/No download found/i.test(output)) return new DriverError('invalid', `There is no build of Python ${version}.`);
  return new DriverError(
    'transient',
    `The mirror of Python builds did not send Python ${version}. PYTHON_MIRROR names its address.`,
  );
}

/** Runs uv with settings of the platform alone. @throws UvFailed, DriverError transient */
export function runUv(
  uv: string,
  args: string[],
  { builds, index }: PythonSource,
  staging: string,
  ctx: DriverContext,
): Promise<string> {
  const ours = Object.entries(process.env).filter(([name]) => INHERITED.test(name));
  const list = builds === null || args[0] !== 'python' ? [] : ['--python-downloads-json-url', builds];
  const options = {
    cwd: staging,
    signal: ctx.signal,
    env: {
      ...{ PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', ...Object.fromEntries(ours) },
      ...{ HOME: staging, UV_CACHE_DIR: `${staging}/uv-cache`, UV_HTTP_RETRIES: '1', UV_NO_PROGRESS: '1' },
      // Not an argument: it may have a password.
      UV_DEFAULT_INDEX: index,
    },
    maxBuffer: OUTPUT_BYTES_MAX,
    killSignal: 'SIGKILL' as const,
  };
  return new Promise((resolve, reject) => {
    execFile(uv, [...args, ...list, '--no-config'], options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      if (ctx.signal.aborted) return reject(new DriverError('transient', 'The program uv did not finish in time.'));
      reject(new UvFailed(`${stderr}\n${stdout}`));
    });
  });
}
