// What drivers need of files beside node:fs.
import { open } from 'node:fs/promises';

/** For `catch`: a file or directory that is not there. @throws any other error of the file system */
export function absentIsNull(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
  throw error;
}

/** Makes the names in a directory survive a power cut. @throws Error of the file system */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
