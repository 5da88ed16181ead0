// AWS Signature Version 4 for the service s3: signing. Verification: engines/object_storage.
import { createHash, createHmac } from 'node:crypto';

export const ALGORITHM = 'AWS4-HMAC-SHA256';
export const UNSIGNED_PAYLOAD = 'UNSIGNED-PAYLOAD';
export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
/** Maximum of presigned URLs. */
export const EXPIRES_SECONDS_MAX = 604_800;

export interface SigningScope {
  /** YYYYMMDD */
  date: string;
  region: string;
  service: string;
}

interface SignedParts {
  method: string;
  /** Percent-encoded, as sent. */
  path: string;
  /** Names and values, decoded. */
  query: readonly (readonly [string, string])[];
  /** Names in lower case, sorted, with their values. */
  headers: readonly (readonly [string, string])[];
  payloadHash: string;
}

export interface Credentials {
  accessKeyId: string;
  secretAccessKey: string;
}

/** Percent-encoding of RFC 3986 as required by AWS: everything but letters, digits and `-._~`. */
function uriEncode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Encodes a key as a path, and keeps slashes. */
export function uriEncodePath(key: string): string {
  return uriEncode(key).replaceAll('%2F', '/');
}

export function signingKey(secret: string, { date, region, service }: SigningScope): Buffer {
  const ofDate = hmac(`AWS4${secret}`, date);
  return hmac(hmac(hmac(ofDate, region), service), 'aws4_request');
}

export function scopeText({ date, region, service }: SigningScope): string {
  return `${date}/${region}/${service}/aws4_request`;
}

export function canonicalRequest({ method, path, query, headers, payloadHash }: SignedParts): string {
  const pairs = query.map(([name, value]) => `${uriEncode(name)}=${uriEncode(value)}`).sort(compareBytes);
  const lines = headers.map(([name, value]) => `${name}:${value.trim().replace(/ +/g, ' ')}\n`).join('');
  const names = headers.map(([name]) => name).join(';');
  return `${method}\n${path}\n${pairs.join('&')}\n${lines}\n${names}\n${payloadHash}`;
}

/** Names are compared before values: `a=` sorts before `a-b=`. */
function compareBytes(a: string, b: string): number {
  const [x, y] = [a.replace('=', '\0'), b.replace('=', '\0')];
  return x < y ? -1 : x > y ? 1 : 0;
}

export function stringToSign(timestamp: string, scope: SigningScope, canonical: string): string {
  return `${ALGORITHM}\n${timestamp}\n${scopeText(scope)}\n${sha256Hex(canonical)}`;
}

export function hmac(key: string | Buffer, text: string | Buffer): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

export function sha256Hex(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}

/** YYYYMMDDTHHMMSSZ */
export function amzDate(at: Date): string {
  return at.toISOString().replace(/[-:]|\.\d{3}/g, '');
}

interface PresignOptions {
  method: 'GET' | 'PUT' | 'DELETE';
  /** Of the endpoint, without a trailing slash. */
  endpoint: string;
  bucket: string;
  key: string;
  region: string;
  credentials: Credentials;
  expiresSeconds: number;
  contentType?: string | null;
  now?: Date;
}

/** A path-style URL that works without a key. A content type is signed, and must be sent by the client. */
export function presignUrl(options: PresignOptions): string {
  const { method, endpoint, bucket, key, region, credentials, expiresSeconds, contentType, now = new Date() } = options;
  const url = new URL(endpoint);
  const timestamp = amzDate(now);
  const scope = { date: timestamp.slice(0, 8), region, service: 's3' };
  const headers: [string, string][] = contentType ? [['content-type', contentType]] : [];
  headers.push(['host', url.host]);
  const query: [string, string][] = [
    ['X-Amz-Algorithm', ALGORITHM],
    ['X-Amz-Content-Sha256', UNSIGNED_PAYLOAD],
    ['X-Amz-Credential', `${credentials.accessKeyId}/${scopeText(scope)}`],
    ['X-Amz-Date', timestamp],
    ['X-Amz-Expires', String(expiresSeconds)],
    ['X-Amz-SignedHeaders', headers.map(([name]) => name).join(';')],
  ];
  const path = `${url.pathname.replace(/\/$/, '')}/${bucket}/${uriEncodePath(key)}`;
  const canonical = canonicalRequest({ method, path, query, headers, payloadHash: UNSIGNED_PAYLOAD });
  const signature = hmac(
    signingKey(credentials.secretAccessKey, scope),
    stringToSign(timestamp, scope, canonical),
  ).toString('hex');
  const text = [...query, ['X-Amz-Signature', signature]].map(
    ([name = '', value = '']) => `${uriEncode(name)}=${uriEncode(value)}`,
  );
  return `${url.origin}${path}?${text.join('&')}`;
}

interface SignedHeadersOptions {
  method: string;
  url: URL;
  headers?: Record<string, string>;
  payloadHash: string;
  region: string;
  credentials: Credentials;
  now?: Date;
}

/** Headers of a signed request: the given ones, date, payload hash and signature. */
export function signedHeaders(options: SignedHeadersOptions): Record<string, string> {
  const { method, url, payloadHash, region, credentials, now = new Date() } = options;
  const timestamp = amzDate(now);
  const scope = { date: timestamp.slice(0, 8), region, service: 's3' };
  const all: Record<string, string> = {
    ...Object.fromEntries(Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value])),
    host: url.host,
    'x-amz-content-sha256': payloadHash,
    'x-amz-date': timestamp,
  };
  const headers = Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1));
  const query = [...url.searchParams.entries()];
  const canonical = canonicalRequest({ method, path: url.pathname, query, headers, payloadHash });
  const key = signingKey(credentials.secretAccessKey, scope);
  const signature = hmac(key, stringToSign(timestamp, scope, canonical)).toString('hex');
  const names = headers.map(([name]) => name).join(';');
  return {
    ...all,
    authorization:
      `${ALGORITHM} Credential=${credentials.accessKeyId}/${scopeText(scope)}, ` +
      `SignedHeaders=${names}, Signature=${signature}`,
  };
}
