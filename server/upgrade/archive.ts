// The archive of a release: its checksum, what it says of itself, and that it writes nowhere but in its own directory.
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import path from 'node:path';
import { createGunzip } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { CommandError } from '../command_error';

export interface ArchiveFacts {
  version: string;
  arch: string;
  /** First version from which one may upgrade to it. */
  upgradesFrom: string | null;
  /** Names of its migrations. */
  migrations: string[];
  unpackedBytes: number;
  /** Directory in the archive in which everything is. */
  root: string;
  /** Version and commit. */
  mark: string;
}

/** Of Node.js 120 MB, of the embedded PostgreSQL 60: what is ten times that is no release. */
const UNPACKED_BYTES_MAX = 4 * 2 ** 30;
const ENTRIES_MAX = 400_000;
const BLOCK = 4096;
const SMALL_BYTES_MAX = 1_000_000;

/** The checksum that SHA256SUMS beside a file names. @throws CommandError where there is none */
export function sumBeside(file: string): string {
  const sums = path.join(path.dirname(file), 'SHA256SUMS');
  if (!existsSync(sums))
    throw new CommandError(`there is no SHA256SUMS beside ${file}: download it from where the archive is`);
  for (const line of readFileSync(sums, 'utf8').split('\n')) {
    const [, sum, name] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
    if (name === path.basename(file)) return sum as string;
  }
  throw new CommandError(`${sums} has no line for ${path.basename(file)}`);
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/**
 * Reads an archive through and unpacks nothing.
 * @throws CommandError for what is no release, or has entries outside of its directory
 */
export async function inspectArchive(file: string): Promise<ArchiveFacts> {
  const found: Found = { small: new Map(), migrations: [], bytes: 0, entries: 0, root: null };
  const reader = extract();
  reader.on('entry', (header, stream, next) => {
    // Of an archive that ends within it: the pipeline says so, too.
    stream.on('error', () => {});
    try {
      noteEntry(found, header);
    } catch (error) {
      stream.resume();
      return void reader.destroy(error as Error);
    }
    const name = header.name.split('/').slice(1).join('/');
    if (!['VERSION', 'RELEASE', 'app/package.json'].includes(name))
      return void (stream.on('end', next), stream.resume());
    const chunks: Buffer[] = [];
    stream.on('data', (chunk) => chunks.push(chunk as Buffer));
    stream.on('end', () => (found.small.set(name, Buffer.concat(chunks).toString('utf8')), next()));
  });
  try {
    await pipeline(createReadStream(file), createGunzip(), reader);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`the archive cannot be read (${(error as Error).message.toLowerCase()}): download it again`);
  }
  return factsOf(found);
}

interface Found {
  small: Map<string, string>;
  migrations: string[];
  bytes: number;
  entries: number;
  root: string | null;
}

function noteEntry(found: Found, { name, type, size = 0, linkname }: Header): void {
  const clean = path.posix.normalize(name).replace(/\/$/, '');
  const [root = ''] = clean.split('/');
  found.root ??= root;
  const isInside =
    !path.posix.isAbsolute(name) && !name.includes('\0') && root === found.root && !/^\.{0,2}$/.test(root);
  if (!isInside) throw noRelease(`it has the path ${printable(name)}`);
  if (type === 'symlink' || type === 'link') requireInnerLink(clean, root, type, linkname ?? '');
  else if (!['file', 'directory', 'contiguous-file'].includes(String(type)))
    throw noRelease(`${printable(name)} is a ${String(type)}`);
  found.bytes += Math.ceil(size / BLOCK) * BLOCK;
  found.entries += 1;
  if (found.bytes > UNPACKED_BYTES_MAX || found.entries > ENTRIES_MAX) throw noRelease('it is larger than any');
  const [, migration] = /^[^/]+\/app\/dist\/migrations\/(\d{4}_\w+)\.js$/.exec(clean) ?? [];
  if (migration) found.migrations.push(migration);
  if (/^[^/]+\/(VERSION|RELEASE|app\/package\.json)$/.test(clean) && size > SMALL_BYTES_MAX)
    throw noRelease(`${printable(name)} is too large`);
}

/** A link that stays in the directory of the release, whatever comes after it in the archive. */
function requireInnerLink(name: string, root: string, type: 'symlink' | 'link', target: string): void {
  const to = type === 'link' ? path.posix.normalize(target) : path.posix.join(path.posix.dirname(name), target);
  if (path.posix.isAbsolute(target) || (to !== root && !to.startsWith(`${root}/`)))
    throw noRelease(`${printable(name)} leads out of it`);
}

function factsOf({ small, migrations, bytes, root }: Found): ArchiveFacts {
  const version = small.get('VERSION')?.trim() ?? '';
  const [, named, arch = ''] = /^platform-(.+)-linux-(\w+)$/.exec(root ?? '') ?? [];
  const manifest = parsed(small.get('app/package.json'));
  if (named === undefined || named !== version || manifest?.version !== version || !migrations.length)
    throw noRelease('its name, its version and what is in it do not fit');
  const upgradesFrom = typeof manifest.upgradesFrom === 'string' ? manifest.upgradesFrom : null;
  const mark = small.get('RELEASE')?.trim() ?? '';
  return {
    version,
    arch,
    upgradesFrom,
    migrations: migrations.sort(),
    unpackedBytes: bytes,
    root: root as string,
    mark,
  };
}

function parsed(text: string | undefined): Record<string, unknown> | null {
  try {
    return JSON.parse(text ?? '') as Record<string, unknown>;
  } catch {
    return null;
  }
}

function noRelease(why: string): CommandError {
  return new CommandError(`the archive is no release of the platform (${why}): download one from where releases are`);
}

function printable(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
}
