// Entries of a zip, from its central directory. Backslashes in names, as written by some Windows programs, are path
// separators; paths outside of the archive are already rejected by the reader.
import { crc32 } from 'node:zlib';
import { openPromise, type Entry, type ZipFile } from 'yauzl';
import { SourceError } from '../../source';
import { brokenArchive, type RawEntry } from './entry';
import { shortened } from './names';

const MADE_BY_UNIX = 3;
/** Host system of archives made by macOS. */
const MADE_BY_DARWIN = 19;
const TYPE_BITS = 0o170000;
const [DIRECTORY, REGULAR, SYMLINK] = [0o040000, 0o100000, 0o120000];
const ANY_EXECUTE = 0o111;
const STORED = 0;
const DEFLATED = 8;
const LINK_BYTES_MAX = 4095;

/** Sequential. @throws SourceError refused */
export async function* zipEntries(file: string): AsyncGenerator<RawEntry> {
  const zip = await openPromise(file, { autoClose: false }).catch((error: unknown) => {
    throw explained(error);
  });
  try {
    for await (const entry of zip.eachEntry()) yield await rawEntryOf(zip, entry);
  } catch (error) {
    throw explained(error);
  } finally {
    zip.close();
  }
}

async function rawEntryOf(zip: ZipFile, entry: Entry): Promise<RawEntry> {
  const { fileName: name, uncompressedSize: size, compressionMethod } = entry;
  const shown = shortened(name);
  if (entry.isEncrypted()) throw brokenArchive(`\`${shown}\` is encrypted. Create the archive without a password.`);
  if (compressionMethod !== STORED && compressionMethod !== DEFLATED)
    throw brokenArchive(`\`${shown}\` is compressed by a method other than deflate (${compressionMethod}).`);
  const mode = unixModeOf(entry);
  const type = mode & TYPE_BITS;
  const isDirectory = name.endsWith('/') || type === DIRECTORY;
  if (!isDirectory && ![0, REGULAR, SYMLINK].includes(type))
    throw brokenArchive(`The archive contains a device or a pipe: \`${shown}\`.`);
  if (isDirectory)
    return { name, kind: 'directory', isExecutable: true, size: 0, target: '', content: () => nothing() };
  const content = (): AsyncIterable<Buffer> => contentOf(zip, entry);
  if (type === SYMLINK) {
    if (size > LINK_BYTES_MAX) throw brokenArchive(`\`${shown}\` is a symbolic link that is too long.`);
    const target = await textOf(content());
    return { name, kind: 'symlink', isExecutable: false, size: 0, target, content: () => nothing() };
  }
  return { name, kind: 'file', isExecutable: (mode & ANY_EXECUTE) !== 0, size, target: '', content };
}

function unixModeOf({ versionMadeBy, externalFileAttributes }: Entry): number {
  const system = versionMadeBy >>> 8;
  return system === MADE_BY_UNIX || system === MADE_BY_DARWIN ? externalFileAttributes >>> 16 : 0;
}

/** The reader verifies sizes; the checksum is verified here. */
async function* contentOf(zip: ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  let checksum = 0;
  try {
    for await (const piece of await zip.openReadStreamPromise(entry)) {
      checksum = crc32(piece as Buffer, checksum);
      yield piece as Buffer;
    }
  } catch (error) {
    throw explained(error, entry.fileName);
  }
  if (checksum !== entry.crc32) throw brokenArchive(`\`${shortened(entry.fileName)}\` is damaged: its CRC differs.`);
}

async function textOf(content: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of content) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

async function* nothing(): AsyncGenerator<Buffer> {}

/** Converts errors of yauzl and zlib about damaged input to messages. */
function explained(error: unknown, name?: string): unknown {
  if (error instanceof SourceError) return error;
  const { code = '', message = '', syscall } = error as NodeJS.ErrnoException;
  if (syscall !== undefined) return error;
  const place = /^(absolute path|invalid relative path): (.*)$/s.exec(message);
  if (place?.[1] === 'absolute path')
    return brokenArchive(
      `The archive contains the absolute path \`${shortened(place[2] ?? '')}\`. Use relative paths.`,
    );
  if (place) return brokenArchive(`The archive contains \`${shortened(place[2] ?? '')}\`, which leads out of it.`);
  if (/end of central directory|truncated|unexpected EOF/i.test(message))
    return brokenArchive('The archive is incomplete, or not a zip file: the directory at its end is missing.');
  if (/encrypted/i.test(message)) return brokenArchive('The archive is encrypted. Create it without a password.');
  if (/multi-disk/i.test(message)) return brokenArchive('The archive is one of several parts. Create a single one.');
  const where = name === undefined ? 'The archive' : `\`${shortened(name)}\``;
  return brokenArchive(`${where} is damaged: ${code.startsWith('Z_') ? 'its data cannot be decompressed' : message}.`);
}
