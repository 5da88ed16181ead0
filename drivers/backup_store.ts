// Where backups are kept outside of the host: files under names, in a bucket of the operator. Whatever can put files
// into a bucket can make a half of a backup, so whoever stores one writes the file that makes it one last.
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
  /** In hex. */
  sha256: string;
}

/** Every call throws DriverError: transient where the store is away, unauthorized where it refuses the key. */
export interface BackupStore {
  /** Where it is, for people: s3://bucket/folder. */
  readonly address: string;
  /** The whole file, in constant memory; a file that is broken off is not there. */
  upload(name: string, file: string, ctx: DriverContext): Promise<FileDigest>;
  /** A text replaces what has its name. */
  write(name: string, text: string, ctx: DriverContext): Promise<void>;
  /** null where there is none. */
  read(name: string, ctx: DriverContext): Promise<string | null>;
  has(name: string, ctx: DriverContext): Promise<boolean>;
  /** Content of a file. @throws DriverError conflict where there is none */
  open(name: string, ctx: DriverContext): Promise<Readable>;
  /** To a new file on the disk, in constant memory; goes on where a connection breaks off. */
  download(name: string, file: string, ctx: DriverContext): Promise<FileDigest>;
  /** In the order of their names. */
  list(prefix: string, ctx: DriverContext): AsyncIterable<StoredFile>;
  /** The next part of the names below a prefix that ends with a slash. */
  listFolders(prefix: string, ctx: DriverContext): AsyncIterable<string>;
  /** Absent is success. */
  remove(name: string, ctx: DriverContext): Promise<void>;
  /** Ends uploads below a prefix that were begun before this time and never completed. @returns how many */
  removeUnfinished(prefix: string, before: Date, ctx: DriverContext): Promise<number>;
}
