// Requests to the S3 endpoint with any header, signed.
import { sha256Hex, signedHeaders, type Credentials } from '../../../core/protocols/sigv4';
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
