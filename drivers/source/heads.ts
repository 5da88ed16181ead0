// Refs of a remote, without a fetch.
import type { DriverContext } from '../../core/driver';
import { SourceError, type Revision } from '../source';
import { git } from './command';
import type { RemoteAccess } from './remote';

/** `ref` is the full name; `branch` is the short name, null where it is not a branch. */
export interface RemoteHead {
  ref: string;
  branch: string | null;
  sha: string;
}

/** The id of an object, by SHA-1 or SHA-256. */
const OBJECT_ID = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** @throws GitFailed, SourceError unknown_branch, empty */
export async function findHead(access: RemoteAccess, wanted: Revision, ctx: DriverContext): Promise<RemoteHead> {
  const ref = wanted.ref ?? (wanted.branch ? `refs/heads/${wanted.branch}` : 'HEAD');
  if (ref !== 'HEAD' && !isRef(ref)) throw unknownRevision(wanted);
  const { shas, symbolic } = await listRefs(access, [ref], ctx);
  const sha = shas.get(ref);
  if (sha === undefined)
    throw (await hasBranches(access, ctx))
      ? unknownRevision(wanted)
      : new SourceError('empty', 'The repository is empty. Push a first commit, then deploy again.');
  if (ref !== 'HEAD') return { ref, branch: wanted.ref ? null : (wanted.branch ?? null), sha };
  return {
    ref: symbolic ?? 'HEAD',
    branch: symbolic?.startsWith('refs/heads/') ? symbolic.slice('refs/heads/'.length) : null,
    sha,
  };
}

async function listRefs(
  { endpoint, config, env }: RemoteAccess,
  patterns: string[],
  ctx: DriverContext,
): Promise<{ shas: Map<string, string>; symbolic: string | null }> {
  const lines = (
    await git(
      ['ls-remote', '--quiet', '--symref', '--', endpoint.address, ...patterns],
      { config, env, isRemote: true },
      ctx,
    )
  )
    .split('\n')
    .map((line) => line.split('\t'));
  // A pattern also matches longer names with the same suffix; only the exact name counts.
  const shas = new Map(
    lines.flatMap(([sha, name]) =>
      name !== undefined && OBJECT_ID.test(sha ?? '') ? [[name, sha as string] as const] : [],
    ),
  );
  const symbolic =
    lines.find(([target, name]) => name === 'HEAD' && target?.startsWith('ref: '))?.[0]?.slice('ref: '.length) ?? null;
  return { shas, symbolic: symbolic !== null && isRef(symbolic) ? symbolic : null };
}

/** All branches by name. @throws GitFailed */
export async function listHeads(
  { endpoint, config, env }: RemoteAccess,
  ctx: DriverContext,
): Promise<{ name: string; sha: string }[]> {
  const text = await git(
    ['ls-remote', '--quiet', '--heads', '--', endpoint.address],
    { config, env, isRemote: true },
    ctx,
  );
  return text.split('\n').flatMap((line) => {
    const [sha = '', ref = ''] = line.split('\t');
    return OBJECT_ID.test(sha) && isRef(ref) ? [{ name: ref.slice('refs/heads/'.length), sha }] : [];
  });
}

async function hasBranches({ endpoint, config, env }: RemoteAccess, ctx: DriverContext): Promise<boolean> {
  let any = false;
  const onOutput = () => {
    any = true;
    return 'enough' as const;
  };
  await git(['ls-remote', '--quiet', '--', endpoint.address], { config, env, onOutput, isRemote: true }, ctx);
  return any;
}

/** @see https://git-scm.com/docs/git-check-ref-format */
function isRef(name: string): boolean {
  return /^refs\/[^/]/.test(name) && !/[\u0000- \u007f~^:?*[\\]|\.\.|@\{|\/\/|\/\.|\.lock(\/|$)|[/.]$/.test(name);
}

function unknownRevision({ branch, ref }: Revision): SourceError {
  if (ref) return new SourceError('unknown_branch', `The repository has no ${ref}.`);
  return new SourceError(
    'unknown_branch',
    branch
      ? `The repository has no branch ${branch}.`
      : 'The default branch of the repository has no commit. Name a branch.',
  );
}
