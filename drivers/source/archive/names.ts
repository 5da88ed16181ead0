// Names of archive entries, and entries that do not belong to a source.
import { brokenArchive, type ArchiveEntry } from './entry';

const PATH_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 255;
const DEPTH_MAX = 256;
const LINK_BYTES_MAX = 4095;
/** Magic number of AppleDouble files (RFC 1740): attributes of a neighbouring file, which macOS adds to archives. */
const APPLE_DOUBLE = Buffer.from([0x00, 0x05, 0x16, 0x07]);

/** The segments of a name; empty for the root. @throws SourceError for a path outside of the source */
export function partsOfEntry(name: string): string[] {
  if (name.includes('\0')) throw brokenArchive('The archive contains a name with a NUL character.');
  if (name.startsWith('/') || /^[a-z]:[\\/]/i.test(name))
    throw brokenArchive(`The archive contains the absolute path \`${shortened(name)}\`. Use relative paths.`);
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw brokenArchive(`The archive contains \`${shortened(name)}\`, which leads out of it.`);
  const isLong = Buffer.byteLength(name) > PATH_BYTES_MAX || parts.length > DEPTH_MAX;
  if (isLong || parts.some((part) => Buffer.byteLength(part) > NAME_BYTES_MAX))
    throw brokenArchive(`The archive contains a path that is too long: \`${shortened(name)}\`.`);
  return parts;
}

/** Shortens and sanitises a name for a message. */
export function shortened(name: string): string {
  const text = name.replace(/\p{Cc}/gu, ' ');
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}

/**
 * The entry, or null where it does not belong to a source: the Git history, which may contain credentials and is not
 * deployed from repositories either, and metadata of macOS.
 */
export async function leftOutOf(entry: ArchiveEntry): Promise<ArchiveEntry | null> {
  const { parts, kind, target, name } = entry;
  if (parts.includes('.git') || parts[0] === '__MACOSX') return null;
  if (kind === 'symlink' && (target === '' || target.includes('\0') || Buffer.byteLength(target) > LINK_BYTES_MAX))
    throw brokenArchive(`\`${shortened(name)}\` is a symbolic link that leads nowhere.`);
  if (kind !== 'file' || !parts.at(-1)?.startsWith('._')) return entry;
  const [first, whole] = await peek(entry.content());
  if (!first?.subarray(0, APPLE_DOUBLE.length).equals(APPLE_DOUBLE)) return { ...entry, content: () => whole };
  for await (const piece of whole) void piece;
  return null;
}

/** The first chunk, and the complete stream. */
async function peek(content: AsyncIterable<Buffer>): Promise<[Buffer | undefined, AsyncIterable<Buffer>]> {
  const pieces = content[Symbol.asyncIterator]();
  const { value, done } = await pieces.next();
  async function* whole(): AsyncGenerator<Buffer> {
    if (done) return;
    yield value;
    yield* { [Symbol.asyncIterator]: () => pieces };
  }
  return [done ? undefined : value, whole()];
}
