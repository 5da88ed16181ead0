// Poetry and PDM: programs in Python, installed by uv from lists of all their packages with hashes. To update, in
// python_programs/: `uv pip compile --universal --generate-hashes --python-version 3.10 --no-header --no-annotate
// --override no_keyring.txt -` of `poetry==2.5.1` and `poetry-plugin-pypi-mirror`, of `pdm==2.29.4` and `hishel<2`. The
// override is `keyring ; sys_platform == 'never'`, since credentials are variables of builds. Take out what is not for
// Linux.
import { readFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { memoize } from '../../core/memoize';
import { diskFull, DriverError, type DriverContext, saysDiskFull } from '../../core/driver';
import type { Tool, ToolName } from '../toolchain';
import { runUv, UvFailed } from './python_builds';
import type { PythonSource } from './python_source';

export type PythonProgram = Extract<ToolName, 'poetry' | 'pdm'>;

/** They run with these lines of Python, whatever those of the source. */
export const PROGRAM_PYTHONS = '>=3.10,<3.15';

/** Whether the tool is installed from a list of packages in this folder. */
export function isPythonProgram(name: ToolName): name is PythonProgram {
  return name === 'poetry' || name === 'pdm';
}

const versions = memoize(() => ({ poetry: readVersion('poetry'), pdm: readVersion('pdm') }));

/** The version of the list. */
export function programVersion(name: PythonProgram): string {
  return versions()[name];
}

function readVersion(name: PythonProgram): string {
  const version = new RegExp(`^${name}==(\\S+)`, 'm').exec(readFileSync(listOf(name), 'utf8'))?.[1];
  if (version === undefined) throw new Error(`The list of ${name} does not name its version.`);
  return version;
}

function listOf(name: PythonProgram): string {
  return path.join(__dirname, 'python_programs', `${name}.requirements`);
}

/** Installs it in `prefix`, from where it may be moved. @param python path or range @throws DriverError, UvFailed */
export async function installProgram(
  { name, version }: Tool & { name: PythonProgram },
  { uv, python }: { uv: string; python: string },
  source: PythonSource,
  { staging, prefix }: { staging: string; prefix: string },
  ctx: DriverContext,
): Promise<void> {
  // Its Python must not come before that of the source in PATH.
  const environment = path.join(prefix, 'environment');
  const run = (args: string[]) => runUv(uv, args, source, staging, ctx);
  await run(['venv', '--relocatable', '--no-project', '--no-python-downloads', '--python', python, environment]);
  const target = ['--python', path.join(environment, 'bin/python')];
  const list = ['--require-hashes', '--no-deps', '--compile-bytecode', '-r', listOf(name)];
  await run(['pip', 'install', ...target, ...list]).catch((error: unknown) => {
    throw error instanceof UvFailed ? Object.assign(installError(name, version, error), { cause: error }) : error;
  });
  await mkdir(path.join(prefix, 'bin'), { mode: 0o755 });
  await symlink(path.join('../environment/bin', name), path.join(prefix, 'bin', name));
}

function installError(name: string, version: string, { output }: UvFailed): DriverError {
  if (/hash mismatch/i.test(output))
    return new DriverError('transient', `A package of ${name} ${version} does not have the expected hash.`);
  if (saysDiskFull(output)) return diskFull();
  return new DriverError('transient', `The Python package index did not send ${name} ${version} with its packages.`);
}
