// A backup as one file, for machines without restic: tar and gzip, which each Debian has, encrypted in the format of
// age. It is whole under its name, or not there.
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync, readFileSync, statSync } from 'node:fs';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { setPriority } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { syncDirectory } from '../../core/files';
import { commandEnvironment } from '../../core/process/command';
import { CommandError } from '../command_error';
import { AgeError, decryptAge, encryptAge } from '../../core/protocols/age';
import { MANIFEST } from './manifest';
import { makeBackupDirectory } from './place';
import type { Repository, Saved } from './repository';

const LOW_PRIORITY = 15;
const POINT = `backup/point/${MANIFEST}`;
/** Bytes of the header, which no two archives share. */
const HEADER_BYTES = 128;
/** Lines of complaints that are kept. */
const SAID_LINES = 10_000;
const OWNERS = ['--numeric-owner', '--xattrs', '--xattrs-include=*'];
/** Of a line of tar about a file that it leaves out, or has read a part of (GNU tar: `--ignore-failed-read`). */
const UNREAD = /^tar: (.+): (?:Warning: Cannot |File removed before|File shrank by|Warning: Read error)/;
const TOTAL = /^Total bytes written: (\d+)/;

interface ArchiveOptions {
  dataDir: string;
  file: string;
  passphraseFile: string | null;
}

/** @throws CommandError where there is no passphrase */
export function openArchive({ dataDir, file, passphraseFile }: ArchiveOptions): Repository {
  makeBackupDirectory({ dataDir });
  const archive = new Archive(path.resolve(file), passphraseOf(passphraseFile), path.resolve(dataDir));
  return {
    address: archive.file,
    isJournaled: false,
    ensure: () => archive.ensure(),
    save: (files, leftOut, signal) => archive.save(files, leftOut, signal),
    points: async () => [{ id: await archive.id(), at: JSON.parse(await archive.read(POINT)).at, hostname: '' }],
    bytesOf: () => archive.bytes(),
    read: (_, file) => archive.read(path.relative(dataDir, file)),
    restore: (point, target, only) => archive.extract(point, target, only),
    // Who names the files removes them.
    prune: async () => undefined,
    verify: async () => void (await archive.bytes()),
  };
}

/** Whether `restore --from` names an archive, not a repository of restic. */
export function isArchive(from: string): boolean {
  return from.endsWith('.age') || (statSync(from, { throwIfNoEntry: false })?.isFile() ?? false);
}

function passphraseOf(file: string | null): string {
  if (file === null)
    throw new CommandError(
      'name a file with a passphrase by --passphrase-file: an archive has the secret key in it, and is encrypted',
    );
  let passphrase;
  try {
    passphrase = readFileSync(file, 'utf8').trim();
  } catch {
    throw new CommandError(`the passphrase of the archive cannot be read: ${file}`);
  }
  if (passphrase === '') throw new CommandError(`${file} has no passphrase`);
  return passphrase;
}

class Archive {
  constructor(
    readonly file: string,
    private readonly passphrase: string,
    private readonly dataDir: string,
  ) {}

  async ensure(): Promise<void> {
    const folder = path.dirname(this.file);
    if (existsSync(this.file)) throw new CommandError(`${this.file} exists: name another file, or remove it`);
    if (!(await stat(folder).catch(() => null))?.isDirectory())
      throw new CommandError(`there is no directory ${folder}: is the disk of the backups mounted?`);
    if (`${folder}/`.startsWith(`${this.dataDir}/`))
      throw new CommandError(`${this.file} is in the data directory: name a file on another disk`);
  }

  async save(files: readonly string[], leftOut: readonly string[], signal: AbortSignal): Promise<Saved> {
    const draft = `${this.file}.new`;
    try {
      const tar = await this.write(draft, files.filter(existsSync), leftOut, signal);
      const { size } = await stat(draft);
      await rename(draft, this.file);
      await syncDirectory(path.dirname(this.file));
      const unread = tar.said().flatMap((line) => UNREAD.exec(line)?.[1] ?? []);
      const bytes = Number(tar.said().flatMap((line) => TOTAL.exec(line)?.[1] ?? [])[0]);
      return { id: await this.id(), files: tar.named(), bytes, addedBytes: size, unread };
    } catch (error) {
      // A full disk gets its room back.
      await rm(draft, { force: true }).catch(() => undefined);
      throw this.failure(error);
    }
  }

  private async write(
    draft: string,
    files: readonly string[],
    leftOut: readonly string[],
    signal: AbortSignal,
  ): Promise<Begun> {
    const inside = (file: string): string => path.relative(this.dataDir, file);
    const tar = begin('tar', [
      ...['--create', '--verbose', '--totals', '--file=-', '--use-compress-program=gzip -1'],
      ...[`--directory=${this.dataDir}`, '--sparse', ...OWNERS],
      ...['--ignore-failed-read', '--warning=no-file-ignored', '--warning=no-file-changed'],
      ...['--anchored', '--no-wildcards-match-slash', ...leftOut.map((one) => `--exclude=${inside(one)}`)],
      ...['--', ...files.map(inside)],
    ]);
    // Its bytes are on the disk before it gets its name.
    const output = createWriteStream(draft, { mode: 0o600, flush: true });
    await pipeline(Readable.from(encryptAge(endOf(tar), this.passphrase)), output, { signal }).finally(() =>
      tar.child.kill(),
    );
    return tar;
  }

  /** Of this archive, and of no other one. @throws CommandError where it cannot be read */
  async id(): Promise<string> {
    const header = Buffer.alloc(HEADER_BYTES);
    try {
      const handle = await open(this.file, 'r');
      await handle.read(header, 0, HEADER_BYTES, 0).finally(() => handle.close());
    } catch (error) {
      throw this.failure(error);
    }
    return createHash('sha256').update(header).digest('hex');
  }

  /** The content of a file, without reading further. */
  async read(name: string): Promise<string> {
    const tar = begin('tar', ['--extract', '--gzip', '--file=-', '--to-stdout', '--occurrence=1', '--', name]);
    return this.pour(tar);
  }

  /** Reads all of it, so each byte is compared with its checksum. */
  async bytes(): Promise<number> {
    let bytes = 0;
    const count = async (content: AsyncIterable<Buffer>): Promise<void> => {
      for await (const chunk of content) bytes += chunk.length;
    };
    await pipeline(this.content(), createGunzip(), count).catch((error: unknown) => {
      throw this.failure(error);
    });
    return bytes;
  }

  async extract(point: string, target: string, only: readonly string[] = []): Promise<void> {
    if ((await this.id()) !== point)
      throw new CommandError(`${this.file} is another archive than the one that the restore has begun with`);
    await mkdir(target, { recursive: true, mode: 0o700 });
    const names = only.map((one) => one.replace(/\/\*\*$/, ''));
    const words = ['--extract', '--gzip', '--file=-', `--directory=${target}`, '--preserve-permissions', ...OWNERS];
    await this.pour(begin('tar', [...words, '--', ...names]));
  }

  /** Decrypts the archive into a program. @returns what the program has printed */
  private async pour(program: Begun): Promise<string> {
    const { child } = program;
    const output = textOf(endOf(program));
    output.catch(() => undefined);
    try {
      await pipeline(Readable.from(this.content()), child.stdin as NodeJS.WritableStream);
    } catch (error) {
      // A program that has ended says why, or has what it needs.
      if (!hasEnded(error)) {
        child.kill();
        throw this.failure(error);
      }
    }
    return output.catch((error: unknown) => {
      throw this.failure(error);
    });
  }

  private content(): AsyncGenerator<Buffer> {
    return decryptAge(createReadStream(this.file, { highWaterMark: 1 << 20 }), this.passphrase);
  }

  private failure(error: unknown): unknown {
    const { file } = this;
    if (error instanceof AgeError)
      return new CommandError(
        {
          foreign: `${file} is not an archive of \`platform backup --to\`, or its first bytes have changed`,
          passphrase: `the passphrase does not open ${file}, or its first bytes have changed`,
          changed: `${file} is spoiled: its content has changed since it was written`,
          short: `${file} is spoiled: its end has changed, or is missing`,
        }[error.reason],
      );
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return new CommandError(`there is no archive ${file}`);
    if (code === 'ENOSPC' || code === 'EDQUOT')
      return new CommandError(`the disk of ${file} is full: make room there, or name a file on another disk`);
    return error instanceof CommandError ? error : new CommandError(`${file}: ${message}`);
  }
}

interface Begun {
  program: string;
  child: ChildProcess;
  closed: Promise<number | null>;
  /** Complaints. */
  said(): string[];
  /** How many files it has named. */
  named(): number;
}

function begin(program: string, words: string[]): Begun {
  const child = spawn(program, words, { env: commandEnvironment, stdio: ['pipe', 'pipe', 'pipe'] });
  const said: string[] = [];
  let named = 0;
  createInterface({ input: child.stderr.setEncoding('latin1') }).on('line', (line) => {
    if (!/^(?:tar: |Total )/.test(line)) named += 1;
    else if (said.length < SAID_LINES) said.push(line);
  });
  child.stdin.on('error', () => undefined);
  child.on('spawn', () => setPriority(child.pid as number, LOW_PRIORITY));
  const closed = new Promise<number | null>((resolve, reject) => {
    child.on('error', () => reject(new CommandError(`${program} is not installed: apt-get install ${program}`)));
    child.on('close', resolve);
  });
  closed.catch(() => undefined);
  return { program, child, closed, said: () => said, named: () => named };
}

/** The output of a program. 1 of tar: a file has changed while it was read. @throws CommandError where it failed */
async function* endOf({ program, child, closed, said }: Begun): AsyncGenerator<Buffer> {
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) yield chunk;
  const code = await closed;
  if (code === 0 || code === 1) return;
  const reason = said().find((line) => !/Warning: |Exiting with failure|Error is not recover/.test(line));
  throw new CommandError(`${program}: ${reason?.replace(/^tar: /, '') ?? 'it was ended'}`);
}

function hasEnded(error: unknown): boolean {
  return ['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET'].includes((error as NodeJS.ErrnoException).code ?? '');
}

async function textOf(output: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of output) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
