// A bare repository of ours. It is made and filled in steps that may be cut off anywhere; the next call mends what is
// left.
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import { GitFailed, git, killGroup, measureDirectory } from './command';
import type { RemoteAccess } from './remote';

export interface Mirror {
  /** What is counted: this repository and those of its submodules. */
  directory: string;
  gitDir: string;
  limitBytes: number;
}

/** More packs than this are made one: each fetch brings a pack. */
const packsMax = 40;

/** Ready to be fetched into: there, whole as far as one can see, and nobody else at it. */
async function ensureMirror(mirror: Mirror, ctx: DriverContext): Promise<void> {
  await killPreviousFetch(mirror);
  if (await isWhole(mirror)) return removeLeftovers(mirror.gitDir);
  await rm(mirror.gitDir, { recursive: true, force: true });
  await mkdir(path.dirname(mirror.gitDir), { recursive: true, mode: 0o700 });
  await git(['init', '--bare', '--quiet', '--template=', mirror.gitDir], {}, ctx);
}

/**
 * Fetches the refspecs. A mirror that has grown too large with what is no longer wanted, or that is damaged, is begun
 * anew once.
 * @throws GitFailed; `too_large` when the repository itself is, and then nothing is left of it
 */
export async function fetchInto(
  mirror: Mirror,
  access: RemoteAccess,
  refspecs: string[],
  ctx: DriverContext,
): Promise<void> {
  const isNew = !(await isWhole(mirror));
  try {
    await ensureMirror(mirror, ctx);
    await fetchOnce(mirror, access, refspecs, ctx);
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    if (error.reason === 'too_large') await rm(mirror.directory, { recursive: true, force: true });
    if (isNew || !(error.reason === 'too_large' || isDamage(error))) throw error;
    await rm(mirror.gitDir, { recursive: true, force: true });
    return fetchInto(mirror, access, refspecs, ctx);
  }
}

/** Whether all of the commit's tree can be expected: commits come whole, or not at all. */
export async function hasCommit({ gitDir }: Mirror, sha: string, ctx: DriverContext): Promise<boolean> {
  return (await queryGit(['cat-file', '-t', sha], gitDir, ctx)) === 'commit';
}

/** What git says about the repository, without line end; null where it knows no answer. */
export async function queryGit(args: string[], gitDir: string, ctx: DriverContext): Promise<string | null> {
  if (!(await exists(gitDir))) return null;
  try {
    return (await git(args, { gitDir }, ctx)).trimEnd();
  } catch (error) {
    if (error instanceof GitFailed && error.reason === 'code') return null;
    throw error;
  }
}

/** Commits of the ref that begin with the digits: two at most. */
export async function findCommits(gitDir: string, ref: string, digits: string, ctx: DriverContext): Promise<string[]> {
  const found: string[] = [];
  let rest = '';
  const inspect = (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    found.push(...lines.filter((line) => line.startsWith(digits)));
    return found.length > 1 || (digits.length === 40 && found.length > 0) ? ('enough' as const) : undefined;
  };
  await git(['rev-list', ref, '--'], { gitDir, onOutput: inspect }, ctx);
  return found.slice(0, 2);
}

async function fetchOnce(
  mirror: Mirror,
  { endpoint, config, env }: RemoteAccess,
  refspecs: string[],
  ctx: DriverContext,
): Promise<void> {
  const args = [
    'fetch',
    '--quiet',
    '--no-tags',
    '--no-write-fetch-head',
    '--no-auto-maintenance',
    '--',
    endpoint.address,
    ...refspecs,
  ];
  const sizeLimit = { folder: mirror.directory, limitBytes: mirror.limitBytes };
  await git(args, { gitDir: mirror.gitDir, config, env, sizeLimit, onStart: (pid) => recordFetch(mirror, pid) }, ctx);
  await rm(fetchRecordOf(mirror), { force: true });
  if ((await measureDirectory(mirror.directory)) > mirror.limitBytes) throw new GitFailed('too_large', '');
  if ((await listPacks(mirror)).length > packsMax)
    await git(['repack', '-a', '-d', '-k', '-q'], { gitDir: mirror.gitDir }, ctx);
}

/** What Git says of a repository whose files are broken. */
const DAMAGES = new RegExp(
  'corrupt|loose object|packfile .* (cannot|is)|bad (object|signature|index)|unable to read|' +
    "missing (blob|tree|commit)|Could not read|did not send all necessary|not a git repository: '",
  'i',
);

function isDamage({ reason: end, stderr }: GitFailed): boolean {
  return end === 'code' && DAMAGES.test(stderr);
}

async function isWhole({ gitDir }: Mirror): Promise<boolean> {
  const parts = await Promise.all(['HEAD', 'config', 'objects', 'refs'].map((name) => exists(path.join(gitDir, name))));
  return parts.every(Boolean);
}

async function removeLeftovers(gitDir: string): Promise<void> {
  const names = await readdir(gitDir, { recursive: true });
  const stale = names.filter(
    (name) =>
      name.endsWith('.lock') ||
      /^objects\/(pack\/)?(\.?tmp|tmp)[_-]|^objects\/(tmp_objdir|incoming)-[^/]*$|^objects\/pack\/\.tmp-/.test(name),
  );
  await Promise.all(stale.map((name) => rm(path.join(gitDir, name), { recursive: true, force: true })));
}

async function listPacks({ gitDir }: Mirror): Promise<string[]> {
  return (await readdir(path.join(gitDir, 'objects/pack'))).filter((name) => name.endsWith('.pack'));
}

// A control plane that was killed leaves its git running. It is ended before another one works on the same files.
async function killPreviousFetch(mirror: Mirror): Promise<void> {
  const [pid, started] = (await readFile(fetchRecordOf(mirror), 'utf8').catch(() => '')).split(' ');
  if (pid && started && (await readStartTime(Number(pid))) === started) killGroup(Number(pid));
  await rm(fetchRecordOf(mirror), { force: true });
}

async function recordFetch(mirror: Mirror, pid: number): Promise<void> {
  await writeFile(fetchRecordOf(mirror), `${pid} ${(await readStartTime(pid)) ?? ''}`);
}

function fetchRecordOf({ gitDir }: Mirror): string {
  return `${gitDir}.fetching`;
}

/** Field 22 of /proc/pid/stat (proc(5)); null where the system has none. */
async function readStartTime(pid: number): Promise<string | null> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? null;
}

function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
