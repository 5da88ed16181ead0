// Zones on disk, one file each: served after a restart, even while the database is unavailable.
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { REPLACEMENT_ENDING, replaceFileDurably, syncDirectory } from '../../core/files';
import type { ZoneSpec } from './nameserver';

export interface ZoneStore {
  save(id: string, spec: ZoneSpec): Promise<void>;
  remove(id: string): Promise<void>;
  /** Null where there is no copy, or an unreadable one. */
  read(id: string): Promise<ZoneSpec | null>;
  /** Every readable zone; a damaged file is skipped, and rewritten by the next `save`. */
  load(): AsyncIterable<{ id: string; spec: ZoneSpec }>;
}

/** Encrypts private keys on disk. */
export interface KeySealer {
  seal(text: string, id: string): string;
  open(sealed: string, id: string): string;
}

const ENDING = '.json';

interface Stored extends Omit<ZoneSpec, 'keys'> {
  keys: string | null;
}

/** @param directory absolute; created if it is missing */
export async function openZoneStore(directory: string, sealer: KeySealer): Promise<ZoneStore> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // Remove unfinished files of a killed process.
  for (const name of await readdir(directory)) if (name.endsWith(REPLACEMENT_ENDING)) await rm(join(directory, name));
  const pathOf = (id: string): string => join(directory, `${id}${ENDING}`);
  return {
    async save(id, spec) {
      const keys = spec.keys.length ? sealer.seal(JSON.stringify(spec.keys), id) : null;
      const stored: Stored = { ...spec, keys };
      await replaceFileDurably(pathOf(id), JSON.stringify(stored));
    },
    async remove(id) {
      await rm(pathOf(id), { force: true });
      await syncDirectory(directory);
    },
    read: (id) => readZone(pathOf(id), id, sealer),
    async *load() {
      for (const name of await readdir(directory)) {
        if (!name.endsWith(ENDING)) continue;
        const id = name.slice(0, -ENDING.length);
        const spec = await readZone(pathOf(id), id, sealer);
        if (spec) yield { id, spec };
      }
    },
  };
}

async function readZone(path: string, id: string, sealer: KeySealer): Promise<ZoneSpec | null> {
  try {
    const stored = JSON.parse(await readFile(path, 'utf8')) as Stored;
    const keys = stored.keys === null ? [] : (JSON.parse(sealer.open(stored.keys, id)) as ZoneSpec['keys']);
    return { ...stored, keys };
  } catch {
    return null;
  }
}
