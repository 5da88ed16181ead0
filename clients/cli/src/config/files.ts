// Files of the person.
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { Failure } from '../failure';
import { configDirectoryOf } from '../system';

export const configDirectory = (): string => configDirectoryOf(process.platform, process.env, os.homedir());

/** Writes a file that nobody else may read, whole or not at all. */
export function writePrivateFile(file: string, text: string): void {
  fs.mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}.tmp`;
  const handle = fs.openSync(temporary, 'w', 0o600);
  try {
    fs.writeFileSync(handle, text);
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
  fs.renameSync(temporary, file);
}

export function readFileIfThere(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw new Failure(`Could not read ${file}: ${(error as Error).message}.`);
  }
}
