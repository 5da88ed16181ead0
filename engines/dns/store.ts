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
  /**
   * Every readable zone; a damaged file is skipped, and rewritten by the next `save`. The first time, before there is
   * one, keys are sealed again that were sealed with an older key.
   */
  load(): AsyncIterable<{ id: string; spec: ZoneSpec }>;
}

/** Encrypts private keys on disk. */
export interface KeySealer {
  /** How each text begins that is sealed now. */
  prefix: string;
  seal(text: string, id: string): string;
  open(sealed: string, id: string): string;
}

const ENDING = '.json';
/** A disk syncs several files in the time of one. */
const SAVED_TOGETHER = 32;

interface Stored extends Omit<ZoneSpec, 'keys'> {
  keys: string | null;
}

/** @param directory absolute; created if it is missing */
export async function openZoneStore(directory: string, sealer: KeySealer): Promise<ZoneStore> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  // Remove unfinished files of a killed process.
  for (const name of await readdir(directory)) if (name.endsWith(REPLACEMENT_ENDING)) await rm(join(directory, name));
  const pathOf = (id: string): string => join(directory, `${id}${ENDING}`);
  const save = async (id: string, spec: ZoneSpec): Promise<void> => {
    const keys = spec.keys.length ? sealer.seal(JSON.stringify(spec.keys), id) : null;
    const stored: Stored = { ...spec, keys };
    await replaceFileDurably(pathOf(id), JSON.stringify(stored));
  };
  /** On a full disk it stays as it was, and is served. */
  const saveAgain = async (id: string): Promise<void> => {
    const found = await readZone(pathOf(id), id, sealer);
    if (found) await save(id, found.spec).catch(() => undefined);
  };
  let isLoaded = false;
  return {
    save,
    async remove(id) {
      await rm(pathOf(id), { force: true });
      await syncDirectory(directory);
    },
    read: async (id) => (await readZone(pathOf(id), id, sealer))?.spec ?? null,
    async *load() {
      const outdated: string[] = [];
      for (const name of await readdir(directory)) {
        if (!name.endsWith(ENDING)) continue;
        const id = name.slice(0, -ENDING.length);
        const found = await readZone(pathOf(id), id, sealer);
        if (!found) continue;
        if (found.isOutdated) outdated.push(id);
        yield { id, spec: found.spec };
      }
      if (!isLoaded) for (const ids of inGroups(outdated)) await Promise.all(ids.map(saveAgain));
      isLoaded = true;
    },
  };
}

function* inGroups(ids: readonly string[]): Iterable<string[]> {
  for (let from = 0; from < ids.length; from += SAVED_TOGETHER) yield ids.slice(from, from + SAVED_TOGETHER);
}

async function readZone(
  path: string,
  id: string,
  sealer: KeySealer,
): Promise<{ spec: ZoneSpec; isOutdated: boolean } | null> {
  try {
    const stored = JSON.parse(await readFile(path, 'utf8')) as Stored;
    const keys = stored.keys === null ? [] : (JSON.parse(sealer.open(stored.keys, id)) as ZoneSpec['keys']);
    return { spec: { ...stored, keys }, isOutdated: stored.keys?.startsWith(sealer.prefix) === false };
  } catch {
    return null;
  }
}
