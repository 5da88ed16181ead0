// Unix sockets by their file: listening under a name that another process may have, and reaching it however long the
// path is.
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs';
import type { Server } from 'node:net';
import path from 'node:path';

/** Of the path of a Unix socket, with room for the name of a draft (unix(7): 107 bytes). */
const DIRECTORY_MAX = 80;

/**
 * Listens under the name, also where another process does: connections go to whoever was last. Directory and socket are
 * of this user alone.
 * @param owner processes that share the listener have the same one
 */
export async function listenAtFile(server: Server, file: string, owner = process.pid): Promise<void> {
  const [directory, name] = [path.dirname(file), path.basename(file)];
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  await atShortPath(directory, async (short) => {
    // A server that ends removes the path that it has bound: the successor's, if both had bound the same.
    const draft = path.join(short, draftOf(name, owner));
    if (owner === process.pid) rmSync(draft, { force: true });
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(draft, resolve));
    try {
      chmodSync(draft, 0o600);
      renameSync(draft, path.join(short, name));
    } catch (error) {
      // Another process that shares the listener was first.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  });
}

/** Of a process with this id that was killed as it began to listen. To be called before processes share a listener. */
export function removeDraft(file: string): void {
  rmSync(path.join(path.dirname(file), draftOf(path.basename(file), process.pid)), { force: true });
}

function draftOf(name: string, owner: number): string {
  return `${owner}-${name}`;
}

/** @param use gets a path of the directory that is short enough; it holds until the result is there */
export async function atShortPath<T>(directory: string, use: (directory: string) => Promise<T>): Promise<T> {
  const { short, close } = shortPathOf(directory);
  try {
    return await use(short);
  } finally {
    close();
  }
}

/** The path of a directory's descriptor is always short. It holds until `close`. */
export function shortPathOf(directory: string): { short: string; close(): void } {
  const asGiven = { short: directory, close: () => undefined };
  if (process.platform !== 'linux' || directory.length < DIRECTORY_MAX) return asGiven;
  try {
    const descriptor = openSync(directory, 'r');
    return { short: `/proc/self/fd/${descriptor}`, close: () => closeSync(descriptor) };
  } catch {
    return asGiven;
  }
}
