// A bare mirror. It is created and filled in steps that may be interrupted anywhere; the next call repairs it.
import { mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import { GitFailed, git, killGroup, measureDirectory } from './command';
import type { RemoteAccess } from './remote';

export interface Mirror {
  /** Directory whose size is limited: this repository and those of its submodules. */
  directory: string;
  gitDir: string;
  limitBytes: number;
}

/** Beyond this number, packs are merged: each fetch adds a pack. */
const packsMax = 40;
const SHA1_DIGITS = 40;

/**
 * Ensures that the mirror exists, appears complete, has ids of the length of `sha`, and is used by no other process.
 */
async function ensureMirror(mirror: Mirror, sha: string, ctx: DriverContext): Promise<void> {
  await killPreviousFetch(mirror);
  if ((await isWhole(mirror)) && (await hasIdsLike(mirror, sha))) return removeLeftovers(mirror.gitDir);
  await rm(mirror.gitDir, { recursive: true, force: true });
  await mkdir(path.dirname(mirror.gitDir), { recursive: true, mode: 0o700 });
  await initRepository(mirror.gitDir, sha, ctx);
}

/** An empty bare repository for objects with ids like `sha`, by SHA-1 or SHA-256. */
export async function initRepository(gitDir: string, sha: string, ctx: DriverContext): Promise<void> {
  const format = sha.length > SHA1_DIGITS ? ['--object-format=sha256'] : [];
  await git(['init', '--bare', '--quiet', '--template=', ...format, gitDir], {}, ctx);
}

/** An application may change its repository for one of the other format. */
async function hasIdsLike({ gitDir }: Mirror, sha: string): Promise<boolean> {
  const config = await readFile(path.join(gitDir, 'config'), 'utf8');
  return /^\s*objectformat\s*=\s*sha256\s*$/im.test(config) === sha.length > SHA1_DIGITS;
}

/**
 * Fetches the refspecs; `sha` is one of their commits. A mirror that is damaged, or too large because of unreferenced
 * objects, is recreated once.
 * @throws GitFailed; `too_large` when the repository itself is too large; it is removed then
 */
export async function fetchInto(
  mirror: Mirror,
  access: RemoteAccess,
  { sha, refspecs }: { sha: string; refspecs: string[] },
  ctx: DriverContext,
): Promise<void> {
  const isNew = !(await isWhole(mirror));
  try {
    await ensureMirror(mirror, sha, ctx);
    await fetchOnce(mirror, access, refspecs, ctx);
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    if (error.reason === 'too_large') await rm(mirror.directory, { recursive: true, force: true });
    if (isNew || !(error.reason === 'too_large' || isDamage(error))) throw error;
    await rm(mirror.gitDir, { recursive: true, force: true });
    return fetchInto(mirror, access, { sha, refspecs }, ctx);
  }
}

/** Whether the commit and its tree exist: git fetches commits completely or not at all. */
export async function hasCommit({ gitDir }: Mirror, sha: string, ctx: DriverContext): Promise<boolean> {
  return (await queryGit(['cat-file', '-t', sha], gitDir, ctx)) === 'commit';
}

/** Output of a git query, without line end; null where git fails. */
export async function queryGit(args: string[], gitDir: string, ctx: DriverContext): Promise<string | null> {
  if (!(await exists(gitDir))) return null;
  try {
    return (await git(args, { gitDir }, ctx)).trimEnd();
  } catch (error) {
    if (error instanceof GitFailed && error.reason === 'code') return null;
    throw error;
  }
}

/** Commits of the ref with these leading digits: at most two. */
export async function findCommits(gitDir: string, ref: string, digits: string, ctx: DriverContext): Promise<string[]> {
  const found: string[] = [];
  let rest = '';
  const inspect = (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    found.push(...lines.filter((line) => line.startsWith(digits)));
    return found.length > 1 || found.includes(digits) ? ('enough' as const) : undefined;
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
  const onStart = (pid: number) => recordFetch(mirror, pid);
  await git(args, { gitDir: mirror.gitDir, config, env, sizeLimit, onStart, isRemote: true }, ctx);
  await rm(fetchRecordOf(mirror), { force: true });
  if ((await measureDirectory(mirror.directory)) > mirror.limitBytes) throw new GitFailed('too_large', '');
  if ((await listPacks(mirror)).length > packsMax)
    await git(['repack', '-a', '-d', '-k', '-q'], { gitDir: mirror.gitDir }, ctx);
}

/** Messages of Git about a damaged repository. */
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

// A killed control plane leaves its git running. It must end before another one works on the same files.
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

/** Field 22 of /proc/pid/stat (proc(5)); null where the system has no /proc. */
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
