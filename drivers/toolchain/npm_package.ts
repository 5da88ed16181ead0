// Programs that are packages of npm: installed with the npm of this host, and linked.
import { chmod, mkdir, symlink } from 'node:fs/promises';
import path from 'node:path';
import { diskFull, DriverError, type DriverContext, saysDiskFull } from '../../core/driver';
import type { Tool } from '../toolchain';
import { NpmFailed, npm } from './npm_client';
import { programFile } from './packages';

/** Installs the package of a tool below `prefix`. @throws DriverError */
export async function installPackage(
  tool: Tool,
  { staging, prefix }: { staging: string; prefix: string },
  ctx: DriverContext,
): Promise<void> {
  const spec = `${tool.package}@${tool.version}`;
  // npm would not install an npm for another Node.js than its own.
  const force = tool.name === 'npm' ? ['--force'] : [];
  // Another prefix has another global configuration, without the registry and the authorities of this one.
  const globalConfig = (await npm(['config', 'get', 'globalconfig'], staging, ctx)).trim();
  const places = ['--prefix', prefix, '--globalconfig', globalConfig];
  await npm(['install', '--global', ...places, '--ignore-scripts', '--omit=dev', ...force, spec], staging, ctx).catch(
    (error: unknown) => {
      throw error instanceof NpmFailed ? Object.assign(downloadError(tool, error), { cause: error }) : error;
    },
  );
}

/** @throws DriverError */
function downloadError({ package: name, version }: Tool, error: NpmFailed): DriverError {
  if (/EINTEGRITY/.test(error.output))
    return new DriverError(
      'transient',
      `The package ${name} ${version} did not have the integrity that the npm registry states, so it was not used.`,
    );
  if (saysDiskFull(error.output)) return diskFull();
  if (/\b(E404|ETARGET)\b/.test(error.output))
    return new DriverError('invalid', `The npm registry has no package ${name} ${version}.`);
  return new DriverError('transient', `The npm registry did not send the package ${name} ${version}.`);
}

/** Links the program of the package into `bin` of `prefix`. */
export async function linkProgram(prefix: string, tool: Tool): Promise<void> {
  const file = programFile(tool.package, tool.name);
  if (file === null) return;
  const program = path.join('lib/node_modules', tool.package, file);
  await mkdir(path.join(prefix, 'bin'), { recursive: true, mode: 0o755 });
  await chmod(path.join(prefix, program), 0o755);
  await symlink(path.join('..', program), path.join(prefix, 'bin', tool.name));
}
