// Exports the files of a commit, including its submodules. They are written by git's checkout, which rejects paths into
// .git or through a link; their total size is checked before the first file is written.
import { createHash } from 'node:crypto';
import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../core/driver';
import { removeTree } from '../../core/process/remove_tree';
import { SourceError, type GitRemote } from '../source';
import { resolveEndpoint, isSameOrigin } from './address';
import { GitFailed, git } from './command';
import { tooLarge } from './failure';
import { fillLargeFiles, listLargePaths } from './lfs';
import { queryGit, fetchInto, hasCommit, type Mirror } from './mirror';
import { withRemote, withTemporaryDirectory, type RemoteOptions } from './remote';

interface Export {
  mirror: Mirror;
  remote: GitRemote;
  sha: string;
  remotes: RemoteOptions;
  limitBytes: number;
}

/** Limits shared by all submodules of an export. */
interface Budget {
  bytes: number;
  files: number;
  submodules: number;
}

interface Submodule {
  path: string;
  sha: string;
  address: string;
}

const filesMax = 300_000;
const submodulesMax = 20;
const depthMax = 3;

/** Files of an interrupted call in the directory are removed first. @throws SourceError, GitFailed */
export async function exportCommit(wanted: Export, directory: string, ctx: DriverContext): Promise<void> {
  // By rm(1): Node.js cannot remove files whose names are not UTF-8.
  await removeTree(directory);
  await mkdir(directory, { recursive: true });
  await exportTree(wanted, directory, { bytes: wanted.limitBytes, files: filesMax, submodules: submodulesMax }, 0, ctx);
}

async function exportTree(
  wanted: Export,
  directory: string,
  budget: Budget,
  depth: number,
  ctx: DriverContext,
): Promise<void> {
  await ensureCommit(wanted, ctx);
  const { links, hasAttributes } = await chargeBudget(wanted, budget, ctx);
  const largePaths = await checkOut(wanted, directory, hasAttributes, ctx);
  await fillLargeFiles({ ...wanted, directory }, largePaths, budget, ctx);
  if (links.size === 0) return;
  for (const submodule of await readSubmodules(wanted, links, ctx)) {
    if (depth === depthMax)
      throw new SourceError(
        'refused',
        `The submodules of the repository are nested more than ${depthMax} levels deep. Flatten them.`,
      );
    budget.submodules -= 1;
    if (budget.submodules < 0)
      throw new SourceError('refused', `The repository has more than ${submodulesMax} submodules.`);
    const target = path.join(await realpath(directory), submodule.path);
    // Whatever the tree contains, no link may lead out of the directory.
    if ((await realpath(target)) !== target)
      throw new SourceError('refused', 'The path of a submodule leads through a symbolic link. Remove the link.');
    await naming(submodule, async () =>
      exportTree(await resolveSubmodule(wanted, submodule, ctx), target, budget, depth + 1, ctx),
    );
  }
}

/** Failures name the submodule: the address of the repository itself is not at fault. */
async function naming({ path: place }: Submodule, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof SourceError) || error.failure === 'too_large') throw error;
    const inner = error.message.replace(/^The submodule /, 'Its submodule ');
    throw new SourceError(error.failure, `The submodule ${shownPath(place)} could not be fetched: ${inner}`);
  }
}

/** The path is the tenant's, and may have any length. */
function shownPath(place: string): string {
  return JSON.stringify(place.slice(0, 100)).slice(1, -1);
}

/**
 * Fetches the commit into the mirror, if it is missing: by its id, or with all branches and tags where the remote does
 * not support fetching by id.
 */
async function ensureCommit({ mirror, remote, sha, remotes }: Export, ctx: DriverContext): Promise<void> {
  if (await hasCommit(mirror, sha, ctx)) return;
  await withRemote(remote, remotes, ctx, async (access) => {
    try {
      await fetchInto(mirror, access, { sha, refspecs: [`+${sha}:refs/wanted/${sha}`] }, ctx);
    } catch (error) {
      if (!(error instanceof GitFailed && error.reason === 'code')) throw error;
      const refspecs = ['+refs/heads/*:refs/wanted/heads/*', '+refs/tags/*:refs/wanted/tags/*'];
      await fetchInto(mirror, access, { sha, refspecs }, ctx);
    }
  });
  if (!(await hasCommit(mirror, sha, ctx)))
    throw new SourceError('unknown_commit', `The repository does not have the commit ${sha} any more.`);
}

/** Result of listing a commit. */
interface Listing {
  /** Commit ids of submodules by path. */
  links: Map<string, string>;
  /** There is a .gitattributes, which may declare large files. */
  hasAttributes: boolean;
}

/** Charges files and folders to the budget. */
async function chargeBudget({ mirror, sha }: Export, budget: Budget, ctx: DriverContext): Promise<Listing> {
  const links = new Map<string, string>();
  let hasAttributes = false;
  let rest = '';
  const count = (entry: string) => {
    const [, type, id = '', size = '', name = ''] = /^\d+ (\w+) ([0-9a-f]+) +(\S+)\t([^]*)$/.exec(entry) ?? [];
    budget.files -= 1;
    budget.bytes -= Number(size) || 0;
    if (type === 'commit') links.set(Buffer.from(name, 'latin1').toString(), id);
    if (/(^|\/)\.gitattributes$/.test(name)) hasAttributes = true;
  };
  const read = (chunk: Buffer) => {
    const entries = (rest + chunk.toString('latin1')).split('\0');
    rest = entries.pop() ?? '';
    entries.forEach(count);
    return budget.files < 0 || budget.bytes < 0 ? ('enough' as const) : undefined;
  };
  await git(['ls-tree', '-r', '-t', '-l', '-z', '--full-tree', sha], { gitDir: mirror.gitDir, onOutput: read }, ctx);
  if (budget.files < 0) throw new SourceError('too_large', `The source has more than ${filesMax} files.`);
  if (budget.bytes < 0) throw tooLarge();
  return { links, hasAttributes };
}

/** Returns the paths of large files, if requested. */
async function checkOut(
  { mirror: { gitDir }, sha, remotes }: Export,
  directory: string,
  hasAttributes: boolean,
  ctx: DriverContext,
): Promise<Buffer[]> {
  await mkdir(directory, { recursive: true });
  return withTemporaryDirectory(remotes.directory, async (folder) => {
    const options = { gitDir, env: { GIT_INDEX_FILE: path.join(folder, 'index'), GIT_WORK_TREE: directory } };
    await git(['read-tree', sha], options, ctx);
    await git(['checkout-index', '--all', '--force', '--quiet'], options, ctx);
    return hasAttributes ? listLargePaths(gitDir, options.env, ctx) : [];
  });
}

/**
 * Submodules listed in .gitmodules. The folder of one stays empty that has no entry, and thus no address, or that Git
 * would not fetch by itself (`update = none`).
 */
async function readSubmodules(
  { mirror, sha, remote }: Export,
  links: Map<string, string>,
  ctx: DriverContext,
): Promise<Submodule[]> {
  const text = await queryGit(
    ['config', '--null', '--blob', `${sha}:.gitmodules`, '--get-regexp', '^submodule\\..*\\.(path|url|update)$'],
    mirror.gitDir,
    ctx,
  );
  const modules = new Map<string, { path?: string; url?: string; update?: string }>();
  for (const entry of (text ?? '').split('\0').filter(Boolean)) {
    const [key = '', value = ''] = [entry.slice(0, entry.indexOf('\n')), entry.slice(entry.indexOf('\n') + 1)];
    const name = key.slice('submodule.'.length, key.lastIndexOf('.'));
    modules.set(name, { ...modules.get(name), [key.slice(key.lastIndexOf('.') + 1)]: value });
  }
  return [...modules.values()].flatMap((module) => {
    const sha = links.get(module.path ?? '');
    return sha === undefined || !module.path || !module.url || module.update === 'none'
      ? []
      : [{ path: module.path, sha, address: toReadableAddress(toAbsoluteAddress(module.url, remote.address), remote) }];
  });
}

/** `./x` and `../x` are relative to the address of the repository (gitmodules(5)). */
function toAbsoluteAddress(url: string, base: string): string {
  if (!/^\.\.?\//.test(url)) return url;
  const [, root = '', folders = ''] = /^([a-z]+:\/\/[^/]*\/|[^/]*?:)(.*)$/i.exec(base.replace(/\/+$/, '')) ?? [];
  const parts = folders.split('/');
  for (const part of url.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  }
  return root + parts.join('/');
}

/** Tokens work over https only: an ssh address of a submodule on the same host is converted. */
function toReadableAddress(address: string, { address: base, credential }: GitRemote): string {
  if (credential?.kind !== 'basic' || !URL.canParse(base)) return address;
  const { hostname, origin } = new URL(base);
  const match = /^(?:ssh:\/\/)?(?:[\w.-]+@)([\w.-]+)(?::\d+)?[/:](.+)$/.exec(address);
  return match?.[1]?.toLowerCase() === hostname ? `${origin}/${match[2]}` : address;
}

async function resolveSubmodule(from: Export, { sha, address }: Submodule, ctx: DriverContext): Promise<Export> {
  const [here, there] = [
    await resolveEndpoint(from.remote.address, from.remotes, ctx),
    await resolveEndpoint(address, from.remotes, ctx),
  ];
  const credential = isSameOrigin(here, there) ? from.remote.credential : undefined;
  const gitDir = path.join(from.mirror.directory, 'modules', createHash('sha256').update(there.address).digest('hex'));
  return { ...from, remote: { address, credential }, sha, mirror: { ...from.mirror, gitDir } };
}
