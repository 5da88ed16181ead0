// Puts an image that a build has left in a directory (layout.ts) into the registry of this installation. The registry
// verifies what it gets by digest; layers that it has are not sent.
import { request as requestHttp, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DriverError, type DriverContext } from '../../core/driver';
import { ImageError, type PushRequest } from '../image';
import { openLayoutClient } from './layout';
import { broken, parseImageManifest } from './manifest';

interface Answer {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
}

const TEXT_MAX = 2000;
/** What the layout has it is asked for without a tag. */
const ANY = 'latest';

/** May be repeated. @throws ImageError, DriverError transient */
export async function pushLayout({ layout, repository, tag, access }: PushRequest, ctx: DriverContext): Promise<void> {
  const client = openLayoutClient(layout);
  const { content, mediaType } = await client.manifest(ANY, ctx);
  const manifest = parseImageManifest({ content, mediaType }, ANY);
  if (!('config' in manifest)) throw broken('the build left an index');
  const at = (path: string): URL => new URL(`/v2/${repository}/${path}`, access.url);
  for (const { digest } of [manifest.config, ...manifest.layers]) {
    if ((await send('HEAD', at(`blobs/${digest}`), access.token, ctx)).status === 200) continue;
    const begun = required(await send('POST', at('blobs/uploads/'), access.token, ctx), 202);
    const place = new URL(begun.headers.location ?? '', access.url);
    place.searchParams.set('digest', digest);
    const { response } = await client.blob(digest, 0, ctx);
    const type = { 'Content-Type': 'application/octet-stream' };
    required(await send('PUT', place, access.token, ctx, type, Readable.from(response)), 201);
  }
  const type = { 'Content-Type': mediaType, 'Content-Length': content.length };
  required(await send('PUT', at(`manifests/${tag}`), access.token, ctx, type, Readable.from([content])), 201);
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
    // An answer may come before all is sent, and a refusal of the connection is seen by whoever waits for it.
    const sent = pipeline(body, request).catch(() => undefined);
    const response = await answered;
    let text = '';
    for await (const chunk of response) if (text.length < TEXT_MAX) text += String(chunk);
    await sent;
    return { status: response.statusCode ?? 0, headers: response.headers, text };
  } catch (error) {
    if (signal.aborted) throw error;
    throw new DriverError('transient', 'The container registry of this installation does not answer.');
  } finally {
    request.destroy();
  }
}

function required(answer: Answer, status: number): Answer {
  if (answer.status === status) return answer;
  if (answer.status === 429 || answer.status >= 500)
    throw new DriverError('transient', `The container registry answered with status ${answer.status}.`);
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
