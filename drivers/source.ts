// Where the code of an application comes from: a Git repository at an address, or a template that the platform ships.
import type { SourceFailure, SourceRef } from '../core/context';
import type { GitRemote } from '../core/protocols/git_remote';
import type { DriverContext } from '../core/driver';

export type { GitRemote };

/** What is wanted of a repository: a commit of a branch, its head, or the head of the default branch. */
export type Revision = SourceRef;

export interface Head {
  /** null for a `ref`. */
  branch: string | null;
  sha: string;
  /** Of an ssh remote: the line of known_hosts with the key that its host has shown. */
  host_key?: string | null;
}

export interface Commit extends Head {
  /** First line, at most 200 characters. */
  message: string;
  /** `Name <address>` as Git has it, at most 200 characters. */
  author: string;
  /** The message asks not to be deployed, `[skip ci]`. */
  skip?: true;
}

/** Why a repository gave nothing: shown to the user. `unreachable` is worth a retry, the others are not. */
export type { SourceFailure };

export interface SourceDriver {
  /** Asks the remote only; keeps nothing. @throws SourceError */
  resolveHead(remote: GitRemote, wanted: Revision, ctx: DriverContext): Promise<Head>;
  /** All branches of the remote by name; keeps nothing. @throws SourceError */
  listBranches(remote: GitRemote, ctx: DriverContext): Promise<{ name: string; sha: string }[]>;
  /**
   * Brings the mirror `id` (one bare mirror per application) up to date and finds the commit in it.
   * @throws SourceError
   */
  fetch(id: string, remote: GitRemote, wanted: Revision, ctx: DriverContext): Promise<Commit>;
  /** Paths that differ between two commits of the mirror; null where one of them is not in it. */
  changedPaths(id: string, from: string, to: string, ctx: DriverContext): Promise<string[] | null>;
  /**
   * Writes the files of a commit of the mirror into an empty or absent directory, submodules included. May be repeated
   * after a crash. @throws SourceError
   */
  export(id: string, remote: GitRemote, sha: string, directory: string, ctx: DriverContext): Promise<void>;
  /** Writes the files of a shipped template. @throws SourceError no_repository */
  exportTemplate(name: string, directory: string, ctx: DriverContext): Promise<void>;
  /** Removes the mirror. Absent is success. */
  removeMirror(id: string, ctx: DriverContext): Promise<void>;
  /** Ids of all mirrors, for the look for orphans. */
  listMirrors(ctx: DriverContext): Promise<string[]>;
}

/** The message is a sentence for users: it names no path of the host and no credential. */
export class SourceError extends Error {
  override readonly name = 'SourceError';

  constructor(
    readonly failure: SourceFailure,
    message: string,
  ) {
    super(message);
  }
}
