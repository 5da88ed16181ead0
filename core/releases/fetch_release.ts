// What comes from RELEASES_URL. The operator has named its host; where that sends us on to another one, it must be a
// public one. Nothing is sent but the version that asks.
import { openOutbound } from '../outbound';
import { guardedStream, trusted, type ClientRequest } from '../outbound/client';
import { followRedirects, type RedirectPolicy } from '../outbound/follow_redirects';
import { ForbiddenAddress } from '../outbound/trace';
import { isPublicAddress } from '../protocols/addresses';
import { ReleaseIndexError, parseReleaseIndex, type ReleaseIndex } from './release_index';

const INDEX = 'releases.json';
const INDEX_BYTES_MAX = 2 ** 20;
const INDEX_WITHIN_MS = 20_000;
/** Between two pieces of an archive. */
const STALLED_AFTER_MS = 30_000;
const HEAD_WITHIN_MS = STALLED_AFTER_MS;
const ARCHIVE_WITHIN_MS = 60 * 60_000;
const REDIRECTS_MAX = 5;

export interface ReleaseSource {
  /** RELEASES_URL, without a trailing slash. */
  url: string;
  /** Public key of the index, PEM. */
  key: string;
  /** Version of this program. */
  version: string;
  resolvers: readonly string[];
}

/** @throws ReleaseIndexError */
export async function fetchReleaseIndex(source: ReleaseSource): Promise<ReleaseIndex> {
  const chunks: Buffer[] = [];
  const deadline = AbortSignal.timeout(INDEX_WITHIN_MS);
  for await (const chunk of download(source, INDEX, INDEX_BYTES_MAX, deadline)) chunks.push(chunk);
  return parseReleaseIndex(Buffer.concat(chunks).toString('utf8'), source.key);
}

/**
 * The bytes of an archive, of which there may be `size` and no more. Whoever reads them checks what they are.
 * @throws ReleaseIndexError for a server that is silent, too slow or sends too much
 */
export function fetchReleaseArchive(source: ReleaseSource, name: string, size: number): AsyncGenerator<Buffer> {
  return download(source, name, size, AbortSignal.timeout(ARCHIVE_WITHIN_MS));
}

async function* download(
  source: ReleaseSource,
  name: string,
  bytesMax: number,
  deadline: AbortSignal,
): AsyncGenerator<Buffer> {
  const stalled = new AbortController();
  const stall = (): NodeJS.Timeout => setTimeout(() => stalled.abort(), STALLED_AFTER_MS).unref();
  let timer = stall();
  try {
    const response = await open(source, name, bytesMax, AbortSignal.any([deadline, stalled.signal]));
    for await (const chunk of response.body ?? []) {
      clearTimeout(timer);
      timer = stall();
      yield Buffer.from(chunk as Uint8Array);
    }
  } catch (error) {
    if (error instanceof ReleaseIndexError) throw error;
    if (deadline.aborted || stalled.signal.aborted)
      throw new ReleaseIndexError(`RELEASES_URL sends ${name} too slowly: it was given up.`);
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'too long')
      throw new ReleaseIndexError(`RELEASES_URL sends more than the ${bytesMax} bytes of ${name}.`);
    throw new ReleaseIndexError(`RELEASES_URL cannot be reached: ${code ?? message}.`);
  } finally {
    clearTimeout(timer);
  }
}

async function open(source: ReleaseSource, name: string, bodyBytesMax: number, signal: AbortSignal): Promise<Response> {
  const first = new URL(`${source.url}/${name}`);
  const headers = { 'user-agent': `platform/${source.version}` };
  const policy: RedirectPolicy<typeof headers, Response> = {
    redirectsMax: REDIRECTS_MAX,
    writes: 'refused',
    allows: (to, from) => to.protocol === 'https:' || to.origin === from.origin,
    headersElsewhere: (sent) => sent,
    refusal: () => new ReleaseIndexError(`RELEASES_URL redirects ${name} to where nobody should be led.`),
  };
  const response = await followRedirects({ url: first, method: 'GET', headers }, policy, async (hop) => {
    const within = { ms: HEAD_WITHIN_MS, of: 'head' } as const;
    const request = { headers: hop.headers, within, signal, bodyBytesMax, redirects: 'returned' } as const;
    const answer = await (hop.url.origin === first.origin
      ? trusted(hop.url, request)
      : elsewhere(source, hop.url, request));
    const location = answer.headers.get('location') ?? undefined;
    return { answer, status: answer.status, location, close: () => void answer.body?.cancel() };
  });
  if (response.status === 200) return response;
  await response.body?.cancel();
  throw new ReleaseIndexError(`RELEASES_URL answers ${response.status} for ${name}.`);
}

/** The guard of addresses that users give, whatever ALLOW_PRIVATE_ADDRESSES says. */
async function elsewhere({ resolvers }: ReleaseSource, url: URL, request: ClientRequest): Promise<Response> {
  const guard = openOutbound({ isAllowed: isPublicAddress, hostsFile: false, resolvers, caFile: null });
  try {
    return await guardedStream(guard, url, request);
  } catch (error) {
    if (!(error instanceof ForbiddenAddress)) throw error;
    throw new ReleaseIndexError(`RELEASES_URL redirects to ${url.hostname}, whose address is not public.`);
  }
}
