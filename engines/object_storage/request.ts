// Parsing of requests: path-style and virtual-hosted-style addressing, key, query, headers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { KEY_BYTES_MAX, type StoredUpload } from '../../core/protocols/objects';
import { S3Error } from './errors';

export interface S3Request {
  raw: IncomingMessage;
  response: ServerResponse;
  id: string;
  method: string;
  bucket: string | null;
  /** null for requests to the bucket, or to the service. */
  key: string | null;
  /** Decoded, without the query. */
  path: string;
  query: readonly (readonly [string, string])[];
  /** The host name belongs to a website. */
  isWebsite: boolean;
  client: S3Client;
  /** What the upload has asked for that a part belongs to. */
  upload?: StoredUpload['object'];
}

/** Who sends a request, as far as trusted proxies say it. */
export interface S3Client {
  /** As it stands in the header of a proxy; it may be no address. */
  address: string;
  /** Whether the client speaks TLS. */
  isSecure: boolean;
  /** The request came from this machine, and not through a proxy. */
  isLocal: boolean;
}

export interface HostNames {
  domain: string;
  websiteDomain: string;
}

/** @throws S3Error InvalidURI, KeyTooLongError */
export function parseRequest(
  raw: IncomingMessage,
  names: HostNames,
): Pick<S3Request, 'bucket' | 'key' | 'path' | 'query' | 'isWebsite'> {
  const url = (raw.url ?? '/').replace(/^https?:\/\/[^/?#]*/i, '');
  const cut = url.indexOf('?');
  const path = decode(cut < 0 ? url : url.slice(0, cut));
  const query = parseQuery(cut < 0 ? '' : url.slice(cut + 1));
  const { bucket: ofHost, isWebsite } = bucketOfHost(raw.headers.host ?? '', names);
  const slash = path.indexOf('/', 1);
  const bucket = ofHost ?? (path.length > 1 ? path.slice(1, slash < 0 ? undefined : slash) : null);
  const rest = ofHost !== null ? path.slice(1) : slash < 0 ? '' : path.slice(slash + 1);
  if (Buffer.byteLength(rest) > KEY_BYTES_MAX) throw new S3Error('KeyTooLongError');
  return { bucket, key: rest || null, path, query, isWebsite };
}

function bucketOfHost(header: string, names: HostNames): { bucket: string | null; isWebsite: boolean } {
  const host = header.toLowerCase().replace(/:\d+$/, '');
  for (const [domain, isWebsite] of [
    [names.websiteDomain, true],
    [names.domain, false],
  ] as const) {
    const bucket = host.endsWith(`.${domain}`) ? host.slice(0, -domain.length - 1) : '';
    if (/^[a-z0-9-]+$/.test(bucket)) return { bucket, isWebsite };
  }
  return { bucket: null, isWebsite: false };
}

/** @throws S3Error InvalidURI for invalid UTF-8, and for NUL, which PostgreSQL cannot store */
export function decode(text: string): string {
  try {
    const decoded = decodeURIComponent(text);
    if (!decoded.includes('\0')) return decoded;
  } catch {
    // Invalid UTF-8: see below.
  }
  throw new S3Error('InvalidURI');
}

function parseQuery(text: string): [string, string][] {
  if (!text) return [];
  return text
    .split('&')
    .filter(Boolean)
    .map((pair) => {
      const at = pair.indexOf('=');
      const plain = (part: string): string => decode(part.replaceAll('+', ' '));
      return at < 0 ? [plain(pair), ''] : [plain(pair.slice(0, at)), plain(pair.slice(at + 1))];
    });
}

export function queryOf({ query }: Pick<S3Request, 'query'>, name: string): string | undefined {
  return query.find(([one]) => one === name)?.[1];
}

export function headerOf({ raw }: Pick<S3Request, 'raw'>, name: string): string | undefined {
  const value = raw.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

/** An integer query parameter. @throws S3Error InvalidArgument */
export function numberInQuery(request: S3Request, name: string, usual: number, max: number): number {
  const text = queryOf(request, name);
  if (text === undefined || text === '') return usual;
  if (!/^\d{1,10}$/.test(text)) throw new S3Error('InvalidArgument', `${name} is not a whole number from 0 to ${max}.`);
  return Math.min(Number(text), max);
}
