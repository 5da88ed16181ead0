// Files of messages: in one directory, which is synced once for all that came meanwhile.
import { open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory } from '../../../core/directory';
import type { MessageText } from '../../../engines/mail';
import { openBatch } from './batch';

export interface MailStore {
  directory: string;
  /** Where the text of a message is. */
  textOf(message: { file: string | null; content: Buffer | null }): MessageText;
  /** Resolves when the entries that were made before are on the disk. */
  sync(): Promise<void>;
  remove(files: readonly string[]): Promise<void>;
  /** Files that are older than an hour. */
  old(): Promise<string[]>;
}

const SYNCED_AT_ONCE = 10_000;
const OLD_MS = 3_600_000;
/** A message without a text is like one whose file is gone. */
const MISSING = 'missing.eml';

export function openMailStore(directory: string): MailStore {
  makeDirectory(directory, 0o700);
  const syncs = openBatch<null, null>(SYNCED_AT_ONCE, async (waiting) => {
    const handle = await open(directory, 'r');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    return waiting;
  });
  return {
    directory,
    textOf: ({ file, content }) => content ?? join(directory, file ?? MISSING),
    sync: async () => void (await syncs.add(null)),
    remove: async (files) => void (await Promise.all(files.map((file) => rm(join(directory, file), { force: true })))),
    async old() {
      const before = Date.now() - OLD_MS;
      const found = await Promise.all(
        (await readdir(directory)).map(async (file) => {
          const info = await stat(join(directory, file)).catch(() => null);
          return info && info.mtimeMs < before ? [file] : [];
        }),
      );
      return found.flat();
    },
  };
}
