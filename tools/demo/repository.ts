// A Git repository created from the folders of tools/demo/sample: each is copied over the previous files and committed.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import path from 'node:path';

export interface Repository {
  /** A file:// address. */
  url: string;
  /** Commits the folder on `main`, after copying the files of a version over it; '' copies none. Returns the commit. */
  commit(version: string, message: string): string;
}

const AUTHOR = { NAME: 'Ada Example', EMAIL: 'ada@example.com' };

/** @param folder is made */
export function makeRepository(folder: string): Repository {
  mkdirSync(folder, { recursive: true });
  git(folder, 'init', '--quiet', '--initial-branch=main');
  return {
    url: `file://${folder}`,
    commit(version, message) {
      if (version) cpSync(path.join(samples(), version), folder, { recursive: true });
      git(folder, 'add', '--all');
      git(folder, 'commit', '--quiet', `--message=${message}`);
      return git(folder, 'rev-parse', 'HEAD');
    },
  };
}

/** Whether this runs from its source or from dist/. */
function samples(): string {
  let folder = __dirname;
  while (!existsSync(path.join(folder, 'tools/demo/sample'))) folder = path.dirname(folder);
  return path.join(folder, 'tools/demo/sample');
}

// Nothing that the user has set for Git counts: no hooks, no signatures.
function git(folder: string, ...args: string[]): string {
  const people = ['AUTHOR', 'COMMITTER'].flatMap((role) =>
    Object.entries(AUTHOR).map(([name, value]) => [`GIT_${role}_${name}`, value]),
  );
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    ...Object.fromEntries(people),
  };
  return execFileSync('git', args, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}
