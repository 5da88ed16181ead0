// Objects on disk: a file each, with its description in front of the body. The index is in memory and is read from the
// files at the start. What was not asked for for longest goes first when there is no room.
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { HeaderFields } from '../edge/headers';
import type { Freshness } from '../edge/policy';
import type { PurgeSpec } from '../../cdn';
import type { Flight } from './flight';
import { isForm, startForm, type Coding, type FormSource } from './forms';
import { openNewFile, type NewFile } from './new_file';
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
  create(description: Description): Promise<NewFile>;
  /** A later answer of the origin has confirmed the object. */
  renew(object: StoredObject, headers: HeaderFields, freshness: Freshness): void;
  purge(zoneId: string, purge: PurgeSpec): void;
  /** Its file is damaged or has gone. */
  drop(object: StoredObject): void;
  /** The one compressed form, which may be on its way yet. */
  form(source: FormSource, coding: Coding): Flight;
  readonly memory: MemoryTier;
  /** Resolves when the files of the last run are known. */
  ready: Promise<void>;
}

const UNFINISHED = '.part';
const LENGTH_BYTES = 4;
const DESCRIPTION_BYTES_MAX = 256 * 1024;

interface Store {
  directory: string;
  bytesMax: number;
  bytes: number;
  index: ObjectIndex;
  memory: MemoryTier;
  /** Forms on their way. */
  making: Map<string, Flight>;
}

export function openObjectStore(
  directory: string,
  { bytesMax, memoryBytesMax }: { bytesMax: number; memoryBytesMax: number },
): ObjectStore {
  const shared = {
    index: openObjectIndex(),
    memory: openMemoryTier(memoryBytesMax),
    making: new Map<string, Flight>(),
  };
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
    form: (source, coding) => formOf(store, source, coding),
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

function formOf(store: Store, source: FormSource, coding: Coding): Flight {
  const id = `${source.id}.${coding}`;
  const known = store.making.get(id);
  if (known) return known;
  const temporary = join(store.directory, `${id}${UNFINISHED}`);
  const file = openNewFile({
    ...{ id, file: temporary, start: 0, count: (bytes) => count(store, bytes) },
    async place(size) {
      const object = await source.stored;
      if (!object || !isKnown(store, object)) return null;
      const whole = `${object.file}.${coding}`;
      await rename(temporary, whole);
      // It may have been purged while the file was renamed.
      if (!isKnown(store, object)) return rm(whole, { force: true }).then(() => null);
      object.forms[coding] = { file: whole, start: 0, size };
      count(store, size);
      return object;
    },
  });
  const form = startForm(source, coding, file, store.bytesMax);
  store.making.set(id, form);
  void form.ended.then(() => store.making.delete(id));
  return form;
}

function isKnown({ index }: Store, object: StoredObject): boolean {
  return index.variants(nameOf(object)).includes(object);
}

async function create(store: Store, description: Description): Promise<NewFile> {
  await mkdir(store.directory, { recursive: true, mode: 0o700 });
  const text = Buffer.from(JSON.stringify(description));
  const start = LENGTH_BYTES + text.length;
  const id = randomBytes(12).toString('hex');
  const temporary = join(store.directory, `${id}${UNFINISHED}`);
  const file = openNewFile({
    ...{ id, file: temporary, start, count: (bytes) => count(store, bytes) },
    async place(size, isWanted) {
      // A file that lost its end when the machine stopped shows that by its name.
      const whole = join(store.directory, `${id}-${size}`);
      await rename(temporary, whole);
      if (!isWanted()) return rm(whole, { force: true }).then(() => null);
      const object = { ...description, file: whole, start, size, forms: {} };
      add(store, object);
      return object;
    },
  });
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  await file.write(Buffer.concat([length, text]), -start);
  return file;
}

const VARIANTS_MAX = 50;
const READERS = 16;

function add(store: Store, object: StoredObject): void {
  const variants = store.index.variants(nameOf(object));
  const isSame = ({ vary }: StoredObject): boolean => JSON.stringify(vary) === JSON.stringify(object.vary);
  const old = variants.find(isSame) ?? (variants.length >= VARIANTS_MAX ? variants[0] : undefined);
  store.index.add(object);
  if (old) remove(store, old);
  count(store, object.start + object.size, object);
}

/** Makes room where there are too many now. @param kept stays */
function count(store: Store, bytes: number, kept: StoredObject | null = null): void {
  store.bytes += bytes;
  for (const oldest of store.index.oldestFirst()) {
    if (store.bytes <= store.bytesMax) break;
    for (const one of oldest) if (one !== kept) remove(store, one);
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
    const object = name.endsWith(UNFINISHED) || isForm(name) ? null : await readObject(file).catch(() => null);
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
