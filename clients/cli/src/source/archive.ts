// A gzipped tar (POSIX.1-2001) that is the same bytes for the same files: no times, no owners, two modes.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Failure } from '../failure';
import { linkTargetOf } from '../system';
import type { SourceFile } from './files';

export interface Archive {
  file: string;
  sha256: string;
  bytes: number;
  remove(): void;
}

/** Writes the archive to a temporary file that nobody else can read. */
export async function packArchive(files: readonly SourceFile[]): Promise<Archive> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'svc-'));
  const remove = (): void => fs.rmSync(directory, { recursive: true, force: true });
  process.once('exit', remove);
  const file = path.join(directory, 'source.tar.gz');
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    await pipeline(
      Readable.from(tarBlocks(files), { objectMode: false }),
      createGzip({ level: 6 }),
      async function* (parts: AsyncIterable<Buffer>) {
        for await (const part of parts) {
          hash.update(part);
          bytes += part.length;
          yield part;
        }
      },
      fs.createWriteStream(file, { mode: 0o600 }),
    );
  } catch (error) {
    remove();
    throw error;
  }
  return { file, sha256: hash.digest('hex'), bytes, remove };
}

const BLOCK = 512;

async function* tarBlocks(files: readonly SourceFile[]): AsyncGenerator<Buffer> {
  for (const one of files) {
    if (one.kind === 'link') {
      yield tarHeader(one, linkTargetOf(process.platform, fs.readlinkSync(one.file)));
      continue;
    }
    yield tarHeader(one, '');
    let left = one.bytes;
    if (left)
      for await (const part of fs.createReadStream(one.file, { end: left - 1 })) {
        left -= (part as Buffer).length;
        yield part as Buffer;
      }
    if (left) throw new Failure(`${one.name} became shorter while it was packed. Try again.`);
    yield Buffer.alloc((BLOCK - (one.bytes % BLOCK)) % BLOCK);
  }
  yield Buffer.alloc(2 * BLOCK);
}

function tarHeader({ name, bytes, isExecutable, kind }: SourceFile, target: string): Buffer {
  const records = [
    ...(fitsHeader(name) ? [] : [paxRecord('path', name)]),
    ...(fitsHeader(target) ? [] : [paxRecord('linkpath', target)]),
    ...(bytes < 8 ** 11 ? [] : [paxRecord('size', String(bytes))]),
  ].join('');
  const mode = isExecutable || kind === 'link' ? 0o755 : 0o644;
  const own = ustarHeader({ name, bytes, mode, type: kind === 'link' ? '2' : '0', target });
  if (!records) return own;
  const data = Buffer.from(records);
  const before = ustarHeader({ name: 'PaxHeader', bytes: data.length, mode: 0o644, type: 'x', target: '' });
  return Buffer.concat([before, data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK), own]);
}

/** What is no ASCII needs a record of its own. */
const fitsHeader = (text: string): boolean => /^[\x00-\x7f]{0,100}$/.test(text);

/** `length key=value`, where the length counts its own digits. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

interface Header {
  name: string;
  bytes: number;
  mode: number;
  type: string;
  target: string;
}

function ustarHeader({ name, bytes, mode, type, target }: Header): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string =>
    `${value.toString(8).padStart(digits, '0').slice(-digits)}\0`;
  header.write(name.slice(0, 100), 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(bytes, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(' '.repeat(8), 148);
  header.write(type, 156);
  header.write(target.slice(0, 100), 157);
  header.write('ustar\x0000', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}
