// Whether this machine has a program that tests call (core/catalog/optional_programs.json names their packages).
import { accessSync, constants, readFileSync } from 'node:fs';
import path from 'node:path';

const PLACES = [...(process.env.PATH ?? '').split(':'), '/usr/local/sbin', '/usr/sbin', '/sbin'].filter(Boolean);

/** What else a program must be, or needs beside it, to be of use to tests. */
const USABLE: Record<string, (file: string) => boolean> = {
  // Images of the tests hold nothing but this program.
  busybox: (file) => !readFileSync(file).subarray(0, ELF_HEADERS_BYTES).includes('ld-linux'),
  pdns_server: () => hasProgram('sqlite3'),
};
/** Where an ELF program names its loader. */
const ELF_HEADERS_BYTES = 4096;

export function hasProgram(name: string): boolean {
  const file = PLACES.map((place) => path.join(place, name)).find(isExecutable);
  return file !== undefined && (USABLE[name]?.(file) ?? true);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
