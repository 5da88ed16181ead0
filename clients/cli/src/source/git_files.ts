// Which files Git tracks or would add, asked of Git itself: it alone knows all files of patterns, what is tracked, and
// how this system compares names.
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { Failure } from '../failure';

export interface GitFiles {
  files: { name: string; isTracked: boolean }[];
  /** Submodules that are not checked out. */
  missing: string[];
  /** Path of the folder below the top of the repository: empty, or with a slash at its end. */
  prefix: string;
  /** Files that Git ignores. */
  listIgnored(): string[];
}

/**
 * Files below the folder; some may be deleted. A repository inside is asked for its own.
 * @returns undefined outside of a repository; `ignoredBy` where Git ignores the folder itself; `withoutGit`, the top of
 * the repository, where the program git is missing
 * @throws Failure where Git refuses
 */
export function findGitFiles(folder: string): GitFiles | { ignoredBy: string } | { withoutGit: string } | undefined {
  const top = findTop(folder);
  if (top === undefined) return undefined;
  if (isGitMissing()) return { withoutGit: top };
  const prefix = runGit(folder, ['rev-parse', '--show-prefix']);
  if (prefix === undefined) return undefined;
  const found = listFiles(folder);
  if (!found.files.length) {
    const said = runGit(folder, ['check-ignore', '--verbose', '.'], [0, 1])?.toString() ?? '';
    const [, rule] = /^(.*)\t/.exec(said) ?? [];
    if (rule !== undefined) return { ignoredBy: rule };
  }
  const listIgnored = (): string[] =>
    split(runGit(folder, ['ls-files', '-z', '--others', '--ignored', '--exclude-standard']));
  return { ...found, prefix: prefix.toString().replace(/\n$/, ''), listIgnored };
}

function findTop(folder: string): string | undefined {
  if (fs.existsSync(path.join(folder, '.git'))) return folder;
  return path.dirname(folder) === folder ? undefined : findTop(path.dirname(folder));
}

function isGitMissing(): boolean {
  const { error } = spawnSync('git', ['--version'], { cwd: path.dirname(process.execPath), stdio: 'ignore' });
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
}

const SUBMODULE = '160000';

function listFiles(folder: string): Pick<GitFiles, 'files' | 'missing'> {
  const tracked = new Map<string, string>();
  for (const entry of split(runGit(folder, ['ls-files', '-z', '--stage']))) {
    const [, mode = '', name = ''] = /^(\d+)[^\t]*\t([^]*)$/.exec(entry) ?? [];
    tracked.set(name, mode);
  }
  const others = split(runGit(folder, ['ls-files', '-z', '--others', '--exclude-standard']));
  const files = [...tracked].filter(([, mode]) => mode !== SUBMODULE).map(([name]) => ({ name, isTracked: true }));
  files.push(...others.filter((name) => !name.endsWith('/')).map((name) => ({ name, isTracked: false })));
  const modules = [...tracked].filter(([, mode]) => mode === SUBMODULE).map(([name]) => name);
  const missing: string[] = [];
  for (const name of [...modules, ...others.filter((one) => one.endsWith('/')).map((one) => one.slice(0, -1))]) {
    const inner = path.join(folder, name);
    if (!fs.existsSync(path.join(inner, '.git'))) {
      missing.push(name);
      continue;
    }
    const found = listFiles(inner);
    files.push(...found.files.map((one) => ({ ...one, name: `${name}/${one.name}` })));
    missing.push(...found.missing.map((one) => `${name}/${one}`));
  }
  return { files, missing };
}

const split = (output: Buffer | undefined): string[] => (output?.toString() ?? '').split('\0').slice(0, -1);

/** Set by hooks of Git, for the repository that they belong to. */
const OF_HOOKS = /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|PREFIX|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE)$/;

/** @returns undefined where the folder is in no repository after all, as in one of another file system */
function runGit(folder: string, args: readonly string[], codes: readonly number[] = [0]): Buffer | undefined {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OF_HOOKS.test(name)));
  // A repository can name a program for this setting.
  const all = ['-C', path.resolve(folder), '-c', 'core.fsmonitor=false', ...args];
  // Windows looks for programs in the working directory first: never in the repository.
  const cwd = path.dirname(process.execPath);
  const options = { cwd, env: { ...env, LC_ALL: 'C', GIT_OPTIONAL_LOCKS: '0' }, maxBuffer: 2 ** 31 - 1 };
  const { error, status, stdout, stderr } = spawnSync('git', all, options);
  if (!error && status !== null && codes.includes(status)) return stdout;
  const said = (error?.message ?? stderr.toString()).trim();
  if (/not a git repository \(or any/.test(said)) return undefined;
  const lines = said.split('\n').map((line) => line.trim());
  throw new Failure(
    `${folder} is in a Git repository, and Git does not say which of its files it leaves out.`,
    1,
    lines,
  );
}
