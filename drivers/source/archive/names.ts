// Names in an archive, and what of it is no part of a source.
import { brokenArchive, type ArchiveEntry } from './entry';

const PATH_BYTES_MAX = 4096;
const NAME_BYTES_MAX = 255;
const DEPTH_MAX = 256;
const LINK_BYTES_MAX = 4095;
/** How AppleDouble files begin (RFC 1740): attributes of the file beside them, which macOS puts into archives. */
const APPLE_DOUBLE = Buffer.from([0x00, 0x05, 0x16, 0x07]);

/** The parts of a name; none for the root. @throws SourceError for a name that leads out of the source */
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

/** The name for a message: no more of it than fits. */
export function shortened(name: string): string {
  const text = name.replace(/\p{Cc}/gu, ' ');
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}

/**
 * The entry, or null where it is no part of a source: the history of Git, which may hold credentials and is never
 * deployed from a repository either, and what macOS adds.
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

/** The first piece, and all pieces with it. */
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
