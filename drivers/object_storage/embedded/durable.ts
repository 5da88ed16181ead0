// What survives a power cut: a file whose content and whose name are both on the disk.
import { open } from 'node:fs/promises';

/** Makes the names in a directory durable. @throws Error of the file system */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
