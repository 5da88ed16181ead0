// Archives as other programs make them, and some that nobody should send.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';

export const SITE = { 'index.html': 'from an upload', 'css/site.css': 'body{}', 'bin/start': '#!/bin/sh\n' };

/** A folder of its own for a test file. */
export function useFolder(): { path: string } {
  const folder = { path: '' };
  beforeAll(() => {
    folder.path = mkdtempSync(path.join(tmpdir(), 'archives-'));
  });
  afterAll(() => rmSync(folder.path, { recursive: true, force: true }));
  return folder;
}

export function writeSite(directory: string, files: Record<string, string> = SITE): string {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(directory, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text, { mode: text.startsWith('#!') ? 0o755 : 0o644 });
  }
  symlinkSync('index.html', path.join(directory, 'home.html'));
  return directory;
}

/** Runs a program in a directory. */
export function run(directory: string, program: string, ...given: string[]): string {
  return execFileSync(program, given, { cwd: directory, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export type TarEntry = Partial<Header> & { name: string; body?: string | Buffer };

/** A gzipped tar with exactly these entries. */
export async function tarOf(...entries: TarEntry[]): Promise<Buffer> {
  const tar = pack();
  for (const { body = '', ...header } of entries) tar.entry(header as Header, body);
  tar.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of tar) pieces.push(piece as Buffer);
  return gzipSync(Buffer.concat(pieces));
}

/** A zip by Python, whose `zipfile` writes what it is told. `lines` act on `z` and have `info(name, mode)`. */
export function zipOf(file: string, ...lines: string[]): string {
  const script = [
    'import sys, zipfile, stat, warnings',
    'warnings.simplefilter("ignore")',
    'def info(name, mode=0o100644):',
    '    i = zipfile.ZipInfo(name); i.create_system = 3; i.external_attr = mode << 16',
    '    i.compress_type = zipfile.ZIP_DEFLATED; return i',
    'z = zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED)',
    ...lines,
    'z.close()',
  ];
  execFileSync('python3', ['-c', script.join('\n'), file]);
  return file;
}
