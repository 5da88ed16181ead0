// A request to the registry, as passed to handlers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { RegistryContent, ServedRegistry } from '../../core/protocols/registry_content';
import type { BlobFiles } from './blob_files';
import { RegistryError } from './errors';
import type { UploadFiles } from './uploads';

export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  query: URLSearchParams;
  content: RegistryContent;
  blobs: BlobFiles;
  uploads: UploadFiles;
  /** Size limit of a registry in bytes. */
  sizeMax: number;
  registry: ServedRegistry;
  /** Full name in the path: `acme/shop/web`. */
  name: string;
  /** Name below the registry: `shop/web`. */
  repository: string;
  /** Id of the account in the token. */
  subject: string;
}

export type Handler = (exchange: Exchange, reference: string) => Promise<void>;

export function respond(
  response: ServerResponse,
  status: number,
  headers: Record<string, string | number | string[]> = {},
  body?: Buffer | string,
): void {
  const length = body === undefined ? 0 : Buffer.byteLength(body);
  response.writeHead(status, { 'Content-Length': length, ...headers });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

export function respondWithJson(
  response: ServerResponse,
  value: unknown,
  headers: Record<string, string> = {},
  type = 'application/json',
): void {
  respond(response, 200, { 'Content-Type': type, ...headers }, JSON.stringify(value));
}

/** @throws SIZE_INVALID beyond the limit */
export async function readBody(request: Readable, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > bytesMax)
      throw new RegistryError('SIZE_INVALID', `The body is longer than ${bytesMax} bytes.`, { status: 413 });
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
