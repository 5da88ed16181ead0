// Compressed forms of objects: made once, when first asked for, and kept in a file beside the object.
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { constants, createBrotliCompress, createGzip } from 'node:zlib';
import type { StoredBytes } from './memory';
import type { StoredObject } from './store';

export type Coding = 'br' | 'gzip';

const BROTLI_QUALITY = 5;
const SUFFIX = /\.(?:br|gzip)$/;

/** Resolves with the form, or null where the object has gone meanwhile. */
export async function makeForm(object: StoredObject, coding: Coding): Promise<StoredBytes | null> {
  const file = `${object.file}.${coding}`;
  const temporary = `${file}.part`;
  try {
    const { start, size } = object;
    const source = createReadStream(object.file, { start, end: start + size - 1 });
    await pipeline(source, compressorFor(coding, size), createWriteStream(temporary, { mode: 0o600 }));
    await rename(temporary, file);
    return { file, start: 0, size: (await stat(file)).size };
  } catch {
    await rm(temporary, { force: true });
    return null;
  }
}

export function isForm(file: string): boolean {
  return SUFFIX.test(file);
}

export function compressorFor(coding: Coding, size: number | null): NodeJS.ReadWriteStream {
  if (coding === 'gzip') return createGzip();
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    ...(size !== null && { [constants.BROTLI_PARAM_SIZE_HINT]: size }),
  };
  return createBrotliCompress({ params });
}
