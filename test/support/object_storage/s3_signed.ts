// Requests to the S3 endpoint with any header, signed.
import {
  amzDate,
  canonicalRequest,
  hmac,
  scopeText,
  sha256Hex,
  signedHeaders,
  signingKey,
  stringToSign,
  type Credentials,
} from '../../../core/protocols/sigv4';
import { startS3, type S3Service } from './s3';

/** Path and query, from the root of the endpoint. */
export type Call = readonly [method: string, path: string, headers?: Record<string, string>];

export async function sendSigned(
  { endpoint, credentials }: { endpoint: string; credentials: Credentials },
  [method, path, headers = {}]: Call,
  body = '',
): Promise<{ status: number; code: string | null }> {
  const url = new URL(endpoint + path);
  const signed = signedHeaders({ method, url, headers, payloadHash: sha256Hex(body), region: 'local', credentials });
  const { host: _, ...sent } = signed as Record<string, string>;
  const response = await fetch(url, { method, headers: sent, ...(body && { body }) });
  const text = await response.text();
  return { status: response.status, code: /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? null };
}

/** A URL that is signed in its query, with the headers of the call, which are sent too. @param more of the query */
export function presignedUrl(
  { endpoint, credentials }: { endpoint: string; credentials: Credentials },
  [method, path, own = {}]: Call,
  more: Record<string, string> = {},
): string {
  const timestamp = amzDate(new Date());
  const scope = { date: timestamp.slice(0, 8), region: 'local', service: 's3' };
  const headers: [string, string][] = [['host', new URL(endpoint).host], ...Object.entries(own)];
  headers.sort(([a], [b]) => (a < b ? -1 : 1));
  const query: [string, string][] = Object.entries({
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${credentials.accessKeyId}/${scopeText(scope)}`,
    ...{ 'X-Amz-Date': timestamp, 'X-Amz-Expires': '60' },
    'X-Amz-SignedHeaders': headers.map(([name]) => name).join(';'),
    ...more,
  });
  const canonical = canonicalRequest({ method, path, query, headers, payloadHash: 'UNSIGNED-PAYLOAD' });
  const key = signingKey(credentials.secretAccessKey, scope);
  const signature = hmac(key, stringToSign(timestamp, scope, canonical)).toString('hex');
  const all = [...query, ['X-Amz-Signature', signature] as const];
  return `${endpoint}${path}?${all.map((pair) => pair.map(encodeURIComponent).join('=')).join('&')}`;
}

export interface SignedWorld extends S3Service {
  credentials: Credentials;
  /** Of the bucket that has the object `a`. */
  bucketName: string;
}

/** The service with a key, and a bucket with one object. */
export async function startSignedS3(): Promise<SignedWorld> {
  const world = await startS3();
  const key = await world.key();
  const credentials = { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
  const { name: bucketName } = await world.bucket();
  const made = await sendSigned({ ...world, credentials }, ['PUT', `/${bucketName}/a`], 'content');
  expect(made.status).toBe(200);
  return { ...world, credentials, bucketName };
}
