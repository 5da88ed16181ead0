// The program of the release before (tools/release/before.json), built of its commit and kept for the next run.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import before from '../../../tools/release/before.json';
import { ROOT } from '../runner/repository';
import { migrationNames } from './schema_changes';

export interface ReleaseBefore {
  version: string;
  /** Its checkout, with `dist/`. */
  directory: string;
  /** Names of its migrations. */
  migrations: string[];
  /** Whether its program does not start where the database has migrations that it does not know. */
  refusesNewerSchema: boolean;
  /** Whether a connection goes on with statements that were prepared before their table got a column, and fails. */
  keepsStalePlans: boolean;
}

/** A clone may lack its history, a copy of the files all of it. */
export const hasReleaseBefore: boolean = hasCommit(before.commit);

function hasCommit(commit: string): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Five seconds of one processor the first time. */
export function buildReleaseBefore(): ReleaseBefore {
  const directory = path.join(ROOT, '.cache/releases', before.commit);
  if (!fs.existsSync(directory)) build(directory);
  const migrations = migrationNames(path.join(directory, 'migrations'));
  return {
    ...{ ...before, directory, migrations },
    refusesNewerSchema: before.refuses_newer_schema,
    keepsStalePlans: before.keeps_stale_plans,
  };
}

/** Built beside, and moved there whole: several runs may do it at once, and each may be killed. */
function build(directory: string): void {
  fs.mkdirSync(path.dirname(directory), { recursive: true });
  const draft = fs.mkdtempSync(`${directory}-`);
  fs.chmodSync(draft, 0o755);
  try {
    run(ROOT, 'bash', '-o', 'pipefail', '-c', 'git archive "$1" | tar -xf - -C "$2"', 'archive', before.commit, draft);
    installPackages(draft);
    run(draft, process.execPath, '-e', 'import("./tools/scripts/build.mjs").then((build) => build.buildIfStale())');
    if (!fs.existsSync(path.join(draft, 'dist/.built'))) throw new Error(`${before.version} could not be built`);
    fs.renameSync(draft, directory);
  } catch (error) {
    fs.rmSync(draft, { recursive: true, force: true });
    if (!fs.existsSync(directory)) throw error;
  }
}

/** Those of this checkout, where the lock file is the same. */
function installPackages(directory: string): void {
  const lock = (folder: string): string => fs.readFileSync(path.join(folder, 'package-lock.json'), 'utf8');
  if (lock(directory) === lock(ROOT)) fs.symlinkSync(path.join(ROOT, 'node_modules'), `${directory}/node_modules`);
  else run(directory, 'npm', 'ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund');
}

function run(cwd: string, program: string, ...words: string[]): void {
  execFileSync(program, words, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
}
