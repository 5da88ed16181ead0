// A client of the OCI Distribution API: manifests and blobs, with token authentication. Every address, including token
// servers and redirects, is checked as for all outgoing requests.
import type { IncomingMessage } from 'node:http';
import type { ImageReference } from '../../core/protocols/image_reference';
import { DriverError, type DriverContext } from '../../core/driver';
import { ImageError, type ImageAccess } from '../image';
import type { Outbound } from '../../core/outbound';
import { openExchange, type OpenAnswer } from '../../core/outbound/exchange';
import { followRedirects, type RedirectPolicy } from '../../core/outbound/follow_redirects';
import { newTrace, OutboundError } from '../../core/outbound/trace';
import { readJson, requestToken } from './registry_token';

interface BlobAnswer {
  from: number;
  response: AsyncIterable<unknown>;
  close(): void;
}

export interface RegistryClient {
  /** @param reference a tag or a digest */
  manifest(reference: string, ctx: DriverContext): Promise<{ content: Buffer; mediaType: string }>;
  /** The content from `offset` on. A registry may ignore the range and send all: `from` is the actual offset. */
  blob(digest: string, offset: number, ctx: DriverContext): Promise<BlobAnswer>;
}

export const MANIFEST_BYTES_MAX = 4 * 1024 * 1024;
const REDIRECTS_MAX = 5;
const ACCEPTED = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
].join(', ');

interface Session {
  outbound: Outbound;
  reference: ImageReference;
  access: ImageAccess;
  base: URL;
  authorization: string | null;
}

export function openRegistryClient(outbound: Outbound, reference: ImageReference, access: ImageAccess): RegistryClient {
  const base = new URL(access.local?.url ?? addressOf(reference.host));
  const authorization = access.local ? `Bearer ${access.local.token}` : null;
  const session: Session = { outbound, reference, access, base, authorization };
  return {
    async manifest(wanted, ctx) {
      const { response, close } = await get(session, `manifests/${wanted}`, { Accept: ACCEPTED }, ctx);
      try {
        const mediaType = (response.headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
        return { content: await readAll(response, MANIFEST_BYTES_MAX), mediaType };
      } finally {
        close();
      }
    },
    async blob(digest, offset, ctx) {
      const headers: Record<string, string> = offset > 0 ? { Range: `bytes=${offset}-` } : {};
      const answer = await get(session, `blobs/${digest}`, headers, ctx);
      return { from: answer.response.statusCode === 206 ? offset : 0, ...answer };
    },
  };
}

/** Docker's own registry has another name than its images. Plain HTTP is for this machine alone, as in Docker. */
function addressOf(host: string): string {
  if (host === 'docker.io') return 'https://registry-1.docker.io';
  const name = host.replace(/:\d+$/, '');
  return /^(localhost|127(\.\d+){3})$/.test(name) ? `http://${host}` : `https://${host}`;
}

async function get(
  session: Session,
  path: string,
  headers: Record<string, string>,
  ctx: DriverContext,
): Promise<OpenAnswer> {
  const url = new URL(`/v2/${session.reference.repository}/${path}`, session.base);
  for (let attempt = 0; ; attempt += 1) {
    const answer = await follow(session, url, headers, ctx);
    const status = answer.response.statusCode ?? 0;
    if (status === 200 || status === 206) return answer;
    const challenge = answer.response.headers['www-authenticate'] ?? '';
    answer.close();
    if (status !== 401 || attempt > 0 || session.access.local) throw failureOf(session, status);
    session.authorization = await authorize(session, challenge, ctx);
    if (session.authorization === null) throw failureOf(session, status);
  }
}

const REDIRECTS: RedirectPolicy<Record<string, string>, OpenAnswer> = {
  redirectsMax: REDIRECTS_MAX,
  writes: 'refused',
  allows: (to, from) => to.protocol === 'https:' || (to.protocol === 'http:' && from.protocol === 'http:'),
  headersElsewhere: ({ Authorization: _, ...others }) => others,
  refusal: (_why, _answer, from) =>
    new ImageError('broken', `The registry ${from.host} redirects to an address that cannot be used.`),
};

function follow(
  { outbound, access, authorization }: Session,
  url: URL,
  headers: Record<string, string>,
  ctx: DriverContext,
): Promise<OpenAnswer> {
  const own: Record<string, string> = authorization === null ? {} : { Authorization: authorization };
  const first = { url, method: 'GET', headers: { ...headers, ...own, 'User-Agent': 'platform-api' } };
  return followRedirects(first, REDIRECTS, async (hop) => {
    const list = Object.entries(hop.headers).map(([name, value]) => ({ name, value }));
    const target = { ...hop, headers: list, verifyTls: access.local === null };
    const answer = await asTransient(hop.url.host, () => openExchange(outbound, target, newTrace(), ctx.signal));
    const { statusCode: status = 0, headers: got } = answer.response;
    return { answer, status, location: got.location, close: answer.close };
  });
}

/** The Authorization header for the retry; null if the registry supports no known authentication scheme. */
async function authorize(session: Session, challenge: string, ctx: DriverContext): Promise<string | null> {
  const { credentials } = session.access;
  const basic =
    credentials && `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`;
  if (/^basic\b/i.test(challenge)) return basic;
  if (!/^bearer\b/i.test(challenge)) return null;
  const scope = `repository:${session.reference.repository}:pull`;
  const url = requestToken(challenge, scope, session.base);
  if (url === null) return null;
  const headers = basic === null ? {} : { Authorization: basic };
  // The token server is another host than the registry at some providers: the challenge of the registry vouches for it.
  const answer = await follow({ ...session, authorization: headers.Authorization ?? null }, url, {}, ctx);
  try {
    if (answer.response.statusCode !== 200) throw failureOf(session, answer.response.statusCode ?? 0);
    const { token, access_token } = readJson(await readAll(answer.response, 1024 * 1024));
    const found = token ?? access_token;
    return typeof found === 'string' && /^[\x21-\x7e]+$/.test(found) ? `Bearer ${found}` : null;
  } finally {
    answer.close();
  }
}

function failureOf({ reference, access }: Session, status: number): Error {
  const { host, repository } = reference;
  const name = `${host}/${repository}`;
  if (status === 404)
    return new ImageError('missing', `The registry has no image ${name} of this tag or digest. Check \`image\`.`);
  if (status === 401 || status === 403) {
    const how = access.credentials ? 'refuses the credentials' : 'requires credentials for the image';
    return new ImageError('refused', `There is no image ${name}, or the registry ${how}.`);
  }
  if (status === 429 || status >= 500)
    return new DriverError('transient', `The registry ${host} answered with status ${status}.`);
  return new ImageError('broken', `The registry ${host} answered with status ${status}.`);
}

/** Makes network failures retryable (transient); rejected addresses are not retried. */
async function asTransient<T>(host: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    if (error.phase === 'dns' && !error.unreachable) throw new ImageError('refused', error.message);
    throw new DriverError('transient', `The registry ${host} cannot be reached. ${error.message}`);
  }
}

async function readAll(response: IncomingMessage, max: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size > max) throw new ImageError('broken', `The registry sent more than ${max / 2 ** 20} MiB of metadata.`);
    }
  } catch (error) {
    if (error instanceof ImageError) throw error;
    throw new DriverError('transient', 'The registry closed the connection before its answer was complete.');
  }
  return Buffer.concat(chunks);
}
