// A file that is there as a whole, whenever the process ends.
import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** Readable by this user alone. @param directoryMode of directories that are made for it */
export async function writeReplacedFile(file: string, text: string, directoryMode = 0o777): Promise<void> {
  await mkdir(path.dirname(file), { recursive: true, mode: directoryMode });
  const staging = `${file}.${process.pid}`;
  await writeFile(staging, text, { mode: 0o600 });
  await rename(staging, file);
}
