// Output of a unit: two files that only grow, `out` and `err`, opened for appending by the programs themselves, so
// that nothing is lost when the control plane is away. A position is an offset in each, behind the name of the
// run: a unit that is restarted under its id begins a new log. To discard a part, its blocks are punched out
// of the file (fallocate(2)): offsets stay valid, and writers do not notice. Within one chunk stdout comes before
// stderr: the files know no times. A reader that polls every second merges them as they arrived, to the second.
import { statSync } from 'node:fs';
import { open, truncate } from 'node:fs/promises';
import path from 'node:path';
import { replaceFile } from '../../core/files';
import { run } from '../../core/process/command';
import { driverContext } from '../../core/driver';
import type { LogChunk } from '../runtime';
import { readText, readUnit } from './run_directory';

type Stream = 'stdout' | 'stderr';

interface Offsets {
  stdout: number;
  stderr: number;
}

const streams: readonly Stream[] = ['stdout', 'stderr'];
const fileOf: Record<Stream, string> = { stdout: 'out', stderr: 'err' };
const chunkBytes = 128 * 1024;
const lineBytesMax = 16 * 1024;
const blockBytes = 4096;
// Punching costs a process: not for every few lines.
const worthwhileBytes = 256 * 1024;
const punchWithinMs = 10_000;
const reachBytesMin = 4 * 1024 * 1024;

/** Lines after the position. `hasEnded`: what has no line end now will never get one. */
export async function readLines(
  runDirectory: string,
  position: string | null,
  hasEnded: () => Promise<boolean>,
): Promise<LogChunk> {
  const run = runIdOf(runDirectory);
  if (run === null) return emptyChunk(position);
  const known = parsePosition(position, run);
  // The common case, checked twice a second for every unit: nothing new.
  const sizes = sizesOf(runDirectory);
  if (sizes.stdout === known.stdout && sizes.stderr === known.stderr)
    return { lines: [], position: formatPosition(run, known), more: false };
  // Checked before the read: output printed after this check is read the next time.
  const ended = await hasEnded();
  const from = latest(latest(known, trimmedOf(runDirectory)), tailOffsets(sizes, await readableBytes(runDirectory)));
  const parts = await Promise.all(
    streams.map((stream) => readPart(path.join(runDirectory, fileOf[stream]), from[stream], ended)),
  );
  const [out, err] = parts as [Part, Part];
  return {
    lines: [
      ...out.lines.map((text) => ({ stream: 'stdout' as const, text })),
      ...err.lines.map((text) => ({ stream: 'stderr' as const, text })),
    ],
    position: formatPosition(run, { stdout: out.next, stderr: err.next }),
    more: out.more || err.more,
  };
}

// A program can make its log file arbitrarily large without writing data (ftruncate). The amount that is read is
// bounded all the same: the oldest lines are dropped, as for a program that prints too much.
function tailOffsets(sizes: Offsets, bytes: number): Offsets {
  return { stdout: Math.max(0, sizes.stdout - bytes), stderr: Math.max(0, sizes.stderr - bytes) };
}

/** How many bytes before the end of a log are readable. */
async function readableBytes(runDirectory: string): Promise<number> {
  const unit = await readUnit(runDirectory);
  return Math.max(reachBytesMin, 2 * (unit?.limits.output_bytes ?? 0));
}

/** The chunk of a unit whose log was removed. */
function emptyChunk(position: string | null): LogChunk {
  return { lines: [], position: position ?? '', more: false };
}

/** Discards the log before the position, once the freed space justifies a process. */
export async function trimBefore(runDirectory: string, position: string, fallocate: string | null): Promise<void> {
  const run = runIdOf(runDirectory);
  if (run !== null) await discardBefore(runDirectory, parsePosition(position, run), fallocate, worthwhileBytes);
}

/** Bytes printed so far, discarded ones included. */
export function printedBytes(runDirectory: string): number {
  const { stdout, stderr } = sizesOf(runDirectory);
  return stdout + stderr;
}

/** Discards the oldest lines until three quarters of `bytes` are left. */
export async function trimToSize(runDirectory: string, bytes: number, fallocate: string | null): Promise<void> {
  const trimmed = trimmedOf(runDirectory);
  const sizes = sizesOf(runDirectory);
  const kept = streams.reduce((total, stream) => total + Math.max(0, sizes[stream] - trimmed[stream]), 0);
  if (kept <= bytes) return;
  const share = (bytes * 0.75) / kept;
  const target = (stream: Stream) =>
    Math.max(trimmed[stream], Math.ceil(sizes[stream] - (sizes[stream] - trimmed[stream]) * share));
  const starts = await Promise.all(
    streams.map((stream) => lineStartAfter(path.join(runDirectory, fileOf[stream]), target(stream))),
  );
  await discardBefore(runDirectory, { stdout: starts[0] as number, stderr: starts[1] as number }, fallocate, 0);
}

interface Part {
  lines: string[];
  next: number;
  more: boolean;
}

async function readPart(file: string, from: number, ended: boolean): Promise<Part> {
  const handle = await open(file, 'r').catch(() => null);
  if (handle === null) return { lines: [], next: from, more: false };
  try {
    const size = bytesOf(await handle.stat());
    // Only the unit itself can have truncated its file; reading restarts at the beginning.
    const start = from > size ? 0 : from;
    const buffer = Buffer.alloc(Math.min(chunkBytes, size - start));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
    const isAll = start + bytesRead >= size;
    const { lines, used } = splitLines(buffer.subarray(0, bytesRead), ended && isAll);
    return { lines, next: start + used, more: !isAll };
  } finally {
    await handle.close();
  }
}

// Complete lines, longer ones in parts of 16 KiB, and after the exit of the unit also an unterminated last line.
function splitLines(bytes: Buffer, isFinal: boolean): { lines: string[]; used: number } {
  const lines: string[] = [];
  let used = 0;
  while (used < bytes.length) {
    const newline = bytes.indexOf(10, used);
    const end = newline < 0 ? bytes.length : newline;
    if (end - used > lineBytesMax) {
      const part = used + wholeCharacters(bytes.subarray(used, used + lineBytesMax));
      lines.push(...cleanLines(bytes.subarray(used, part)));
      used = part;
      continue;
    }
    if (newline < 0 && !isFinal) break;
    lines.push(...cleanLines(bytes.subarray(used, end)));
    used = newline < 0 ? end : newline + 1;
  }
  return { lines, used };
}

// How many of the bytes to take so that no character of UTF-8 is cut in two.
function wholeCharacters(bytes: Buffer): number {
  for (let back = 1; back <= 4; back++) {
    const byte = bytes[bytes.length - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

// A carriage return inside a line starts a new line: a progress bar becomes many lines, but nothing is lost. Databases
// reject NUL in text; a log file that was truncated by its program is full of them.
export function cleanLines(bytes: Buffer): string[] {
  return bytes.toString('utf8').replaceAll('\0', '').replace(/\r+$/, '').split(/\r+/);
}

async function discardBefore(
  runDirectory: string,
  upToAtMost: Offsets,
  fallocate: string | null,
  atLeast: number,
): Promise<void> {
  const before = trimmedOf(runDirectory);
  const sizes = sizesOf(runDirectory);
  const upTo = latest(before, {
    stdout: Math.min(upToAtMost.stdout, sizes.stdout),
    stderr: Math.min(upToAtMost.stderr, sizes.stderr),
  });
  const due = streams.filter((stream) => upTo[stream] - before[stream] > atLeast);
  if (due.length === 0) return;
  // The note is written first, so that the zeros which replace the lines are never read.
  const noted = { ...before, ...Object.fromEntries(due.map((stream) => [stream, upTo[stream]])) };
  await replaceFile(path.join(runDirectory, 'trimmed'), JSON.stringify(noted));
  for (const stream of due)
    await punchHole(path.join(runDirectory, fileOf[stream]), noted[stream], sizes[stream], fallocate);
}

async function punchHole(file: string, upTo: number, size: number, fallocate: string | null): Promise<void> {
  const length = Math.floor(upTo / blockBytes) * blockBytes;
  if (length === 0) return;
  try {
    if (fallocate === null) throw new Error('no fallocate');
    await run(
      fallocate,
      ['--punch-hole', '--offset', '0', '--length', String(length), '--', file],
      driverContext(punchWithinMs),
    );
  } catch {
    // File systems without holes: truncate the file when all of it was read. Output of this instant is lost.
    if (upTo >= size) await truncate(file, 0);
  }
}

async function lineStartAfter(file: string, offset: number): Promise<number> {
  const handle = await open(file, 'r').catch(() => null);
  if (handle === null) return offset;
  try {
    const buffer = Buffer.alloc(lineBytesMax);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
    const newline = buffer.subarray(0, bytesRead).indexOf(10);
    return newline < 0 ? offset : offset + newline + 1;
  } finally {
    await handle.close();
  }
}

function sizesOf(runDirectory: string): Offsets {
  const size = (stream: Stream) =>
    bytesOf(statSync(path.join(runDirectory, fileOf[stream]), { throwIfNoEntry: false }));
  return { stdout: size('stdout'), stderr: size('stderr') };
}

// A program may say that its file is larger than a number here can be.
function bytesOf(stats: { size: number } | undefined): number {
  return Math.min(stats?.size ?? 0, Number.MAX_SAFE_INTEGER);
}

function trimmedOf(runDirectory: string): Offsets {
  const text = readText(path.join(runDirectory, 'trimmed'));
  return text === '' ? { stdout: 0, stderr: 0 } : (JSON.parse(text) as Offsets);
}

function latest(one: Offsets, other: Offsets): Offsets {
  return { stdout: Math.max(one.stdout, other.stdout), stderr: Math.max(one.stderr, other.stderr) };
}

function formatPosition(run: string, offsets: Offsets): string {
  return `${run}.${offsets.stdout}.${offsets.stderr}`;
}

/** Offsets of a position; the beginning if it belongs to another run of the unit. */
function parsePosition(position: string | null, run: string): Offsets {
  const [name, stdout, stderr] = (position ?? '').split('.');
  return name === run ? { stdout: Number(stdout), stderr: Number(stderr) } : { stdout: 0, stderr: 0 };
}

/** When the unit was made, to the microsecond; null where there is none. */
function runIdOf(runDirectory: string): string | null {
  const made = statSync(path.join(runDirectory, 'unit.json'), { throwIfNoEntry: false });
  return made === undefined ? null : Math.round(made.mtimeMs * 1000).toString(36);
}
