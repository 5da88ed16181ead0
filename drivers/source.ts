// Sources of applications: a Git repository at an address, or a template shipped with the platform.
import type { SourceFailure, SourceRef } from '../core/context';
import type { GitRemote } from '../core/protocols/git_remote';
import type { DriverContext } from '../core/driver';

export type { GitRemote };

/** The requested revision: a commit of a branch, its head, or the head of the default branch. */
export type Revision = SourceRef;

export interface Head {
  /** null for a `ref`. */
  branch: string | null;
  sha: string;
  /** For ssh remotes: the known_hosts line with the key presented by the host. */
  host_key?: string | null;
}

export interface Commit extends Head {
  /** First line, at most 200 characters. */
  message: string;
  /** `Name <address>` as in Git, at most 200 characters. */
  author: string;
  /** The message contains a mark such as `[skip ci]`. */
  skip?: true;
}

/** Reason of a failure, shown to the user. Only `unreachable` is worth a retry. */
export type { SourceFailure };

export interface SourceDriver {
  /** Queries the remote only; stores nothing. @throws SourceError */
  resolveHead(remote: GitRemote, wanted: Revision, ctx: DriverContext): Promise<Head>;
  /** All branches of the remote by name; stores nothing. @throws SourceError */
  listBranches(remote: GitRemote, ctx: DriverContext): Promise<{ name: string; sha: string }[]>;
  /**
   * Fetches into the mirror `id` (one bare mirror per application) and finds the commit in it.
   * @throws SourceError
   */
  fetch(id: string, remote: GitRemote, wanted: Revision, ctx: DriverContext): Promise<Commit>;
  /** Paths that differ between two commits of the mirror; null where one of them is not in it. */
  changedPaths(id: string, from: string, to: string, ctx: DriverContext): Promise<string[] | null>;
  /**
   * Writes the files of a commit of the mirror into an empty or absent directory, including submodules. Repeatable
   * after a crash. @throws SourceError
   */
  export(id: string, remote: GitRemote, sha: string, directory: string, ctx: DriverContext): Promise<void>;
  /** Writes the files of a shipped template. @throws SourceError no_repository */
  exportTemplate(name: string, directory: string, ctx: DriverContext): Promise<void>;
  /** Removes the mirror. Absent is success. */
  removeMirror(id: string, ctx: DriverContext): Promise<void>;
  /** Ids of all mirrors, for the orphan sweep. */
  listMirrors(ctx: DriverContext): Promise<string[]>;
}

/** The message is shown to users: it contains no host path and no credential. */
export class SourceError extends Error {
  override readonly name = 'SourceError';

  constructor(
    readonly failure: SourceFailure,
    message: string,
  ) {
    super(message);
  }
}
