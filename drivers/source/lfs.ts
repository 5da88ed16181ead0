// Large files (Git LFS): pointers in the files of a commit are replaced by their content. The platform implements the
// protocol itself, since git-lfs connects to any address named by a repository or its server (docs/decisions/0044).
import { chmod, constants, copyFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import type { GitRemote } from '../source';
import { git, GitFailed } from './command';
import { tooLarge } from './failure';
import { queryGit, type Mirror } from './mirror';
import { withRemote, type RemoteOptions } from './remote';
import { requestDownloads, BATCH_MAX, type Download } from './lfs/batch';
import { fetchLargeObject, hasLargeObject, largeObjectPath, pruneLargeObjects } from './lfs/objects';
import { readPointers, type LargeFile } from './lfs/pointer';
import { findLfsServer } from './lfs/server';

/** The checked out files of a commit, and their origin. */
interface CheckedOut {
  mirror: Mirror;
  remote: GitRemote;
  sha: string;
  remotes: RemoteOptions;
  directory: string;
}

const PARALLEL = 4;

/** Paths that `.gitattributes` assigns to Git LFS, as bytes. The index has the commit, the work tree its files. */
export async function listLargePaths(
  gitDir: string,
  env: Record<string, string>,
  ctx: DriverContext,
): Promise<Buffer[]> {
  const args = ['ls-files', '-z', '--', ':(top,attr:filter=lfs)'];
  const text = await git(args, { gitDir, env, encoding: 'latin1' }, ctx);
  return text
    .split('\0')
    .filter(Boolean)
    .map((name) => Buffer.from(name, 'latin1'));
}

/** @throws SourceError */
export async function fillLargeFiles(
  files: CheckedOut,
  paths: readonly Buffer[],
  budget: { bytes: number },
  ctx: DriverContext,
): Promise<void> {
  const large = await readPointers(files.directory, paths);
  if (!large.length) return;
  for (const { size } of large) budget.bytes -= size;
  if (budget.bytes < 0) throw tooLarge();
  const store = path.join(files.mirror.directory, 'lfs');
  await fetchMissing(files, store, large, ctx);
  for (const { path: name, oid } of large) await replaceFile(largeObjectPath(store, oid), name);
  await pruneLargeObjects(store, files.mirror.limitBytes / 2);
}

async function fetchMissing(files: CheckedOut, store: string, large: LargeFile[], ctx: DriverContext): Promise<void> {
  const missing = new Map<string, LargeFile>();
  for (const file of large) if (!(await hasLargeObject(store, file))) missing.set(file.oid, file);
  if (!missing.size) return;
  const configured = await configuredUrl(files, ctx);
  await withRemote(files.remote, files.remotes, ctx, async (access) => {
    const server = await findLfsServer(files.remote, access, configured, files.remotes, ctx);
    const wanted = [...missing.values()];
    for (let from = 0; from < wanted.length; from += BATCH_MAX) {
      const downloads = await requestDownloads(server, wanted.slice(from, from + BATCH_MAX), ctx);
      await fetchAll(
        downloads,
        (download, signal) => fetchLargeObject(server, store, download, { ...ctx, signal }),
        ctx,
      );
    }
  });
}

/** Downloads a few at a time. The first failure aborts the others. */
async function fetchAll(
  downloads: readonly Download[],
  fetchOne: (download: Download, signal: AbortSignal) => Promise<void>,
  ctx: DriverContext,
): Promise<void> {
  const failed = new AbortController();
  const signal = AbortSignal.any([ctx.signal, failed.signal]);
  const next = downloads.values();
  const work = async (): Promise<void> => {
    for (const download of next) {
      if (signal.aborted) return;
      await fetchOne(download, signal);
    }
  };
  const failures: unknown[] = [];
  const note = (error: unknown): void => {
    failures.push(error);
    failed.abort();
  };
  await Promise.all(Array.from({ length: PARALLEL }, () => work().catch(note)));
  if (ctx.signal.aborted) throw new GitFailed('time', '');
  if (failures.length) throw failures[0];
}

/** `lfs.url` in the `.lfsconfig` of the commit. */
async function configuredUrl({ mirror, sha }: CheckedOut, ctx: DriverContext): Promise<string | null> {
  return queryGit(['config', '--blob', `${sha}:.lfsconfig`, '--get', 'lfs.url'], mirror.gitDir, ctx);
}

/** Keeps the mode. The file was written by git's checkout, so no link is on the path. */
async function replaceFile(from: string, to: Buffer): Promise<void> {
  const { mode } = await stat(to);
  await rm(to);
  await copyFile(from, to, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  await chmod(to, mode & 0o777);
}
