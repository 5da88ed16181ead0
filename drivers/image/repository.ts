// A repository of the registry of this installation, or of a Distribution server, as the platform writes to it.
import { request as requestHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DriverError, EngineAway, type DriverContext } from '../../core/driver';
import { ImageError } from '../image';

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

/** @throws ImageError where the registry refuses, DriverError transient where it gives no answer */
export interface Repository {
  hasBlob(digest: string, ctx: DriverContext): Promise<boolean>;
  /** Takes a layer over from another repository of the registry. @returns false where it is not had by that way */
  mount(digest: string, from: string, ctx: DriverContext): Promise<boolean>;
  upload(digest: string, content: AsyncIterable<unknown> | Iterable<unknown>, ctx: DriverContext): Promise<void>;
  hasManifest(reference: string, ctx: DriverContext): Promise<boolean>;
  /** @param reference a tag, or the digest of the content */
  putManifest(reference: string, mediaType: string, content: Buffer, ctx: DriverContext): Promise<void>;
  /** Removes the manifest with all its tags. Absent is success. */
  removeManifest(digest: string, ctx: DriverContext): Promise<void>;
}

const TEXT_MAX = 2000;
const ACCEPT = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

/** @param access a token with the rights that its calls need */
export function openRepository(name: string, access: { url: string; token: string }): Repository {
  const at = (path: string): URL => new URL(`/v2/${name}/${path}`, access.url);
  const call = (method: string, url: URL, ctx: DriverContext, headers?: OutgoingHttpHeaders, body?: Readable) =>
    send(method, url, access.token, ctx, headers, body);
  return {
    hasBlob: async (digest, ctx) => isThere(await call('HEAD', at(`blobs/${digest}`), ctx)),
    async mount(digest, from, ctx) {
      const url = at('blobs/uploads/');
      url.search = new URLSearchParams({ mount: digest, from }).toString();
      const answer = await call('POST', url, ctx);
      if (answer.status === 201) return true;
      // The registry could not mount the blob and has started an upload instead, which is cancelled.
      const begun = new URL(required(answer, 202).headers.location ?? '', access.url);
      await call('DELETE', begun, ctx);
      return false;
    },
    async upload(digest, content, ctx) {
      const begun = required(await call('POST', at('blobs/uploads/'), ctx), 202);
      const place = new URL(begun.headers.location ?? '', access.url);
      place.searchParams.set('digest', digest);
      const type = { 'Content-Type': 'application/octet-stream' };
      required(await call('PUT', place, ctx, type, Readable.from(content)), 201);
    },
    hasManifest: async (reference, ctx) =>
      isThere(await call('HEAD', at(`manifests/${reference}`), ctx, { Accept: ACCEPT })),
    async putManifest(reference, mediaType, content, ctx) {
      const type = { 'Content-Type': mediaType, 'Content-Length': content.length };
      required(await call('PUT', at(`manifests/${reference}`), ctx, type, Readable.from([content])), 201);
    },
    async removeManifest(digest, ctx) {
      const answer = await call('DELETE', at(`manifests/${digest}`), ctx);
      if (answer.status !== 404) required(answer, 202);
    },
  };
}

async function send(
  method: string,
  url: URL,
  token: string,
  { signal }: DriverContext,
  headers: OutgoingHttpHeaders = {},
  body: Readable = Readable.from([]),
): Promise<Answer> {
  const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    ...{ method, signal, headers: { ...headers, Authorization: `Bearer ${token}` } },
    // The address is our own; its certificate is for the name that clients use.
    rejectUnauthorized: false,
  });
  try {
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve).once('error', reject);
    });
    // A response may arrive before the body is sent completely. Connection errors reject `answered`.
    const sent = pipeline(body, request).catch((error: unknown) => error);
    const response = await Promise.race([answered, failureOf(body)]);
    let text = '';
    for await (const chunk of response) if (text.length < TEXT_MAX) text += String(chunk);
    await sent;
    return { status: response.statusCode ?? 0, headers: response.headers, text };
  } catch (error) {
    if (signal.aborted || error instanceof DriverError || error instanceof ImageError) throw error;
    throw new EngineAway('The container registry of this installation does not answer.');
  } finally {
    request.destroy();
  }
}

/** Rejects when the source of the request body fails, which can happen before the registry responds. */
function failureOf(body: Readable): Promise<never> {
  return new Promise((_, reject) => void body.once('error', reject));
}

/** Distribution redirects to its storage for existing blobs. @throws as `required`, for other errors than 404 */
function isThere(answer: Answer): boolean {
  if ([302, 307, 308].includes(answer.status)) return true;
  return answer.status !== 404 && required(answer, 200).status === 200;
}

function required(answer: Answer, status: number): Answer {
  if (answer.status === status) return answer;
  if (answer.status === 429 || answer.status >= 500)
    throw new EngineAway(`The container registry answered with status ${answer.status}.`);
  throw new ImageError('refused', `The registry did not take the image: ${reasonOf(answer)}`);
}

function reasonOf({ status, text }: Answer): string {
  try {
    const [first] = (JSON.parse(text) as { errors: { message: string }[] }).errors;
    return first?.message ?? `status ${status}`;
  } catch {
    return `status ${status}`;
  }
}
