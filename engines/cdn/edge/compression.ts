// Which responses are sent compressed.
import type { HeaderFields } from './headers';

const COMPRESSIBLE = /^(?:text\/|application\/(?:json|javascript|xml|wasm|[\w.+-]*\+(?:json|xml))|image\/svg\+xml)/i;
const COMPRESS_BYTES_MIN = 1024;

/** @param size null: not known before the end of the body */
export function isCompressible({
  status,
  headers,
  size,
}: {
  status: number;
  headers: HeaderFields;
  size: number | null;
}): boolean {
  const isText = COMPRESSIBLE.test(String(headers['content-type'] ?? ''));
  const isForbidden = /no-transform/i.test(String(headers['cache-control'] ?? ''));
  const isLarge = size === null || size >= COMPRESS_BYTES_MIN;
  return status === 200 && isText && isLarge && !isForbidden && headers['content-encoding'] === undefined;
}
