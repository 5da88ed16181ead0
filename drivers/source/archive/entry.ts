// Entries of an archive.
import { SourceError } from '../../source';

export type EntryKind = 'file' | 'directory' | 'symlink' | 'link';

/** An entry as found by the reader of a format. */
export interface RawEntry {
  name: string;
  kind: EntryKind;
  isExecutable: boolean;
  /** Size of the content in bytes, as declared in the archive. */
  size: number;
  /** Target of a link. */
  target: string;
  content(): AsyncIterable<Buffer>;
}

/** An entry that may be written: its path is inside the source. */
export interface ArchiveEntry extends RawEntry {
  parts: string[];
  /** Target path of a hard link. */
  targetParts: string[];
}

/** An upload that is not a valid source. The message is shown to users. */
export function brokenArchive(message: string): SourceError {
  return new SourceError('refused', message);
}
