// Objects on disk: one file per object, its description before the body. The index is in memory and is loaded from the
// files at start. Least recently used objects are evicted first.
import { randomBytes } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { allowsOrigin, varyingFields } from '../edge/vary';
import type { HeaderFields } from '../edge/headers';
import type { Freshness } from '../edge/policy';
import type { PurgeSpec } from '../cdn';
import type { Flight } from './flight';
import { startForm, type FormSource } from './forms';
import { openNewFile, type NewFile } from './new_file';
import { openMemoryTier, type MemoryTier, type StoredBytes } from './memory';
import { nameOf, openObjectIndex, type ObjectIndex } from './object_index';
import { LENGTH_BYTES, UNFINISHED, openSavedObjects, type SavedObjects } from './saved_objects';
import { openSharedTexts, type SharedTexts } from './shared_texts';
import type { Address, Coding, Description, StoredObject } from './stored_object';

export interface ObjectStore {
  /** @param fieldOf a header field of the request, read only where the objects depend on it */
  find(zoneId: string, address: Address, fieldOf: (header: string) => unknown): StoredObject | null;
  /** Creates a file for a body. */
  create(description: Description): Promise<NewFile>;
  /** A later response of the origin has confirmed the object. */
  renew(object: StoredObject, headers: HeaderFields, freshness: Freshness): void;
  /** Purged objects are unreachable at once, and also after a restart once this resolves. */
  purge(zoneId: string, purge: PurgeSpec): Promise<void>;
  /** The file of the object is damaged or missing. */
  drop(object: StoredObject): void;
  /** The compressed form, which may still be being made. */
  form(source: FormSource, coding: Coding): Flight;
  readonly memory: MemoryTier;
  /** Resolves when the files of the last run are loaded. */
  ready: Promise<void>;
  /**
   * For the handover of the directory to another process: once this resolves, the list is written and this process adds
   * no more files. Existing objects are still served.
   */
  releaseDirectory(): Promise<void>;
  /** Reverts `releaseDirectory` when the other process did not start. */
  reclaimDirectory(): void;
  close(): Promise<void>;
}

interface Store {
  directory: string;
  bytesMax: number;
  /** Each object takes memory. */
  objectsMax: number;
  bytes: number;
  objects: number;
  saved: SavedObjects;
  texts: SharedTexts;
  /** Resolves when foreign file names are known. */
  listed: Promise<unknown>;
  index: ObjectIndex;
  memory: MemoryTier;
  /** Forms that are being made. */
  making: Map<string, Flight>;
  /** Another process owns the directory. */
  isReleased: boolean;
  /** Pending renames of files to their final names. */
  placing: Set<Promise<unknown>>;
}

interface StoreLimits {
  bytesMax: number;
  objectsMax: number;
  memoryBytesMax: number;
}

export function openObjectStore(directory: string, { bytesMax, objectsMax, memoryBytesMax }: StoreLimits): ObjectStore {
  const store: Store = {
    ...{ directory, bytesMax, objectsMax, bytes: 0, objects: 0, listed: Promise.resolve(), making: new Map() },
    ...{ index: openObjectIndex(), memory: openMemoryTier(memoryBytesMax), saved: openSavedObjects(directory) },
    ...{ texts: openSharedTexts(), isReleased: false, placing: new Set() },
  };
  const { listed, ended } = store.saved.load((object) => addSaved(store, object));
  store.listed = listed;
  return {
    find: (zoneId, address, fieldOf) => find(store, nameOf({ zone_id: zoneId, ...address }), fieldOf),
    create: (description) => create(store, description),
    renew(object, headers, freshness) {
      Object.assign(object, freshness, { headers: { ...object.headers, ...headers } });
    },
    async purge(zoneId, purge) {
      await Promise.all(store.index.matching(zoneId, purge).map((object) => remove(store, object)));
    },
    drop: (object) => void remove(store, object),
    form: (source, coding) => formOf(store, source, coding),
    memory: store.memory,
    ready: ended,
    releaseDirectory: () => releaseDirectory(store),
    reclaimDirectory: () => void (store.isReleased = false),
    close: () => (store.isReleased ? Promise.resolve() : saveList(store)),
  };
}

function saveList({ saved, index }: Store): Promise<void> {
  return saved.close([...index.oldestFirst()].flat());
}

async function releaseDirectory(store: Store): Promise<void> {
  store.isReleased = true;
  await Promise.allSettled(store.placing);
  await saveList(store);
}

/** Renames a file, unless another process owns the directory; `isWanted` is checked after the rename. */
async function placeFile(store: Store, from: string, to: string, isWanted: () => boolean): Promise<boolean> {
  if (store.isReleased) return false;
  const placing = rename(from, to);
  store.placing.add(placing);
  await placing.finally(() => store.placing.delete(placing));
  if (isWanted() && !store.isReleased) return true;
  await rm(to, { force: true });
  return false;
}

function find({ index }: Store, name: string, fieldOf: (header: string) => unknown): StoredObject | null {
  const variants = index.variants(name);
  if (!variants.length) return null;
  const found = variants.find(({ vary }) => {
    for (const header in vary) if (String(fieldOf(header) ?? '') !== vary[header]) return false;
    return true;
  });
  if (found) index.touch(name);
  return found ?? null;
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
      // The object may be purged during the rename.
      if (!(await placeFile(store, temporary, whole, () => isKnown(store, object)))) return null;
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
  await Promise.all([store.listed, mkdir(store.directory, { recursive: true, mode: 0o700 })]);
  const text = Buffer.from(JSON.stringify(description));
  const start = LENGTH_BYTES + text.length;
  const id = randomBytes(12).toString('hex');
  const temporary = join(store.directory, `${id}${UNFINISHED}`);
  const file = openNewFile({
    ...{ id, file: temporary, start, count: (bytes) => count(store, bytes) },
    async place(size, isWanted) {
      const whole = join(store.directory, `${id}-${size}`);
      if (!(await placeFile(store, temporary, whole, isWanted))) return null;
      const object = { ...description, file: whole, start, size, forms: {} };
      add(store, object);
      store.saved.append(`${id}-${size}`, start, text.toString());
      return object;
    },
  });
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  await file.write(Buffer.concat([length, text]), -start);
  return file;
}

const VARIANTS_MAX = 50;

function add(store: Store, object: StoredObject): void {
  const variants = store.index.variants(nameOf(object));
  const old = sameIn(variants, object) ?? (variants.length >= VARIANTS_MAX ? leastNeeded(variants) : undefined);
  store.texts.share(object);
  store.index.add(object);
  store.objects += 1;
  if (old) void remove(store, old);
  count(store, object.start + object.size, object);
}

/** Visitors make up values of Origin; most send none. */
function leastNeeded(variants: readonly StoredObject[]): StoredObject | undefined {
  return variants.find(({ vary }) => vary.origin !== '') ?? variants[0];
}

/** Adds an object of the last run. Objects stored since the start are newer. */
function addSaved(store: Store, object: StoredObject): void {
  const headers = object.headers as IncomingHttpHeaders;
  // Earlier versions gave what does not allow all to everybody; for which Origin it came is not known.
  const isForOrigin = !('origin' in object.vary) && varyingFields(headers).includes('origin');
  if (isForOrigin) object.vary = { ...object.vary, origin: '' };
  const isUnknown = isForOrigin && allowsOrigin(headers);
  if (isUnknown || sameIn(store.index.variants(nameOf(object)), object)) void removeFile(object);
  else add(store, object);
}

function sameIn(variants: readonly StoredObject[], { vary }: StoredObject): StoredObject | undefined {
  if (!variants.length) return undefined;
  const text = JSON.stringify(vary);
  return variants.find((one) => JSON.stringify(one.vary) === text);
}

/** Evicts objects where a limit is exceeded. @param kept never evicted */
function count(store: Store, bytes: number, kept: StoredObject | null = null): void {
  store.bytes += bytes;
  if (store.bytes <= store.bytesMax && store.objects <= store.objectsMax) return;
  for (const oldest of store.index.oldestFirst()) {
    if (store.bytes <= store.bytesMax && store.objects <= store.objectsMax) break;
    for (const one of oldest) if (one !== kept) void remove(store, one);
  }
}

/** Resolves when the files are removed; open readers continue. */
async function remove(store: Store, object: StoredObject): Promise<void> {
  if (!store.index.remove(object)) return;
  store.objects -= 1;
  const forms = Object.values(object.forms);
  store.bytes -= object.start + object.size;
  store.memory.forget(object);
  for (const form of forms) {
    store.bytes -= form.size;
    store.memory.forget(form);
  }
  await Promise.all([object, ...forms].map(removeFile));
}

async function removeFile({ file }: StoredBytes): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}
