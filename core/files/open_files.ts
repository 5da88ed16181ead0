// Cache of open files. Opening and closing take two thread pool tasks, longer than reading a small file. Files of
// objects never change, so an open descriptor stays valid.
import { close, fsync, open, read } from 'node:fs';
import { promisify } from 'node:util';

const OPEN_MAX = 256;
const IDLE_MS = 2_000;

const openDescriptor = promisify(open);
const syncDescriptor = promisify(fsync);

export interface OpenFile {
  /** Reads into the start of the buffer. @returns bytes read @throws Error where the file is shorter */
  read(buffer: Buffer, length: number, position: number): Promise<number>;
  sync(): Promise<void>;
  release(): void;
}

interface OpenFiles {
  /** Also opens directories. @throws ENOENT */
  open(file: string): Promise<OpenFile>;
  /** The file is about to be removed: its disk space is freed after the last reader. */
  forget(file: string): void;
}

interface Entry {
  descriptor: Promise<number>;
  users: number;
  usedAt: number;
  isForgotten: boolean;
}

/** Most recently used last. */
type Entries = Map<string, Entry>;

export function openFileCache(): OpenFiles {
  const entries: Entries = new Map();
  let timer: NodeJS.Timeout | null = null;
  const dropIdle = (): void => {
    const before = performance.now() - IDLE_MS;
    for (const [file, entry] of entries) if (entry.users === 0 && entry.usedAt <= before) drop(entries, file, entry);
    timer = entries.size ? setTimeout(dropIdle, IDLE_MS).unref() : null;
  };
  return {
    async open(file) {
      const entry = entryOf(entries, file);
      entry.users += 1;
      const descriptor = await entry.descriptor.catch((error: unknown) => {
        if (entries.get(file) === entry) entries.delete(file);
        throw error;
      });
      return {
        read: (buffer, length, position) => readInto(descriptor, buffer, length, position),
        sync: () => syncDescriptor(descriptor),
        release() {
          entry.users -= 1;
          entry.usedAt = performance.now();
          if (entry.isForgotten && entry.users === 0) closeEntry(entry);
          timer ??= setTimeout(dropIdle, IDLE_MS).unref();
        },
      };
    },
    forget(file) {
      const entry = entries.get(file);
      if (entry) drop(entries, file, entry);
    },
  };
}

function entryOf(entries: Entries, file: string): Entry {
  const known = entries.get(file);
  if (known) entries.delete(file);
  const entry = known ?? { descriptor: openDescriptor(file, 'r'), users: 0, usedAt: 0, isForgotten: false };
  entries.set(file, entry);
  if (entries.size > OPEN_MAX) dropOldest(entries, entry);
  return entry;
}

function dropOldest(entries: Entries, kept: Entry): void {
  for (const [file, entry] of entries)
    if (entry.users === 0 && entry !== kept) {
      drop(entries, file, entry);
      return;
    }
}

function drop(entries: Entries, file: string, entry: Entry): void {
  if (entries.get(file) === entry) entries.delete(file);
  entry.isForgotten = true;
  if (entry.users === 0) closeEntry(entry);
}

function readInto(descriptor: number, buffer: Buffer, length: number, position: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(descriptor, buffer, 0, length, position, (error, bytesRead) => {
      if (error) reject(error);
      else if (bytesRead === 0) reject(new Error('a file of an object is shorter than its row says'));
      else resolve(bytesRead);
    });
  });
}

/** The file was only read, so a failed close loses nothing. */
function closeEntry({ descriptor }: Entry): void {
  void descriptor.then(
    (number) => close(number, () => undefined),
    () => undefined,
  );
}
