// Requests to the S3 endpoint with any header, signed.
import { sha256Hex, signedHeaders, type Credentials } from '../../core/sigv4';

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
