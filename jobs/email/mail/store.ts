// Files of messages: in one directory, which is synced once for all that came meanwhile. With a file store they are
// there before they are accepted, so that another machine sends them when this one is lost; the directory then has
// copies.
import { randomUUID } from 'node:crypto';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDirectory } from '../../../core/directory';
import { DriverError, driverContext } from '../../../core/driver';
import type { Logger } from '../../../core/log/log';
import type { FileStore } from '../../../drivers/file_store';
import { isMessage, type MessageShape, type MessageText } from '../../../engines/mail';
import { openBatch } from './batch';

type StoredMessage = MessageShape & { file: string | null; content: Buffer | null };

export interface MailStore {
  directory: string;
  /** Resolves when a file that was written in the directory is durable. @throws DriverError */
  keep(file: string): Promise<void>;
  /**
   * Where the text of a message is: fetched first, if another machine has received it.
   * @throws EngineAway; DriverError where the file store does not have what was stored
   */
  textOf(message: StoredMessage): Promise<MessageText>;
  /** Files in the file store go later: one that is left there is old some time. */
  remove(files: readonly string[]): Promise<void>;
  /** Files that are older than an hour. @throws EngineAway */
  old(): Promise<string[]>;
  /** Copies files to the file store that it does not have. @param unneeded which of them no message needs */
  storeAll(unneeded: (files: string[]) => Promise<string[]>): Promise<void>;
}

const SYNCED_AT_ONCE = 10_000;
const OLD_MS = 3_600_000;
/** A message without a text is like one whose file is gone. */
const MISSING = 'missing.eml';
/** In the file store. */
const FOLDER = 'mail/';
/** Clients wait ten minutes for the reply to a message (RFC 5321 §4.5.3.2.6), and our listener half of that. */
const KEEP_WITHIN_MS = 120_000;
const FETCH_WITHIN_MS = 120_000;
const REMOVE_WITHIN_MS = 60_000;
const REMOVED_AT_ONCE = 8;
const LIST_WITHIN_MS = 10 * 60_000;
const UNFINISHED_MS = 24 * 3_600_000;

interface MailStoreOptions {
  directory: string;
  /** null: files stay in the directory. */
  fileStore: FileStore | null;
  log: Logger;
}

export function openMailStore({ directory, fileStore, log }: MailStoreOptions): MailStore {
  makeDirectory(directory, 0o700);
  const local = openDirectory(directory);
  if (!fileStore) return { ...local, storeAll: async () => undefined };
  const fetching = new Map<string, Promise<string>>();
  const removals = openBatch<string, null>(REMOVED_AT_ONCE, (files) =>
    Promise.all(files.map((file) => removeStored(fileStore, file, log))),
  );
  return {
    directory,
    async keep(file) {
      await fileStore
        .put(FOLDER + file, join(directory, file), driverContext(KEEP_WITHIN_MS))
        .catch((error: unknown) => {
          log.warn({ err: error }, 'a message was refused: it could not be copied to the file store');
          throw error;
        });
    },
    async textOf(message) {
      const { file, content } = message;
      if (content) return content;
      const path = join(directory, file ?? MISSING);
      if (file === null || (await stat(path).catch(() => null))) return path;
      // Once for all recipients of the message.
      const fetched = fetching.get(file) ?? fetchMessage(fileStore, path, file, message);
      fetching.set(file, fetched);
      return fetched.finally(() => fetching.delete(file));
    },
    async remove(files) {
      await local.remove(files);
      for (const file of files) void removals.add(file);
    },
    async old() {
      const before = Date.now() - OLD_MS;
      const found = await local.old();
      const ctx = driverContext(LIST_WITHIN_MS);
      for await (const { name, modified_at } of fileStore.list(FOLDER, ctx))
        if (Date.parse(modified_at) < before) found.push(name.slice(FOLDER.length));
      await fileStore.removeUnfinished(FOLDER, new Date(Date.now() - UNFINISHED_MS), ctx);
      return [...new Set(found)];
    },
    storeAll: (unneeded) => storeAll(fileStore, directory, unneeded),
  };
}

function openDirectory(directory: string): Omit<MailStore, 'storeAll'> {
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
    keep: async () => void (await syncs.add(null)),
    textOf: ({ file, content }) => Promise.resolve(content ?? join(directory, file ?? MISSING)),
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

async function fetchMessage(fileStore: FileStore, path: string, file: string, message: MessageShape): Promise<string> {
  const part = `${path}.${randomUUID()}.part`;
  try {
    const found = await fileStore.fetch(FOLDER + file, part, driverContext(FETCH_WITHIN_MS));
    if (!found) throw new DriverError('conflict', 'The file of the message is neither here nor in the file store.');
    if (!(await isMessage(part, message)))
      throw new DriverError('conflict', 'The file of the message was altered in the file store.');
    await rename(part, path);
    return path;
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

async function removeStored(fileStore: FileStore, file: string, log: Logger): Promise<null> {
  await fileStore.remove(FOLDER + file, driverContext(REMOVE_WITHIN_MS)).catch((error: unknown) => {
    log.warn({ err: error, file }, 'the file of a message could not be removed from the file store yet');
  });
  return null;
}

async function storeAll(
  fileStore: FileStore,
  directory: string,
  unneeded: (files: string[]) => Promise<string[]>,
): Promise<void> {
  const missing = new Set((await readdir(directory)).filter((file) => file.endsWith('.eml')));
  const ctx = driverContext(LIST_WITHIN_MS);
  if (missing.size) for await (const { name } of fileStore.list(FOLDER, ctx)) missing.delete(name.slice(FOLDER.length));
  const not = new Set(missing.size ? await unneeded([...missing]) : []);
  for (const file of missing)
    if (!not.has(file)) await fileStore.put(FOLDER + file, join(directory, file), driverContext(KEEP_WITHIN_MS));
}
