// Entries of a tar archive as image layers have them (POSIX.1-2001 pax, image-spec layer.md). Names are bytes: what a
// source calls its files need not be UTF-8. Times are 0, so that the same files make the same archive.
type TarType = 'file' | 'directory' | 'symlink' | 'link';

export interface TarEntry {
  /** Relative, without a slash at its beginning or end. */
  name: Buffer;
  type: TarType;
  mode: number;
  /** User and group. */
  owner: number;
  /** Target of a symbolic link; of a hard link the name of an earlier entry. */
  target?: Buffer;
  /** Bytes of `content`. */
  size: number;
  content?: () => AsyncIterable<Buffer>;
}

const BLOCK = 512;
const NAME_MAX = 100;
/** More is no octal number of eleven digits. */
const SIZE_MAX = 8 ** 11 - 1;
const FLAGS: Record<TarType, string> = { file: '0', link: '1', symlink: '2', directory: '5' };

/** Two blocks of zeros end an archive. */
export const tarEnd = Buffer.alloc(2 * BLOCK);

/** The header of an entry, preceded by a pax header if the entry needs extended attributes. */
export function tarHeader(entry: TarEntry): Buffer {
  const name = entry.type === 'directory' ? Buffer.concat([entry.name, Buffer.from('/')]) : entry.name;
  const target = entry.target ?? Buffer.alloc(0);
  const records = [
    ...(name.length > NAME_MAX ? [paxRecord('path', name)] : []),
    ...(target.length > NAME_MAX ? [paxRecord('linkpath', target)] : []),
    ...(entry.size > SIZE_MAX ? [paxRecord('size', Buffer.from(String(entry.size)))] : []),
  ];
  const own = block({ ...entry, name, target, flag: FLAGS[entry.type] });
  if (records.length === 0) return own;
  const isText = [name, target].every(isUtf8);
  const body = Buffer.concat([...(isText ? [] : [paxRecord('hdrcharset', Buffer.from('BINARY'))]), ...records]);
  const head = { name: Buffer.from('pax'), target: Buffer.alloc(0), mode: 0o644, owner: 0, size: body.length };
  return Buffer.concat([block({ ...head, flag: 'x' }), body, tarPadding(body.length), own]);
}

/** Zero bytes that pad content of `size` bytes to a full block. */
export function tarPadding(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

interface Header {
  name: Buffer;
  target: Buffer;
  mode: number;
  owner: number;
  size: number;
  flag: string;
}

function block({ name, target, mode, owner, size, flag }: Header): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number): void =>
    void header.write(value.toString(8).padStart(length - 1, '0'), offset, 'latin1');
  name.copy(header, 0, 0, NAME_MAX);
  octal(mode, 100, 8);
  octal(owner, 108, 8);
  octal(owner, 116, 8);
  octal(size > SIZE_MAX ? 0 : size, 124, 12);
  octal(0, 136, 12);
  header.write('        ', 148, 'latin1');
  header.write(flag, 156, 'latin1');
  target.copy(header, 157, 0, NAME_MAX);
  header.write('ustar\u000000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\u0000 `, 148, 'latin1');
  return header;
}

/** `<length> <key>=<value>\n`, where the length counts itself. */
function paxRecord(key: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), value, Buffer.from('\n')]);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

function isUtf8(text: Buffer): boolean {
  return Buffer.from(text.toString('utf8')).equals(text);
}
