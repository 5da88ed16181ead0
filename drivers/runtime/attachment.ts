// A client at a running unit: what it prints, from its files, and its standard input, a FIFO. Nothing of the unit waits
// for a client: a slow one reads the files later, and a unit that outlives the control plane keeps its input open
// (sandbox/launch.ts). The files are read by whoever may enter the run directory, so the process that serves the client
// need not be the one that started the unit.
import { constants, openSync, closeSync, statSync, watch, writeSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../../core/process/command';
import { driverContext } from '../../core/driver';
import type { Handle } from '../runtime';
import {
  INPUT_END_FILE,
  INPUT_FILE,
  exitOf,
  hasEnded,
  readHandle,
  readText,
  readUnit,
  runDirectoryOf,
} from './run_directory';
import type { Exited } from './run_directory';
import { TERMINAL_FILE } from './sandbox/terminal';
import { signalUnit } from './units/unit_processes';

export type OutputStream = 'stdout' | 'stderr';

export interface OutputPart {
  stream: OutputStream;
  bytes: Buffer;
}

export interface Attachment {
  /**
   * Output in the order of its files, then how the unit ended. Begins `replayBytes` before the present end of each
   * file. A part is read when the one before was taken.
   */
  output(replayBytes: number, signal: AbortSignal): AsyncGenerator<OutputPart, Exited | null>;
  /** Standard input; null for a unit that has none or reads no more. It may be opened again after it was closed. */
  openInput(): Promise<Writable | null>;
  /** The unit reads the end of its input, once all writers have closed theirs. */
  endInput(): void;
  /** To the innermost programs of the unit. */
  sendSignal(signal: NodeJS.Signals): Promise<void>;
  /** Tells the terminal, and with it the program at it (SIGWINCH). @throws CommandFailed */
  resize(size: { rows: number; columns: number }): Promise<void>;
  /** Ends what is open. The unit runs on. */
  close(): void;
}

const FILES: readonly { stream: OutputStream; file: string }[] = [
  { stream: 'stdout', file: 'out' },
  { stream: 'stderr', file: 'err' },
];
const PART_BYTES = 64 * 1024;
/** Files that are changed notify; this interval covers file systems that do not. */
const POLL_MS = 500;
const RESIZE_WITHIN_MS = 5_000;
const OPEN_WITHIN_MS = 3_000;
const OPEN_EVERY_MS = 10;

/** The unit of this id below the directory of units; null where it has not been started there, or is gone. */
export function openAttachment(directory: string, unitId: string): Attachment | null {
  const runDirectory = runDirectoryOf(directory, unitId);
  const handle = readHandle(runDirectory, unitId);
  if (handle === null) return null;
  return {
    output: (replayBytes, signal) => readOutput(runDirectory, handle, replayBytes, signal),
    openInput: () => openFifo(runDirectory, handle),
    endInput: () => endFifo(path.join(runDirectory, INPUT_END_FILE)),
    async sendSignal(signal) {
      const unit = await readUnit(runDirectory);
      if (unit !== null) signalUnit(unit, handle, signal);
    },
    async resize({ rows, columns }) {
      const terminal = await findTerminal(runDirectory);
      if (terminal === null) return;
      const words = ['-F', terminal, 'rows', String(rows), 'cols', String(columns)];
      await run('stty', words, driverContext(RESIZE_WITHIN_MS));
    },
    close: () => undefined,
  };
}

async function* readOutput(
  runDirectory: string,
  handle: Handle,
  replayBytes: number,
  signal: AbortSignal,
): ReturnType<Attachment['output']> {
  const changes = watchFiles(runDirectory, signal);
  const files = FILES.map((one) => ({ ...one, path: path.join(runDirectory, one.file), offset: 0 }));
  for (const file of files) file.offset = Math.max(0, sizeOf(file.path) - replayBytes);
  try {
    for (;;) {
      // Before the files: what is printed after this was read is read in the next round.
      const exit = await exitOf(runDirectory, handle);
      let isMore = false;
      for (const file of files) {
        const bytes = await readPart(file.path, file.offset);
        if (signal.aborted) return null;
        if (bytes.length === 0) continue;
        isMore = true;
        file.offset += bytes.length;
        yield { stream: file.stream, bytes };
      }
      if (isMore) continue;
      if (exit !== null) return exit;
      await changes.next();
      if (signal.aborted) return null;
    }
  } finally {
    changes.close();
  }
}

interface Changes {
  /** Resolves when a file has changed since the last call, or after a while. */
  next(): Promise<void>;
  close(): void;
}

function watchFiles(runDirectory: string, signal: AbortSignal): Changes {
  let hasChanged = false;
  let wake = (): void => undefined;
  const notify = (): void => {
    hasChanged = true;
    wake();
  };
  const watcher = watchQuietly(runDirectory, notify);
  signal.addEventListener('abort', notify);
  return {
    next() {
      if (hasChanged) return Promise.resolve(void (hasChanged = false));
      return new Promise((resolve) => {
        const timer = setTimeout(() => wake(), POLL_MS);
        wake = () => {
          clearTimeout(timer);
          hasChanged = false;
          resolve();
        };
      });
    },
    close() {
      signal.removeEventListener('abort', notify);
      watcher?.close();
      wake();
    },
  };
}

// A host may have no watchers left; polling goes on.
function watchQuietly(directory: string, notify: () => void): { close(): void } | null {
  try {
    return watch(directory, notify).on('error', () => undefined);
  } catch {
    return null;
  }
}

async function readPart(file: string, offset: number): Promise<Buffer> {
  const handle: FileHandle | null = await open(file, 'r').catch(() => null);
  if (handle === null) return Buffer.alloc(0);
  try {
    const left = Number((await handle.stat()).size) - offset;
    if (left <= 0) return Buffer.alloc(0);
    const buffer = Buffer.allocUnsafe(Math.min(PART_BYTES, left));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

// The shim opens its end right after it has written its handle.
async function openFifo(runDirectory: string, handle: Handle): Promise<Socket | null> {
  const file = path.join(runDirectory, INPUT_FILE);
  if (!statSync(file, { throwIfNoEntry: false })) return null;
  for (const until = Date.now() + OPEN_WITHIN_MS; ; await sleep(OPEN_EVERY_MS)) {
    const fd = openForWriting(file);
    if (fd !== null) return new Socket({ fd, readable: false, writable: true });
    if (Date.now() > until || (await exitOf(runDirectory, handle)) !== null) return null;
  }
}

// Written by the first program in it.
async function findTerminal(runDirectory: string): Promise<string | null> {
  for (const until = Date.now() + OPEN_WITHIN_MS; Date.now() < until; await sleep(OPEN_EVERY_MS)) {
    const terminal = readText(path.join(runDirectory, TERMINAL_FILE)).trim();
    if (/^\/dev\/pts\/\d+$/.test(terminal)) return terminal;
    if (hasEnded(runDirectory)) return null;
  }
  return null;
}

/** Where nobody reads any more, the input has ended. */
function endFifo(file: string): void {
  const fd = openForWriting(file);
  if (fd === null) return;
  try {
    writeSync(fd, '\n');
  } catch {
    // Nobody reads any more, or it is full of such lines.
  } finally {
    closeSync(fd);
  }
}

// Without waiting for a reader: where there is none, the open fails.
function openForWriting(fifo: string): number | null {
  try {
    return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}
