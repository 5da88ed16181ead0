// External store of backups: named files in an operator's bucket. Uploads may be interrupted, so a backup must be
// written with its manifest last.
import type { Readable } from 'node:stream';
import type { DriverContext } from '../core/driver';

export interface StoredFile {
  name: string;
  size_bytes: number;
  /** RFC 3339. */
  modified_at: string;
}

export interface FileDigest {
  size_bytes: number;
  /** Hexadecimal. */
  sha256: string;
}

/** All calls throw DriverError: transient where the store is unreachable, unauthorized where it rejects the key. */
export interface BackupStore {
  /** Address for display: s3://bucket/folder. */
  readonly address: string;
  /** Uploads a whole file in constant memory; an interrupted upload leaves no file. */
  upload(name: string, file: string, ctx: DriverContext): Promise<FileDigest>;
  /** Writes a text, and replaces an existing file. */
  write(name: string, text: string, ctx: DriverContext): Promise<void>;
  /** null for a missing file. */
  read(name: string, ctx: DriverContext): Promise<string | null>;
  has(name: string, ctx: DriverContext): Promise<boolean>;
  /** Content of a file. @throws DriverError conflict for a missing file */
  open(name: string, ctx: DriverContext): Promise<Readable>;
  /** Downloads to a new file in constant memory; resumes after a broken connection. */
  download(name: string, file: string, ctx: DriverContext): Promise<FileDigest>;
  /** In the order of names. */
  list(prefix: string, ctx: DriverContext): AsyncIterable<StoredFile>;
  /** The next path segments below a prefix that ends with a slash. */
  listFolders(prefix: string, ctx: DriverContext): AsyncIterable<string>;
  /** Absent is success. */
  remove(name: string, ctx: DriverContext): Promise<void>;
  /** Aborts uploads below a prefix that were begun before this time and never completed. @returns their number */
  removeUnfinished(prefix: string, before: Date, ctx: DriverContext): Promise<number>;
}
