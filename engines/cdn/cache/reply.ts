// Responses to visitors: full, partial, 304, compressed.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { parseByteRange, type ByteRange } from '../../../core/protocols/byte_range';
import { isCompressible } from '../edge/compression';
import { holdsIfRange, isNotModified } from '../edge/conditions';
import type { HeaderFields } from '../edge/headers';
import type { Coding } from './stored_object';

/** Shorter than the idle timeout of an origin. */
const VISITOR_IDLE_MS = 45_000;
/** The kernel buffers this much at once. */
const SMALL_BYTES = 64 * 1024;

/** The response before conditions, ranges and compression. */
interface Whole {
  status: number;
  headers: HeaderFields;
  /** Null unless it is known before the first byte is sent. */
  size: number | null;
}

/** The response as it is sent. */
export interface Reply {
  status: number;
  headers: HeaderFields;
  hasBody: boolean;
  coding: Coding | null;
  range: ByteRange | null;
}

/** @param compresses the compression setting of the zone */
export function replyTo(request: IncomingMessage, whole: Whole, compresses: boolean): Reply {
  const headers = { ...whole.headers };
  delete headers['content-length'];
  const plain = { coding: null, range: null };
  if (isNotModified(request, whole)) {
    delete headers['content-type'];
    return { status: 304, headers, hasBody: false, ...plain };
  }
  const packs = compresses && isCompressible(whole);
  if (packs) headers.vary = addVary(headers.vary);
  const coding = packs ? codingFor(request) : null;
  const range = coding === null && whole.status === 200 ? rangeOf(request, whole) : null;
  if (range === 'unsatisfiable') {
    const none = { 'content-range': `bytes */${whole.size}`, 'content-length': '0' };
    return { status: 416, headers: none, hasBody: false, ...plain };
  }
  const hasBody = request.method !== 'HEAD' && whole.size !== 0;
  if (coding !== null) {
    headers['content-encoding'] = coding;
    if (headers.etag !== undefined) headers.etag = weak(String(headers.etag));
  } else if (whole.size !== null) {
    headers['content-length'] = String(range ? range.end - range.start + 1 : whole.size);
    headers['accept-ranges'] = 'bytes';
  }
  if (range) headers['content-range'] = `bytes ${range.start}-${range.end}/${whole.size}`;
  return { status: range ? 206 : whole.status, headers, hasBody, coding, range };
}

/** Sends a body that is in memory, already in the coding of the reply. */
export function sendBuffer(response: ServerResponse, reply: Reply, content: Buffer): void {
  const { status, headers, hasBody, coding, range } = reply;
  if (coding !== null) headers['content-length'] = String(content.length);
  if (content.length > SMALL_BYTES) endWhenIdle(response);
  response.writeHead(status, headers);
  if (!hasBody) return void response.end();
  response.end(range ? content.subarray(range.start, range.end + 1) : content);
}

/** @param size of the body in the coding of the reply; null: not known */
export function sendStream(response: ServerResponse, reply: Reply, body: Readable, size: number | null): void {
  if (reply.coding !== null && size !== null) reply.headers['content-length'] = String(size);
  endWhenIdle(response);
  response.writeHead(reply.status, reply.headers);
  pipeline(body, response, () => undefined);
}

/** A visitor who reads nothing for VISITOR_IDLE_MS is disconnected, since other readers may wait for this one. */
function endWhenIdle(response: ServerResponse): void {
  response.setTimeout(VISITOR_IDLE_MS, () => {
    if (response.writableLength > 0) response.destroy();
    else response.setTimeout(VISITOR_IDLE_MS);
  });
}

export function sendReplyHead(response: ServerResponse, { status, headers }: Reply): void {
  response.writeHead(status, headers);
  response.end();
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

function codingFor({ headers }: IncomingMessage): Coding | null {
  const accepted = String(headers['accept-encoding'] ?? '')
    .toLowerCase()
    .split(',')
    .map((text) => text.trim())
    .filter((text) => !/;\s*q=0(?:\.0*)?$/.test(text))
    .map((text) => text.split(';')[0]);
  if (accepted.includes('br')) return 'br';
  return accepted.includes('gzip') ? 'gzip' : null;
}

/** Multiple ranges, and a range whose If-Range does not match, get the full response. */
function rangeOf(
  { method, headers: requestHeaders }: IncomingMessage,
  { headers, size }: Whole,
): ByteRange | 'unsatisfiable' | null {
  if (method !== 'GET' || size === null || requestHeaders.range === undefined) return null;
  if (!holdsIfRange(requestHeaders['if-range'] as string | undefined, headers)) return null;
  const range = parseByteRange(requestHeaders.range, size);
  return range === 'reversed' ? null : range;
}
