// Authentication: Signature Version 4 in headers or in a presigned URL, or anonymous. For signatures in browser forms,
// see post_form.ts. Version 2 is not supported: it leaves unsigned what a proxy may change.
import { timingSafeEqual } from 'node:crypto';
import {
  ALGORITHM,
  canonicalRequest,
  EXPIRES_SECONDS_MAX,
  hmac,
  signingKey,
  stringToSign,
  uriEncodePath,
  UNSIGNED_PAYLOAD,
  type SigningScope,
} from '../../core/protocols/sigv4';
import type { ObjectCatalog, ServedBucket, ServedKey } from './catalog';
import { S3Error } from './errors';
import { headerOf, queryOf, type S3Request } from './request';

const SKEW_MS = 15 * 60_000;

export interface Caller {
  /** null: anonymous. */
  key: ServedKey | null;
  /** The URL was signed by the API for this bucket. */
  isOwner: boolean;
  /** Value of x-amz-content-sha256. */
  payload: string;
  /** Signing state for chunk signatures. */
  chunks: { key: Buffer; seed: string; timestamp: string; scope: SigningScope } | null;
}

interface Claim {
  accessKeyId: string;
  scope: SigningScope;
  signedHeaders: string[];
  signature: string;
  timestamp: string;
  payload: string;
  query: S3Request['query'];
}

/**
 * @param bucket of the request, for URLs signed by the API
 * @throws S3Error for a signature that is malformed, wrong or expired, or of a key that is not active
 */
export async function authenticateRequest(
  request: S3Request,
  catalog: ObjectCatalog,
  bucket: ServedBucket | null,
): Promise<Caller> {
  const claim = claimOf(request);
  if (!claim)
    return {
      key: null,
      isOwner: false,
      payload: headerOf(request, 'x-amz-content-sha256') ?? UNSIGNED_PAYLOAD,
      chunks: null,
    };
  const owner = bucket && catalog.ownerCredentials(bucket.id);
  if (owner?.accessKeyId === claim.accessKeyId) {
    const chunks = verify(request, claim, owner.secretAccessKey);
    if (!chunks) throw new S3Error('SignatureDoesNotMatch');
    return { key: null, isOwner: true, payload: claim.payload, chunks };
  }
  // A failure is retried with fresh rows: the secret may just have been rotated.
  for (const fresh of [undefined, 'fresh'] as const) {
    const key = await catalog.key(claim.accessKeyId, fresh);
    const chunks = key?.isActive ? verify(request, claim, key.secretAccessKey) : null;
    if (key && chunks) return { key, isOwner: false, payload: claim.payload, chunks };
    if (fresh) throw new S3Error(key?.isActive ? 'SignatureDoesNotMatch' : 'InvalidAccessKeyId');
  }
  throw new S3Error('InvalidAccessKeyId');
}

function verify(request: S3Request, claim: Claim, secret: string): Caller['chunks'] {
  const { scope, timestamp } = claim;
  const key = keptSigningKey(secret, scope);
  const headers = claim.signedHeaders.map((name): [string, string] => [
    name,
    signedText(headerOf(request, name) ?? ''),
  ]);
  const canonical = canonicalRequest({
    method: request.method,
    path: uriEncodePath(request.path),
    query: claim.query,
    headers,
    payloadHash: claim.payload,
  });
  const expected = hmac(key, stringToSign(timestamp, scope, canonical)).toString('hex');
  return equals(expected, claim.signature) ? { key, seed: expected, timestamp, scope } : null;
}

/** Clients sign UTF-8, but Node.js decodes headers as Latin-1. */
function signedText(value: string): string {
  return /[\x80-\xff]/.test(value) ? Buffer.from(value, 'latin1').toString('utf8') : value;
}

/** Cache of signing keys, which take four rounds of HMAC and are valid for a day. */
const signingKeys = new Map<string, Buffer>();
const SIGNING_KEYS_MAX = 1_000;

function keptSigningKey(secret: string, scope: SigningScope): Buffer {
  const name = `${secret}\n${scope.date}\n${scope.region}\n${scope.service}`;
  const known = signingKeys.get(name);
  if (known) return known;
  if (signingKeys.size >= SIGNING_KEYS_MAX) signingKeys.clear();
  const made = signingKey(secret, scope);
  signingKeys.set(name, made);
  return made;
}

export function equals(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function claimOf(request: S3Request): Claim | null {
  const header = headerOf(request, 'authorization');
  const isPresigned =
    queryOf(request, 'X-Amz-Algorithm') !== undefined || queryOf(request, 'X-Amz-Signature') !== undefined;
  if (header !== undefined && isPresigned)
    throw new S3Error(
      'InvalidArgument',
      'Only one of the header Authorization and a signature in the query may be sent.',
    );
  if (header !== undefined) return claimOfHeader(request, header);
  if (isPresigned) return claimOfQuery(request);
  if (queryOf(request, 'Signature') !== undefined)
    throw new S3Error('InvalidRequest', 'Signature Version 2 is not offered. Use Signature Version 4.');
  return null;
}

function claimOfHeader(request: S3Request, header: string): Claim {
  const malformed = (): S3Error => new S3Error('AuthorizationHeaderMalformed');
  if (!header.startsWith(`${ALGORITHM} `))
    throw new S3Error('InvalidRequest', `The authorization must be of the type ${ALGORITHM}.`);
  const parts = new Map(
    header
      .slice(ALGORITHM.length)
      .split(',')
      .map((part) => part.trim().split(/=(.*)/s).slice(0, 2) as [string, string]),
  );
  const credential = parseCredential(parts.get('Credential') ?? '');
  const [names, signature] = [parts.get('SignedHeaders'), parts.get('Signature')];
  if (!credential || !names || !signature) throw malformed();
  const sent = headerOf(request, 'x-amz-date');
  const timestamp = sent ?? httpDate(headerOf(request, 'date'));
  const at = timeOf(timestamp);
  if (at === null || timestamp === null)
    throw new S3Error('AccessDenied', 'The header x-amz-date is missing or malformed.');
  if (Math.abs(Date.now() - at) > SKEW_MS) throw new S3Error('RequestTimeTooSkewed');
  if (credential.scope.date !== timestamp.slice(0, 8)) throw malformed();
  const signedHeaders = names.split(';');
  requireSigned(request, signedHeaders);
  const payload = headerOf(request, 'x-amz-content-sha256');
  if (!payload) throw new S3Error('InvalidRequest', 'The header x-amz-content-sha256 is missing.');
  return { ...credential, signedHeaders, signature, timestamp, payload, query: request.query };
}

function claimOfQuery(request: S3Request): Claim {
  const malformed = (): S3Error => new S3Error('AuthorizationQueryParametersError');
  const one = (name: string): string => {
    const values = request.query.filter(([given]) => given === name);
    if (values.length !== 1) throw malformed();
    return values[0]?.[1] as string;
  };
  const credential = parseCredential(one('X-Amz-Credential'));
  const [timestamp, expires] = [one('X-Amz-Date'), one('X-Amz-Expires')];
  const at = timeOf(timestamp);
  const seconds = /^\d{1,6}$/.test(expires) ? Number(expires) : NaN;
  if (one('X-Amz-Algorithm') !== ALGORITHM || !credential || at === null || !(seconds <= EXPIRES_SECONDS_MAX))
    throw malformed();
  if (credential.scope.date !== timestamp.slice(0, 8)) throw malformed();
  if (Date.now() > at + seconds * 1000) throw new S3Error('AccessDenied', 'The URL has expired.');
  if (at - Date.now() > SKEW_MS) throw new S3Error('AccessDenied', 'The URL is not valid yet.');
  const signedHeaders = one('X-Amz-SignedHeaders').split(';');
  requireSigned(request, signedHeaders);
  const payload =
    queryOf(request, 'X-Amz-Content-Sha256') ?? headerOf(request, 'x-amz-content-sha256') ?? UNSIGNED_PAYLOAD;
  const query = request.query.filter(([name]) => name !== 'X-Amz-Signature');
  return { ...credential, signedHeaders, signature: one('X-Amz-Signature'), timestamp, payload, query };
}

/** The host and all x-amz-… headers must be signed, so that they cannot be added or changed in transit. */
function requireSigned({ raw }: S3Request, signed: readonly string[]): void {
  const needed = Object.keys(raw.headers).filter((name) => name === 'host' || name.startsWith('x-amz-'));
  const missing = needed.filter((name) => !signed.includes(name) && name !== 'x-amz-content-sha256');
  if (missing.length || !signed.includes('host'))
    throw new S3Error(
      'AccessDenied',
      `There were headers present in the request which were not signed: ${missing.join(', ')}`,
    );
}

export function parseCredential(text: string): { accessKeyId: string; scope: SigningScope } | null {
  const match = /^([A-Za-z0-9]{1,128})\/(\d{8})\/([a-z0-9-]{1,64})\/(s3)\/aws4_request$/.exec(text);
  if (!match) return null;
  const [, accessKeyId = '', date = '', region = '', service = ''] = match;
  return { accessKeyId, scope: { date, region, service } };
}

function timeOf(timestamp: string | null | undefined): number | null {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(timestamp ?? '');
  if (!match) return null;
  const [, y, mo, d, h, mi, s] = match;
  const ms = Date.parse(`${y}-${mo}-${d}T${h}:${mi}:${s}Z`);
  return Number.isNaN(ms) ? null : ms;
}

function httpDate(text: string | undefined): string | null {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? null : new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '');
}
