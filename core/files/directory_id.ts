// What identifies a directory, wherever it is mounted: rows name the one that has their files.
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const NAME = 'directory-id';

/** The id of an existing directory, which is given one at the first call. @throws Error where it cannot be written */
export async function ensureDirectoryId(directory: string): Promise<string> {
  const file = path.join(directory, NAME);
  // Of two concurrent writers the first one wins.
  await writeFile(file, randomUUID(), { flag: 'wx', mode: 0o600 }).catch(() => undefined);
  const id = await readFile(file, 'utf8').catch(() => '');
  if (id) return id;
  // Left empty by a power cut.
  await writeFile(file, randomUUID(), { mode: 0o600 });
  return readFile(file, 'utf8');
}
