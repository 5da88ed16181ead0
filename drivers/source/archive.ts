// Source archives uploaded by users: a gzipped tar or a zip. The input is untrusted: each entry is validated by name
// and kind before its content is read, and the total size is checked before anything is written.
import { open } from 'node:fs/promises';
import { SourceError } from '../source';
import { checkpoint, type DriverContext } from '../../core/driver';
import { brokenArchive, type ArchiveEntry, type EntryKind, type RawEntry } from './archive/entry';
import { tarEntries } from './archive/tar';
import { zipEntries } from './archive/zip';
import { leftOutOf, partsOfEntry } from './archive/names';

export interface ArchiveLimits {
  bytes: number;
  files: number;
}

export interface ArchiveTotals {
  files: number;
  bytes: number;
  /** The single top-level folder of all files; null where there are several folders or other files. */
  folder: string | null;
}

const MAGIC_BYTES = 512;
/** Of a tar, beside the content: headers with long names and padding, and the last record. */
const TAR_ENTRY_BYTES = 4_096;
const TAR_END_BYTES = 2 ** 20;
/** Of all paths, with those of the folders above. A tar packs each of them in a few bytes. */
const PATHS_BYTES_MAX = 64 * 2 ** 20;
/** Magic numbers of unsupported formats, with their names. */
const OTHERS: [start: string, name: string][] = [
  ['425a68', 'a bzip2 file'],
  ['fd377a585a00', 'an xz file'],
  ['28b52ffd', 'a Zstandard file'],
  ['377abcaf271c', 'a 7-Zip archive'],
  ['526172211a07', 'a RAR archive'],
];

type Format = 'tar' | 'zip';

/** The format, from the first bytes. @throws SourceError refused */
async function formatOf(file: string): Promise<Format> {
  const handle = await open(file);
  const head = Buffer.alloc(MAGIC_BYTES);
  const { bytesRead } = await handle.read(head, 0, MAGIC_BYTES, 0).finally(() => handle.close());
  if (bytesRead === 0) throw brokenArchive('The upload is empty.');
  if (head[0] === 0x1f && head[1] === 0x8b) return 'tar';
  if (head.readUInt32BE(0) === 0x504b0304 || head.readUInt32BE(0) === 0x504b0506) return 'zip';
  if (head.subarray(257, 262).toString('latin1') === 'ustar')
    throw brokenArchive('The upload is a tar archive without compression. Compress it with gzip.');
  const other = OTHERS.find(([start]) => head.toString('hex').startsWith(start));
  throw brokenArchive(
    `The upload is ${other?.[1] ?? 'no archive'}. Send a tar archive compressed with gzip, or a zip.`,
  );
}

/**
 * Calls `visit` for each entry of the source, which must read its content completely or not at all.
 * @throws SourceError `refused` for a damaged archive or paths outside of the source, `too_large` beyond the limits
 */
export async function walkArchive(
  file: string,
  limits: ArchiveLimits,
  visit: (entry: ArchiveEntry) => Promise<void>,
  ctx: DriverContext,
): Promise<ArchiveTotals> {
  const format = await formatOf(file);
  const walk = openWalk(format, limits);
  const tarBytesMax = limits.bytes + limits.files * TAR_ENTRY_BYTES + TAR_END_BYTES;
  for await (const raw of format === 'zip' ? zipEntries(file) : tarEntries(file, tarBytesMax)) {
    checkpoint(ctx);
    walk.charge(raw);
    const entry = await walk.judge(raw);
    if (entry) await visit(entry);
  }
  return walk.totals();
}

interface Walk {
  charge(raw: RawEntry): void;
  /** Null for entries that are skipped. */
  judge(raw: RawEntry): Promise<ArchiveEntry | null>;
  totals(): ArchiveTotals;
}

function openWalk(format: Format, limits: ArchiveLimits): Walk {
  const kinds = openPaths();
  const tops = new Map<string, EntryKind>();
  const used = { files: 0, bytes: 0 };
  let kept = 0;
  return {
    charge({ name, size }) {
      if (!Number.isSafeInteger(size) || size < 0) throw brokenArchive(`The size of \`${name}\` is not valid.`);
      used.files += 1;
      used.bytes += size;
      if (used.files > limits.files)
        throw new SourceError('too_large', `The archive has more than ${limits.files} entries.`);
      if (used.bytes > limits.bytes)
        throw new SourceError(
          'too_large',
          `The files of the archive are larger than ${Math.floor(limits.bytes / 2 ** 20)} MB together.`,
        );
    },
    async judge(raw) {
      const parts = partsOfEntry(raw.name);
      const entry = parts.length === 0 ? null : await leftOutOf({ ...raw, parts, targetParts: [] });
      if (!entry) return null;
      requirePlace(kinds, entry, format);
      if (entry.kind === 'link') entry.targetParts = requireTarget(kinds, entry);
      const top = entry.parts[0] as string;
      tops.set(top, entry.parts.length > 1 ? 'directory' : entry.kind);
      if (entry.kind !== 'directory') kept += 1;
      return entry;
    },
    totals() {
      if (kept === 0) throw brokenArchive('The archive contains no files.');
      const [first, other] = [...tops];
      return { files: kept, bytes: used.bytes, folder: first?.[1] === 'directory' && !other ? first[0] : null };
    },
  };
}

/** The kinds of all paths so far. */
interface Paths {
  get(path: string): EntryKind | undefined;
  /** @throws SourceError too_large */
  set(path: string, kind: EntryKind): void;
}

function openPaths(): Paths {
  const kinds = new Map<string, EntryKind>();
  let bytes = 0;
  return {
    get: (path) => kinds.get(path),
    set(path, kind) {
      if (!kinds.has(path)) bytes += path.length;
      if (bytes > PATHS_BYTES_MAX)
        throw new SourceError(
          'too_large',
          `The paths of the archive are longer than ${PATHS_BYTES_MAX / 2 ** 20} MB together.`,
        );
      kinds.set(path, kind);
    },
  };
}

/** Rejects entries below a file or a link, and duplicates where readers of the format disagree. */
function requirePlace(kinds: Paths, { name, parts, kind }: ArchiveEntry, format: Format): void {
  const path = parts.join('/');
  // Above a folder that is known are folders.
  for (let end = path.lastIndexOf('/'); end !== -1; end = path.lastIndexOf('/', end - 1)) {
    const above = path.slice(0, end);
    const found = kinds.get(above);
    if (found === 'directory') break;
    if (found !== undefined)
      throw brokenArchive(`\`${name}\` lies below \`${above}\`, which is ${found === 'file' ? 'a file' : 'a link'}.`);
    kinds.set(above, 'directory');
  }
  const before = kinds.get(path);
  const isAgain = before !== undefined && !(before === 'directory' && kind === 'directory');
  // In a tar with appended files, the last entry is the newest, as in tar(1).
  if (isAgain && (format === 'zip' || before === 'directory' || kind === 'directory'))
    throw brokenArchive(`The archive contains \`${path}\` more than once.`);
  kinds.set(path, kind);
}

function requireTarget(kinds: Paths, { name, target }: ArchiveEntry): string[] {
  const parts = partsOfEntry(target);
  const found = kinds.get(parts.join('/'));
  if (found === undefined || found === 'directory')
    throw brokenArchive(`\`${name}\` is a hard link to \`${target}\`, which is not an earlier file of the archive.`);
  return parts;
}
