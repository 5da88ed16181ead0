// Objects on disk: a file each, with its description in front of the body. The index is in memory and is read from the
// files at the start. What was not asked for for longest goes first when there is no room.
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { purgeMatcher } from '../edge/purge_matcher';
import type { HeaderFields } from '../edge/headers';
import type { Freshness } from '../edge/policy';
import type { PurgeSpec } from '../../cdn';

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

export interface StoredObject extends Description {
  file: string;
  /** Where the body begins in the file. */
  start: number;
  size: number;
}

export type Address = Pick<Description, 'site' | 'key'>;

export interface ObjectStore {
  find(zoneId: string, address: Address, request: Record<string, unknown>): StoredObject | null;
  /** A file to write a body to. */
  create(description: Description): Promise<NewObject>;
  /** A later answer of the origin has confirmed the object. */
  renew(object: StoredObject, headers: HeaderFields, freshness: Freshness): void;
  purge(zoneId: string, purge: PurgeSpec): void;
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
  /** By zone and key, in the order of their last use. */
  objects: Map<string, StoredObject[]>;
}

export function openObjectStore(directory: string, bytesMax: number): ObjectStore {
  const store: Store = { directory, bytesMax, bytes: 0, objects: new Map() };
  return {
    find: (zoneId, address, request) => find(store, nameOf(zoneId, address), request),
    create: (description) => create(store, description),
    renew(object, headers, freshness) {
      Object.assign(object, freshness, { headers: { ...object.headers, ...headers } });
    },
    purge: (zoneId, purge) => purgeObjects(store, zoneId, purge),
    ready: load(store),
  };
}

function nameOf(zoneId: string, { site, key }: Address): string {
  return `${zoneId} ${site} ${key}`;
}

function find(store: Store, name: string, request: Record<string, unknown>): StoredObject | null {
  const variants = store.objects.get(name);
  const found = variants?.find(({ vary }) =>
    Object.entries(vary).every(([header, value]) => String(request[header] ?? '') === value),
  );
  if (!variants || !found) return null;
  // Used last: behind all others.
  store.objects.delete(name);
  store.objects.set(name, variants);
  return found;
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
      add(store, { ...description, file: whole, start, size });
    },
    discard: () => rm(temporary, { force: true }),
  };
}

const VARIANTS_MAX = 50;

function add(store: Store, object: StoredObject): void {
  const name = nameOf(object.zone_id, object);
  const variants = store.objects.get(name) ?? [];
  const isSame = ({ vary }: StoredObject): boolean => JSON.stringify(vary) === JSON.stringify(object.vary);
  const old = variants.find(isSame) ?? (variants.length >= VARIANTS_MAX ? variants[0] : undefined);
  store.objects.set(name, [...variants, object]);
  store.bytes += object.start + object.size;
  if (old) remove(store, old);
  for (const [, oldest] of store.objects) {
    if (store.bytes <= store.bytesMax) break;
    for (const one of oldest) if (one !== object) remove(store, one);
  }
}

/** Readers that have the file open read on. */
function remove(store: Store, object: StoredObject): void {
  const name = nameOf(object.zone_id, object);
  const variants = store.objects.get(name) ?? [];
  if (!variants.includes(object)) return;
  const left = variants.filter((one) => one !== object);
  if (left.length) store.objects.set(name, left);
  else store.objects.delete(name);
  store.bytes -= object.start + object.size;
  void rm(object.file, { force: true }).catch(() => undefined);
}

function purgeObjects(store: Store, zoneId: string, purge: PurgeSpec): void {
  const matches = purgeMatcher(purge);
  for (const variants of [...store.objects.values()])
    for (const object of variants) if (object.zone_id === zoneId && matches(object)) remove(store, object);
}

async function load(store: Store): Promise<void> {
  for (const name of await readdir(store.directory).catch(() => [])) {
    const file = join(store.directory, name);
    const object = name.endsWith('.part') ? null : await readObject(file).catch(() => null);
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
    return { ...description, file, start, size };
  } finally {
    await handle.close();
  }
}
