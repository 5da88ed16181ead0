// Files that each process of the installation reaches, whichever machine it runs on.
import type { DriverContext } from '../core/driver';
import type { FileDigest, StoredFile } from './backup_store';

/**
 * Names are `folder/file`. All calls throw EngineAway whatever keeps the store from its work: a wrong key, a full or a
 * missing bucket, and silence.
 */
export interface FileStore {
  /** For display: s3://bucket/folder. */
  readonly address: string;
  /** Copies a file to the store; it is durable when this resolves. An interrupted call leaves no file. */
  put(name: string, file: string, ctx: DriverContext): Promise<FileDigest>;
  /** Copies a file from the store to a new path. @returns null where the store has no such file */
  fetch(name: string, file: string, ctx: DriverContext): Promise<FileDigest | null>;
  /** Files whose names begin like this, in the order of names. */
  list(prefix: string, ctx: DriverContext): AsyncIterable<StoredFile>;
  /** Absent is success. */
  remove(name: string, ctx: DriverContext): Promise<void>;
  /** Removes what calls of `put` have left that were interrupted, and began before this time. */
  removeUnfinished(prefix: string, before: Date, ctx: DriverContext): Promise<void>;
  /** Writes a file, finds, reads and removes it. */
  probe(ctx: DriverContext): Promise<void>;
}
