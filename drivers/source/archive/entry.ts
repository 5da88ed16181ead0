// What an archive consists of.
import { SourceError } from '../../source';

export type EntryKind = 'file' | 'directory' | 'symlink' | 'link';

/** As a reader of a format finds it. */
export interface RawEntry {
  name: string;
  kind: EntryKind;
  isExecutable: boolean;
  /** Bytes of the content, as the archive says. */
  size: number;
  /** Of links. */
  target: string;
  content(): AsyncIterable<Buffer>;
}

/** An entry that may be written: its parts lead nowhere but into the source. */
export interface ArchiveEntry extends RawEntry {
  parts: string[];
  /** Of a hard link. */
  targetParts: string[];
}

/** An upload that can't be a source. The message is a sentence for users. */
export function brokenArchive(message: string): SourceError {
  return new SourceError('refused', message);
}
