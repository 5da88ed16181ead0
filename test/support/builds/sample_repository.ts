// One Git repository on disk for tests that need any: a branch for everybody who wants one of their own.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Settings of a service that may read it. */
export const SAMPLE_SETTINGS = { ALLOW_LOCAL_GIT: '1' };

export const SAMPLE_BRANCHES = 500;

/** `main`, and branch-1 to branch-500. */
export const sampleBranch = (number: number): string => `branch-${number}`;

let address: string | null = null;

/** Its file:// address. Made when it is first wanted, gone with the process. */
export function sampleRepository(): string {
  address ??= make();
  return address;
}

function make(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'platform-api-repository-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  git(folder, ['init', '--bare', '--quiet', '--initial-branch=main', '.']);
  const content = 'Hello\n';
  git(
    folder,
    ['fast-import', '--quiet'],
    'commit refs/heads/main\ncommitter Ada Example <ada@example.com> 1767225600 +0000\ndata 5\nFirst\n' +
      `M 100644 inline index.html\ndata ${content.length}\n${content}\n`,
  );
  const head = git(folder, ['rev-parse', 'refs/heads/main']);
  const refs = Array.from({ length: SAMPLE_BRANCHES }, (_, index) => [
    `refs/heads/${sampleBranch(index + 1)}`,
    `refs/pull/${index + 1}/head`,
  ]).flat();
  git(folder, ['update-ref', '--stdin'], refs.map((ref) => `create ${ref} ${head}\n`).join(''));
  git(folder, ['pack-refs', '--all']);
  return `file://${folder}`;
}

function git(folder: string, args: string[], input?: string): string {
  const env = {
    PATH: process.env.PATH,
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
  };
  return execFileSync('git', args, {
    cwd: folder,
    env,
    input,
    encoding: 'utf8',
    stdio: ['pipe', 'pipe', 'pipe'],
  }).trim();
}
