// Releases as `npm run release` makes them, kept for the tests of a run.
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { version } from '../../../package.json';
import before from '../../../tools/release/before.json';
import { ROOT } from '../runner/repository';

const run = promisify(execFile);
const KEPT = path.join(ROOT, '.cache/releases');

export const archiveName = (ofVersion = version): string => `platform-${ofVersion}-linux-${process.arch}`;

/** The release of what is checked out, as far as it is committed: a directory. 40 s of one processor the first time. */
export async function releaseOfToday(): Promise<string> {
  const { stdout } = await run('git', ['rev-parse', 'HEAD'], { cwd: ROOT });
  return kept(stdout.trim());
}

export const releaseOfBefore = (): Promise<string> => kept(before.commit);

/** Tests that run beside each other wait for one that makes it. */
async function kept(commit: string): Promise<string> {
  const directory = path.join(KEPT, `${commit}-made`);
  fs.mkdirSync(KEPT, { recursive: true });
  const lock = path.join(KEPT, `${commit}.lock`);
  dropOlder(commit);
  const program = [process.execPath, '--require', path.join(ROOT, 'test/support/runner/typescript.js'), __filename];
  await run('flock', [lock, ...program, commit, directory], { maxBuffer: 2 ** 26 });
  return directory;
}

/** A release has 95 MB. */
function dropOlder(commit: string): void {
  for (const name of fs.readdirSync(KEPT).filter((one) => one.endsWith('-made')))
    if (![commit, before.commit].includes(name.replace('-made', '')))
      fs.rmSync(path.join(KEPT, name), { recursive: true, force: true });
}

/**
 * Makes the release of a commit in a clone, with the packages of this checkout where the lock file is the same.
 * @param env of the program, beside that of this process
 */
export async function makeRelease(commit: string, directory: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
  const draft = `${directory}.draft`;
  fs.rmSync(draft, { recursive: true, force: true });
  const clone = path.join(draft, 'clone');
  const inClone = { cwd: clone, env: { ...process.env, ...env }, maxBuffer: 2 ** 26 };
  await run('git', ['clone', '--quiet', '--shared', '--no-checkout', ROOT, clone]);
  await run('git', ['checkout', '--quiet', '--detach', commit], inClone);
  const lockOf = (folder: string): string => fs.readFileSync(path.join(folder, 'package-lock.json'), 'utf8');
  if (lockOf(clone) === lockOf(ROOT)) fs.symlinkSync(path.join(ROOT, 'node_modules'), `${clone}/node_modules`);
  else await run('npm', ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'], inClone);
  const out = path.join(draft, 'out');
  await run(process.execPath, ['tools/release/release.mjs', `--out=${out}`], inClone);
  fs.renameSync(out, directory);
  fs.rmSync(draft, { recursive: true, force: true });
}

if (require.main === module) {
  const [, , commit = '', directory = ''] = process.argv;
  if (!fs.existsSync(directory))
    makeRelease(commit, directory).catch((error: unknown) => {
      console.error(error);
      process.exitCode = 1;
    });
}
