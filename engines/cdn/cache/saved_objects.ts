// Objects of the last run. Each file contains its description. To avoid opening a million files at start, the
// descriptions are also in one list file, one per line, which may lack objects and may name files that no longer exist.
import { createReadStream } from 'node:fs';
import { appendFile, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isForm } from './forms';
import type { Description, StoredObject } from './stored_object';

export interface SavedObjects {
  append(name: string, start: number, description: string): void;
  /** Removes foreign and incomplete files. `ended` resolves when the last object was added. */
  load(add: (object: StoredObject) => void): { listed: Promise<unknown>; ended: Promise<void> };
  /** @param objects least recently used first */
  close(objects: Iterable<StoredObject>): Promise<void>;
}

interface State {
  directory: string;
  pending: string[];
  timer: NodeJS.Timeout | undefined;
  last: Promise<void>;
}

interface Line {
  name: string;
  start: number;
  description: Description;
}

/** Suffix of incomplete files. */
export const UNFINISHED = '.part';
export const LENGTH_BYTES = 4;
const LIST = 'index';
const WRITE_AFTER_MS = 1_000;
const READERS = 16;
/** Bytes read at once: requests of visitors wait for this read. */
const READ_BYTES = 256 * 1024;
const LINES_AT_ONCE = 1_000;
const DESCRIPTION_BYTES_MAX = 256 * 1024;

export function openSavedObjects(directory: string): SavedObjects {
  const state: State = { directory, pending: [], timer: undefined, last: Promise.resolve() };
  return {
    append(name, start, description) {
      state.pending.push(`{"name":"${name}","start":${start},"description":${description}}\n`);
      state.timer ??= setTimeout(() => void write(state), WRITE_AFTER_MS).unref();
    },
    load(add) {
      const listed = readdir(directory).then(
        (found) => new Set(found),
        () => new Set<string>(),
      );
      return { listed, ended: listed.then((names) => load(state, names, add)) };
    },
    async close(objects) {
      await write(state);
      await rewrite(directory, objects).catch(() => undefined);
    },
  };
}

function write(state: State): Promise<void> {
  clearTimeout(state.timer);
  state.timer = undefined;
  const text = state.pending.splice(0).join('');
  // An object whose line could not be written is read from its file at the next start.
  if (text) state.last = state.last.then(() => appendFile(join(state.directory, LIST), text)).catch(() => undefined);
  return state.last;
}

/** Rewrites the list without removed objects, in the order of use. */
async function rewrite(directory: string, objects: Iterable<StoredObject>): Promise<void> {
  const temporary = join(directory, `${LIST}${UNFINISHED}`);
  const handle = await open(temporary, 'w', 0o600);
  try {
    let lines: string[] = [];
    for (const { file, start, size: _size, forms: _forms, ...description } of objects) {
      const name = file.slice(directory.length + 1);
      lines.push(JSON.stringify({ name, start, description } satisfies Line), '\n');
      if (lines.length < LINES_AT_ONCE) continue;
      await handle.write(lines.join(''));
      lines = [];
    }
    await handle.write(lines.join(''));
  } finally {
    await handle.close();
  }
  await rename(temporary, join(directory, LIST));
}

async function load(state: State, names: Set<string>, add: (object: StoredObject) => void): Promise<void> {
  const { directory } = state;
  if (names.delete(LIST)) await loadLines(directory, names, add).catch(() => undefined);
  const left = names.values();
  const readEach = async (): Promise<void> => {
    for (const name of left) {
      const file = join(directory, name);
      const isObject = !name.endsWith(UNFINISHED) && !isForm(name);
      const object = isObject ? await readObject(file).catch(() => null) : null;
      if (!object) await rm(file, { force: true }).catch(() => undefined);
      else add(object);
    }
  };
  await Promise.all(Array.from({ length: READERS }, readEach));
}

async function loadLines(directory: string, names: Set<string>, add: (object: StoredObject) => void): Promise<void> {
  let rest = '';
  for await (const chunk of createReadStream(join(directory, LIST), { encoding: 'utf8', highWaterMark: READ_BYTES })) {
    const lines = (rest + (chunk as string)).split('\n');
    rest = lines.pop() as string;
    for (const text of lines) {
      const line = parseLine(text);
      if (!line || !names.delete(line.name)) continue;
      const file = join(directory, line.name);
      add({ ...line.description, file, start: line.start, size: sizeIn(line.name), forms: {} });
    }
  }
}

/** The last line may be truncated after a crash. */
function parseLine(text: string): Line | null {
  try {
    return JSON.parse(text) as Line;
  } catch {
    return null;
  }
}

/** The size in the name reveals a file that was truncated by a crash. */
function sizeIn(name: string): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}

/** @throws Error where the file is foreign or damaged */
async function readObject(file: string): Promise<StoredObject> {
  const handle = await open(file, 'r');
  try {
    const length = Buffer.alloc(LENGTH_BYTES);
    await handle.read(length, 0, LENGTH_BYTES, 0);
    const bytes = length.readUInt32BE();
    if (bytes > DESCRIPTION_BYTES_MAX) throw new Error('no description');
    const text = Buffer.alloc(bytes);
    await handle.read(text, 0, bytes, LENGTH_BYTES);
    const description = JSON.parse(text.toString('utf8')) as Description;
    const start = LENGTH_BYTES + bytes;
    const size = (await stat(file)).size - start;
    if (size !== sizeIn(file)) throw new Error('not whole');
    return { ...description, file, start, size, forms: {} };
  } finally {
    await handle.close();
  }
}
