// Compressed forms of objects. A form is made at the first request for it, shared by concurrent requests, and stored in
// a file beside the object.
import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { pipeline, type Readable } from 'node:stream';
import { constants, createBrotliCompress, createGzip, type BrotliCompress, type Gzip } from 'node:zlib';
import { startFlight, type Flight } from './flight';
import type { NewFile } from './new_file';
import type { Coding, StoredObject } from './stored_object';

/** A stored object, or one that is being received. */
export interface FormSource {
  readonly id: string;
  /** Length of the body in bytes, where it is known. */
  size: number | null;
  read(): Readable;
  stored: Promise<StoredObject | null>;
}

const BROTLI_QUALITY = 5;
const SUFFIX = /\.(?:br|gzip)$/;

export function startForm(source: FormSource, coding: Coding, file: NewFile, sizeMax: number): Flight {
  let isRead = false;
  const packed = compressorFor(coding, source.size);
  pipeline(source.read(), packed, (error) => (isRead = !error));
  const isFinished = (): boolean => isRead && (source.size === null || packed.bytesWritten === source.size);
  return startFlight(packed, file, { announced: null, sizeMax, isWhole: isFinished, onTooLarge: () => undefined });
}

export function formSourceOf(object: StoredObject): FormSource {
  const { file, start, size } = object;
  return {
    ...{ id: idOf(file), size, stored: Promise.resolve(object) },
    read: () => createReadStream(file, { start, end: start + size - 1 }),
  };
}

/** The common prefix of the names of an object's files. */
function idOf(file: string): string {
  return basename(file).split('-', 1)[0] as string;
}

export function isForm(file: string): boolean {
  return SUFFIX.test(file);
}

function compressorFor(coding: Coding, size: number | null): BrotliCompress | Gzip {
  if (coding === 'gzip') return createGzip();
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    ...(size !== null && { [constants.BROTLI_PARAM_SIZE_HINT]: size }),
  };
  return createBrotliCompress({ params });
}
