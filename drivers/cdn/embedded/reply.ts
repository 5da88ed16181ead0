// Answers to visitors: whole, in part, not modified, compressed.
import { createReadStream } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createBrotliCompress, createGzip, constants } from 'node:zlib';
import { parseByteRange, type ByteRange } from '../../../core/byte_range';
import { isCompressible } from '../edge/compression';
import { isNotModified } from '../edge/conditions';
import type { HeaderFields } from '../edge/headers';
import type { StoredObject } from './store';

export interface Body {
  status: number;
  headers: HeaderFields;
  /** Known before the first byte is sent. */
  size: number | null;
  open(range: ByteRange | null): Readable;
}

/** Of a stored object. */
export function storedBody(object: StoredObject, headers: HeaderFields): Body {
  return {
    ...{ status: object.status, headers, size: object.size },
    open: (range) =>
      createReadStream(object.file, {
        start: object.start + (range?.start ?? 0),
        end: object.start + (range?.end ?? object.size - 1),
      }),
  };
}

const BROTLI_QUALITY = 4;

/** Sends the body as the visitor asked for it. `sent` is called with the bytes of the body at the end. */
export function sendBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: Body,
  { compresses }: { compresses: boolean },
): void {
  const headers = { ...body.headers };
  delete headers['content-length'];
  if (isNotModified(request, body)) {
    delete headers['content-type'];
    response.writeHead(304, headers);
    return void response.end();
  }
  const coding = compresses ? codingFor(request, body) : null;
  if (compresses && isCompressible(body)) headers.vary = addVary(headers.vary);
  const range = coding === null && body.status === 200 && body.size !== null ? rangeOf(request, body) : null;
  if (range === 'unsatisfiable') {
    response.writeHead(416, { 'content-range': `bytes */${body.size}`, 'content-length': '0' });
    return void response.end();
  }
  if (coding !== null) {
    headers['content-encoding'] = coding;
    if (headers.etag !== undefined) headers.etag = weak(String(headers.etag));
  } else if (body.size !== null) {
    headers['content-length'] = String(range ? range.end - range.start + 1 : body.size);
    headers['accept-ranges'] = 'bytes';
  }
  if (range) headers['content-range'] = `bytes ${range.start}-${range.end}/${body.size}`;
  response.writeHead(range ? 206 : body.status, headers);
  if (request.method === 'HEAD' || body.size === 0) return void response.end();
  const source = body.open(range);
  if (coding === null) return void pipeline(source, response, () => undefined);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  pipeline(source, coding === 'br' ? createBrotliCompress({ params }) : createGzip(), response, () => undefined);
}

function weak(etag: string): string {
  return etag.startsWith('W/') ? etag : `W/${etag}`;
}

function addVary(vary: string | string[] | undefined): string {
  const names = [vary ?? []].flat().join(', ');
  return /(?:^|[\s,])(?:accept-encoding|\*)/i.test(names)
    ? names
    : [names, 'Accept-Encoding'].filter(Boolean).join(', ');
}

function codingFor({ headers }: IncomingMessage, body: Body): 'br' | 'gzip' | null {
  if (!isCompressible(body)) return null;
  const accepted = String(headers['accept-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((text) => text.trim())
    .filter((text) => !/;\s*q=0(?:\.0*)?$/.test(text))
    .map((text) => text.split(';')[0]);
  if (accepted.includes('br')) return 'br';
  return accepted.includes('gzip') ? 'gzip' : null;
}

/** Several ranges, and one whose If-Range does not hold, are answered with the whole. */
function rangeOf(
  { method, headers: asked }: IncomingMessage,
  { headers, size }: Body,
): ByteRange | 'unsatisfiable' | null {
  if (method !== 'GET' || size === null) return null;
  const condition = asked['if-range'];
  if (condition !== undefined && condition !== headers.etag && condition !== headers['last-modified']) return null;
  const range = parseByteRange(asked.range, size);
  return range === 'reversed' ? null : range;
}
