// Entries of a gzipped tar: ustar, pax and GNU.
import { createReadStream } from 'node:fs';
import { createGunzip, type Gunzip } from 'node:zlib';
import { extract, type Extract, type Header } from 'tar-stream';
import { SourceError } from '../../source';
import { brokenArchive, type EntryKind, type RawEntry } from './entry';
import { shortened } from './names';

const PIECE_BYTES = 64 * 1024;
const ANY_EXECUTE = 0o111;

const KINDS: Partial<Record<string, EntryKind>> = {
  ...{ file: 'file', 'contiguous-file': 'file', directory: 'directory', symlink: 'symlink', link: 'link' },
};
const UNUSABLE: Partial<Record<string, string>> = {
  ...{ 'character-device': 'a device', 'block-device': 'a device', fifo: 'a named pipe' },
};

/**
 * Sequential: the content of an unread entry is skipped.
 * @param bytesMax of the whole tar, with what is between its entries: gzip packs terabytes of it
 * @throws SourceError refused
 */
export async function* tarEntries(file: string, bytesMax: number): AsyncGenerator<RawEntry> {
  const input = createReadStream(file, { highWaterMark: PIECE_BYTES });
  const unzipped = createGunzip({ chunkSize: PIECE_BYTES });
  // Includes the pre-ustar format, which has no magic number; its checksum is still verified.
  const entries = extract({ allowUnknownFormat: true } as object);
  // An error of a stream is raised by the entries; who begins to read one that has ended hears only that it has.
  let failure: Error | null = null;
  const causeOf = (error: unknown): unknown => explained(failure ?? error);
  input.on('error', (error) => unzipped.destroy(error));
  unzipped.on('error', (error) => {
    failure ??= error;
    entries.destroy(error);
  });
  endBeyond(unzipped, bytesMax);
  input.pipe(unzipped).pipe(entries);
  try {
    for await (const entry of entries) {
      yield rawEntryOf(entry, causeOf);
      entry.resume();
    }
  } catch (error) {
    throw error instanceof SourceError ? error : causeOf(error);
  } finally {
    for (const stream of [input, unzipped]) stream.destroy();
    entries.destroy();
  }
}

function endBeyond(unzipped: Gunzip, bytesMax: number): void {
  let bytes = 0;
  unzipped.on('data', (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= bytesMax) return;
    const megabytes = Math.floor(bytesMax / 2 ** 20);
    unzipped.destroy(new SourceError('too_large', `The archive is larger than ${megabytes} MB when it is unpacked.`));
  });
}

type Entry = Extract extends AsyncIterable<infer One> ? One : never;

function rawEntryOf(entry: Entry, causeOf: (error: unknown) => unknown): RawEntry {
  const { name, type, size = 0, mode = 0, linkname, pax } = entry.header as Header & { pax?: Record<string, string> };
  const kind = KINDS[type as string];
  if (!kind)
    throw brokenArchive(
      `The archive contains ${UNUSABLE[type as string] ?? 'an entry of an unknown type'}: \`${shortened(name)}\`.`,
    );
  if (pax && Object.keys(pax).some((key) => key.startsWith('GNU.sparse.')))
    throw brokenArchive(`\`${shortened(name)}\` is stored as a sparse file. Create the archive without --sparse.`);
  return {
    ...{ name, kind, target: linkname ?? '', isExecutable: (mode & ANY_EXECUTE) !== 0 },
    size: kind === 'file' ? size : 0,
    content: () => piecesOf(entry, causeOf),
  };
}

async function* piecesOf(entry: Entry, causeOf: (error: unknown) => unknown): AsyncGenerator<Buffer> {
  try {
    for await (const piece of entry) yield piece as Buffer;
  } catch (error) {
    throw causeOf(error);
  }
}

/** Converts errors of zlib and tar-stream about damaged input to messages. */
function explained(error: unknown): unknown {
  if (error instanceof SourceError) return error;
  const { code = '', message = '' } = error as NodeJS.ErrnoException;
  if (code === 'Z_BUF_ERROR' || /Unexpected end of data/i.test(message))
    return brokenArchive('The archive is incomplete: it ends in the middle.');
  if (/^Z_/.test(code)) return brokenArchive('The archive is damaged: gzip cannot decompress it.');
  if (/tar header|Invalid header|Header exceeds|keyword|pax|Invalid/i.test(message))
    return brokenArchive('The upload is a gzip file, but its content is not a valid tar archive.');
  return error;
}
