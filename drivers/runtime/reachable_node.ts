// Node.js for units of users that cannot enter the directory that it is installed in, such as a version manager in the
// home of root.
import { cp, mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises';
import { existsSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { run } from '../../core/process/command';
import { unboundedContext } from '../../core/driver';

const PROGRAMS = ['npm', 'npx'] as const;

/**
 * A copy of the Node.js that runs us, with its npm, whole or not at all.
 * @param directory of copies, which other users can enter
 * @returns the directory of its programs
 */
export async function copyNode(directory: string): Promise<string> {
  const target = path.join(directory, `node-${process.versions.node}`);
  const bin = path.join(target, 'bin');
  if (existsSync(target)) return bin;
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const staging = await mkdtemp(path.join(directory, '.staging-'));
  try {
    await copyInto(staging);
    // Another process may have been faster.
    await rename(staging, target).catch((error: unknown) => {
      if (!existsSync(target)) throw error;
    });
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
  return bin;
}

async function copyInto(staging: string): Promise<void> {
  await mkdir(path.join(staging, 'bin'));
  await cp(process.execPath, path.join(staging, 'bin/node'));
  const npm = npmPackage();
  if (npm !== null) {
    await cp(npm, path.join(staging, 'lib/node_modules/npm'), { recursive: true, verbatimSymlinks: true });
    for (const name of PROGRAMS)
      await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, path.join(staging, 'bin', name));
  }
  await run('chmod', ['-R', 'a+rX', staging], unboundedContext());
}

/** The directory of the package that the npm beside Node.js belongs to. */
function npmPackage(): string | null {
  const program = path.join(path.dirname(process.execPath), 'npm');
  if (!existsSync(program)) return null;
  const found = path.dirname(path.dirname(realpathSync(program)));
  return existsSync(path.join(found, 'bin/npm-cli.js')) ? found : null;
}
