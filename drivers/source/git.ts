// Sources from git: one bare mirror per application, from which all deployments are exported.
import { createHash } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { DriverError, diskFull, type DriverContext } from '../../core/driver';
import { SourceError, type Commit, type GitRemote, type Head, type SourceDriver, type Revision } from '../source';
import type { AddressRules } from './address';
import { GitFailed, git } from './command';
import { exportCommit } from './export';
import { isFetchDiskFull, tooLarge } from './failure';
import { findHead, listHeads, type RemoteHead } from './heads';
import { queryGit, findCommits, fetchInto, hasCommit, initRepository, type Mirror } from './mirror';
import {
  withRemote,
  sweepTemporaryDirectories,
  withTemporaryDirectory,
  type RemoteAccess,
  type RemoteOptions,
} from './remote';
import { exportTemplate } from './template';

/** `sizeMb`: limit of a repository including submodules, and of its exported files. */
export interface SourceOptions extends AddressRules {
  directory: string;
  sizeMb: number;
}

interface Store {
  remotes: RemoteOptions;
  mirrors: string;
  sizeMb: number;
  limitBytes: number;
  serially: Serially;
}

type Serially = <T>(id: string, work: () => Promise<T>) => Promise<T>;

const lineMax = 200;
// Used when a commit found before the fetch is gone.
const changedSince = ' any more: the history was changed by a force push. Deploy again to get its head';

/** Opens the driver on a directory, which several processes may share as long as only one of them fetches. */
export async function openSource(options: SourceOptions): Promise<SourceDriver> {
  const { directory, sizeMb, ...rules } = options;
  const remotes = { ...rules, directory: path.join(directory, 'git') };
  const store: Store = {
    remotes,
    mirrors: path.join(directory, 'mirrors'),
    sizeMb,
    limitBytes: sizeMb * 2 ** 20,
    serially: serialize(),
  };
  // Programs of tenants traverse the directory, but cannot see its subdirectories.
  await mkdir(directory, { recursive: true, mode: 0o711 });
  await Promise.all(
    [store.mirrors, remotes.directory].map((folder) => mkdir(folder, { recursive: true, mode: 0o700 })),
  );
  await sweepTemporaryDirectories(remotes.directory);
  return {
    resolveHead: (remote, wanted, ctx) => withSourceErrors(store, () => resolveHead(store, remote, wanted, ctx)),
    listBranches: (remote, ctx) =>
      withSourceErrors(store, () => withRemote(remote, store.remotes, ctx, (access) => listHeads(access, ctx))),
    fetch: (id, remote, wanted, ctx) =>
      withSourceErrors(store, () => store.serially(id, () => fetch(store, id, remote, wanted, ctx))),
    changedPaths: (id, from, to, ctx) =>
      withSourceErrors(store, () => store.serially(id, () => changedPaths(store, id, from, to, ctx))),
    export: (id, remote, sha, target, ctx) =>
      withSourceErrors(store, () =>
        store.serially(id, () => exportCommit({ mirror: mirrorOf(store, id), remote, sha, ...store }, target, ctx)),
      ),
    exportTemplate,
    removeMirror: (id) => store.serially(id, () => rm(mirrorDirectoryOf(store, id), { recursive: true, force: true })),
    listMirrors: () => readdir(store.mirrors),
  };
}

async function resolveHead(store: Store, remote: GitRemote, wanted: Revision, ctx: DriverContext): Promise<Head> {
  return withRemote(remote, store.remotes, ctx, async (access) => {
    const head = await findHead(access, wanted, ctx);
    const { commit } = wanted;
    const host_key = (await access.hostKey?.()) ?? null;
    const found = { branch: head.branch, ...(host_key !== null && { host_key }) };
    if (!commit || head.sha.startsWith(commit.toLowerCase())) return { ...found, sha: head.sha };
    return { ...found, sha: await findInHistory(store, access, head, commit, ctx) };
  });
}

// Fetches commits without files. A remote without support for filters sends everything: the size limit applies here
// too.
function findInHistory(
  store: Store,
  { endpoint, config, env }: RemoteAccess,
  head: RemoteHead,
  commit: string,
  ctx: DriverContext,
): Promise<string> {
  return withTemporaryDirectory(store.remotes.directory, async (folder) => {
    const gitDir = path.join(folder, 'repository');
    const sizeLimit = { folder, limitBytes: store.limitBytes };
    await initRepository(gitDir, head.sha, ctx);
    const refspec = `+${head.ref}:refs/wanted/head`;
    await git(
      ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--filter=tree:0', '--', endpoint.address, refspec],
      { gitDir, config, env, sizeLimit, isRemote: true },
      ctx,
    );
    return requireOneCommit(await findCommits(gitDir, 'refs/wanted/head', commit.toLowerCase(), ctx), commit, head);
  });
}

async function fetch(
  store: Store,
  id: string,
  remote: GitRemote,
  wanted: Revision,
  ctx: DriverContext,
): Promise<Commit> {
  const mirror = mirrorOf(store, id);
  return withRemote(remote, store.remotes, ctx, async (access) => {
    const head = await findHead(access, wanted, ctx);
    // Under a hashed name, so that a branch `a` and a later branch `a/b` do not conflict.
    const kept = `refs/wanted/${createHash('sha256').update(head.ref).digest('hex')}`;
    if (
      (await queryGit(['rev-parse', '--verify', '--quiet', kept], mirror.gitDir, ctx)) !== head.sha ||
      !(await hasCommit(mirror, head.sha, ctx))
    ) {
      await fetchInto(mirror, access, { sha: head.sha, refspecs: [`+${head.ref}:${kept}`] }, ctx);
    }
    const sha = wanted.commit
      ? requireOneCommit(
          await findCommits(mirror.gitDir, kept, wanted.commit.toLowerCase(), ctx),
          wanted.commit,
          head,
          changedSince,
        )
      : await git(['rev-parse', `${kept}^{commit}`], mirror, ctx);
    return describeCommit(mirror, head.branch, sha.trim(), ctx);
  });
}

async function describeCommit(
  { gitDir }: Mirror,
  branch: string | null,
  sha: string,
  ctx: DriverContext,
): Promise<Commit> {
  const text = await git(
    ['log', '-1', '--no-show-signature', '--encoding=UTF-8', '--format=%an <%ae>%x00%s%x00%B', sha, '--'],
    { gitDir, encoding: 'latin1' },
    ctx,
  );
  const [author = '', message = '', whole = ''] = text.split('\0').map(decodeText);
  const skip = SKIP_MARKS.test(whole) && { skip: true as const };
  return { branch, sha, message: toLine(message), author: toLine(author), ...skip };
}

/** Marks of common CI services, and the same with `deploy`. */
const SKIP_MARKS = /\[(?:(?:skip|no)[ -](?:ci|cd|actions|deploy)|(?:ci|cd|actions|deploy)[ -]skip)\]/i;

/** Old commits are in Latin-1 without saying so (git-commit(1), Discussion). */
function decodeText(bytes: string): string {
  const text = Buffer.from(bytes, 'latin1').toString();
  return text.includes('\ufffd') ? bytes : text;
}

function toLine(text: string): string {
  return [...text.replace(/\p{Cc}+/gu, ' ').trim()].slice(0, lineMax).join('');
}

function requireOneCommit(found: string[], commit: string, { branch, ref }: RemoteHead, ending = ''): string {
  const [sha, other] = found;
  const where = branch === null ? ref : `the branch ${branch}`;
  if (sha === undefined) throw new SourceError('unknown_commit', `There is no commit ${commit} on ${where}${ending}.`);
  if (other !== undefined)
    throw new SourceError('unknown_commit', `Several commits on ${where} begin with ${commit}. Give more digits.`);
  return sha;
}

async function changedPaths(
  store: Store,
  id: string,
  from: string,
  to: string,
  ctx: DriverContext,
): Promise<string[] | null> {
  const mirror = mirrorOf(store, id);
  if (!(await hasCommit(mirror, from, ctx)) || !(await hasCommit(mirror, to, ctx))) return null;
  const text = await queryGit(
    ['diff-tree', '-r', '-z', '--name-only', '--no-renames', from, to, '--'],
    mirror.gitDir,
    ctx,
  );
  return text === null ? null : text.split('\0').filter(Boolean);
}

function mirrorOf(store: Store, id: string): Mirror {
  const home = mirrorDirectoryOf(store, id);
  return { directory: home, gitDir: path.join(home, 'repository'), limitBytes: store.limitBytes };
}

function mirrorDirectoryOf(store: Store, id: string): string {
  if (!/^\w[\w.-]*$/.test(id)) throw new DriverError('invalid', 'The id of the mirror is not valid.');
  return path.join(store.mirrors, id);
}

/** Serialises work by id, in the order of the calls. */
function serialize(): Serially {
  const last = new Map<string, Promise<unknown>>();
  return async (id, work) => {
    const mine = (last.get(id) ?? Promise.resolve()).then(work, work);
    last.set(id, mine);
    try {
      return await mine;
    } finally {
      if (last.get(id) === mine) last.delete(id);
    }
  };
}

// Failures outside of a connection to the remote, and the size limit, which is known only here.
async function withSourceErrors<T>({ sizeMb }: Store, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SourceError) throw error.failure === 'too_large' ? tooLarge(sizeMb) : error;
    if (isFetchDiskFull(error)) throw diskFull();
    if (error instanceof GitFailed)
      throw new SourceError(
        'unreachable',
        error.reason === 'time'
          ? 'The repository could not be read in time.'
          : 'The copy of the repository on this server could not be read. Deploy again.',
      );
    throw error;
  }
}
