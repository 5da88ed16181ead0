// Objects on disk: a file each, with its description in front of the body. The index is in memory and is read from the
// files at the start. What was not asked for for longest goes first when there is no room.
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { HeaderFields } from '../edge/headers';
import type { Freshness } from '../edge/policy';
import type { PurgeSpec } from '../../cdn';
import { isForm, makeForm, type Coding } from './forms';
import { openMemoryTier, type MemoryTier, type StoredBytes } from './memory';
import { nameOf, openObjectIndex, type ObjectIndex } from './object_index';

/** What is known of an object beside its body. */
export interface Description extends Freshness {
  zone_id: string;
  site: string;
  /** Of the address: path, and the query string if it counts. */
  key: string;
  status: number;
  headers: HeaderFields;
  tags: string[];
  /** Values of the header fields of the request that the response depends on. */
  vary: Record<string, string>;
}

export interface StoredObject extends Description, StoredBytes {
  /** Compressed forms, once they were asked for. */
  forms: Partial<Record<Coding, StoredBytes>>;
}

export type Address = Pick<Description, 'site' | 'key'>;

export interface ObjectStore {
  /** @param request read only where an object depends on its fields */
  find(zoneId: string, address: Address, request: () => Record<string, unknown>): StoredObject | null;
  /** A file to write a body to. */
  create(description: Description): Promise<NewObject>;
  /** A later answer of the origin has confirmed the object. */
  renew(object: StoredObject, headers: HeaderFields, freshness: Freshness): void;
  purge(zoneId: string, purge: PurgeSpec): void;
  /** Its file is damaged or has gone. */
  drop(object: StoredObject): void;
  /** The compressed form, or null while it is made: then the next visitor gets it. */
  form(object: StoredObject, coding: Coding): StoredBytes | null;
  readonly memory: MemoryTier;
  /** Resolves when the files of the last run are known. */
  ready: Promise<void>;
}

export interface NewObject {
  handle: FileHandle;
  file: string;
  start: number;
  /** The body is whole: it can be found from now on, unless it is not wanted any more when the file is in place. */
  commit(size: number, isWanted: () => boolean): Promise<void>;
  discard(): Promise<void>;
}

const LENGTH_BYTES = 4;
const DESCRIPTION_BYTES_MAX = 256 * 1024;

interface Store {
  directory: string;
  bytesMax: number;
  bytes: number;
  index: ObjectIndex;
  memory: MemoryTier;
  /** Forms on their way. */
  making: Set<string>;
}

export function openObjectStore(
  directory: string,
  { bytesMax, memoryBytesMax }: { bytesMax: number; memoryBytesMax: number },
): ObjectStore {
  const shared = { index: openObjectIndex(), memory: openMemoryTier(memoryBytesMax), making: new Set<string>() };
  const store: Store = { directory, bytesMax, bytes: 0, ...shared };
  return {
    find: (zoneId, address, request) => find(store, nameOf({ zone_id: zoneId, ...address }), request),
    create: (description) => create(store, description),
    renew(object, headers, freshness) {
      Object.assign(object, freshness, { headers: { ...object.headers, ...headers } });
    },
    purge(zoneId, purge) {
      for (const object of store.index.matching(zoneId, purge)) remove(store, object);
    },
    drop: (object) => remove(store, object),
    form: (object, coding) => formOf(store, object, coding),
    memory: store.memory,
    ready: load(store),
  };
}

function find({ index }: Store, name: string, request: () => Record<string, unknown>): StoredObject | null {
  const variants = index.variants(name);
  if (!variants.length) return null;
  const fields = variants.some(({ vary }) => !isEmpty(vary)) ? request() : {};
  const found = variants.find(({ vary }) =>
    Object.entries(vary).every(([header, value]) => String(fields[header] ?? '') === value),
  );
  if (found) index.touch(name);
  return found ?? null;
}

function isEmpty(fields: object): boolean {
  for (const _ in fields) return false;
  return true;
}

function formOf(store: Store, object: StoredObject, coding: Coding): StoredBytes | null {
  const known = object.forms[coding];
  if (known) return known;
  const name = `${object.file}.${coding}`;
  if (store.making.has(name)) return null;
  store.making.add(name);
  void makeForm(object, coding).then((form) => {
    store.making.delete(name);
    if (!form) return;
    if (!store.index.variants(nameOf(object)).includes(object)) return void rm(form.file, { force: true });
    object.forms[coding] = form;
    store.bytes += form.size;
  });
  return null;
}

async function create(store: Store, description: Description): Promise<NewObject> {
  await mkdir(store.directory, { recursive: true, mode: 0o700 });
  const text = Buffer.from(JSON.stringify(description));
  const start = LENGTH_BYTES + text.length;
  const file = join(store.directory, `${randomBytes(12).toString('hex')}`);
  const temporary = `${file}.part`;
  const handle = await open(temporary, 'wx+', 0o600);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  await handle.write(Buffer.concat([length, text]), 0, start, 0);
  return {
    handle,
    file: temporary,
    start,
    async commit(size, isWanted) {
      // A file that lost its end when the machine stopped shows that by its name.
      const whole = `${file}-${size}`;
      await rename(temporary, whole);
      if (!isWanted()) return void (await rm(whole, { force: true }));
      add(store, { ...description, file: whole, start, size, forms: {} });
    },
    discard: () => rm(temporary, { force: true }),
  };
}

const VARIANTS_MAX = 50;
const READERS = 16;

function add(store: Store, object: StoredObject): void {
  const variants = store.index.variants(nameOf(object));
  const isSame = ({ vary }: StoredObject): boolean => JSON.stringify(vary) === JSON.stringify(object.vary);
  const old = variants.find(isSame) ?? (variants.length >= VARIANTS_MAX ? variants[0] : undefined);
  store.index.add(object);
  store.bytes += object.start + object.size;
  if (old) remove(store, old);
  for (const oldest of store.index.oldestFirst()) {
    if (store.bytes <= store.bytesMax) break;
    for (const one of oldest) if (one !== object) remove(store, one);
  }
}

/** Readers that have the file open read on. */
function remove(store: Store, object: StoredObject): void {
  if (!store.index.remove(object)) return;
  store.bytes -= object.start + object.size;
  store.memory.forget(object);
  void rm(object.file, { force: true }).catch(() => undefined);
  for (const form of Object.values(object.forms)) {
    store.bytes -= form.size;
    store.memory.forget(form);
    void rm(form.file, { force: true }).catch(() => undefined);
  }
}

async function load(store: Store): Promise<void> {
  const names = await readdir(store.directory).catch(() => []);
  const next = names.values();
  await Promise.all(Array.from({ length: READERS }, () => loadEach(store, next)));
}

async function loadEach(store: Store, names: Iterator<string> & Iterable<string>): Promise<void> {
  for (const name of names) {
    const file = join(store.directory, name);
    const object = name.endsWith('.part') || isForm(name) ? null : await readObject(file).catch(() => null);
    if (object) add(store, object);
    else await rm(file, { force: true }).catch(() => undefined);
  }
}

/** @throws where the file is none of ours, or damaged */
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
    if (size !== Number(file.slice(file.lastIndexOf('-') + 1))) throw new Error('not whole');
    return { ...description, file, start, size, forms: {} };
  } finally {
    await handle.close();
  }
}
