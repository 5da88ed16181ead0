// What comes from RELEASES_URL. The operator has named its host; where that sends us on to another one, it must be a
// public one. Nothing is sent but the version that asks.
import { followRedirects, type RedirectPolicy } from '../outbound/follow_redirects';
import { openNames } from '../outbound/names';
import { isPublicAddress } from '../protocols/addresses';
import { ReleaseIndexError, parseReleaseIndex, type ReleaseIndex } from './release_index';

const INDEX = 'releases.json';
const INDEX_BYTES_MAX = 2 ** 20;
const INDEX_WITHIN_MS = 20_000;
/** Between two pieces of an archive. */
const STALLED_AFTER_MS = 30_000;
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
  let bytes = 0;
  try {
    const response = await open(source, name, AbortSignal.any([deadline, stalled.signal]));
    for await (const chunk of response.body ?? []) {
      clearTimeout(timer);
      timer = stall();
      bytes += (chunk as Uint8Array).length;
      if (bytes > bytesMax)
        throw new ReleaseIndexError(`RELEASES_URL sends more than the ${bytesMax} bytes of ${name}.`);
      yield Buffer.from(chunk as Uint8Array);
    }
  } catch (error) {
    if (error instanceof ReleaseIndexError) throw error;
    if (deadline.aborted || stalled.signal.aborted)
      throw new ReleaseIndexError(`RELEASES_URL sends ${name} too slowly: it was given up.`);
    const { cause, message } = error as Error & { cause?: Error & { code?: string } };
    throw new ReleaseIndexError(`RELEASES_URL cannot be reached: ${cause?.code ?? cause?.message ?? message}.`);
  } finally {
    clearTimeout(timer);
  }
}

async function open(source: ReleaseSource, name: string, signal: AbortSignal): Promise<Response> {
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
    if (hop.url.origin !== first.origin) await requirePublic(hop.url.hostname, source);
    const answer = await fetch(hop.url, { headers: hop.headers, redirect: 'manual', signal });
    const location = answer.headers.get('location') ?? undefined;
    return { answer, status: answer.status, location, close: () => void answer.body?.cancel() };
  });
  if (response.status === 200) return response;
  await response.body?.cancel();
  throw new ReleaseIndexError(`RELEASES_URL answers ${response.status} for ${name}.`);
}

async function requirePublic(host: string, { resolvers }: ReleaseSource): Promise<void> {
  const addresses = await openNames({ resolvers, hostsFile: false }).resolve(host);
  if (addresses.every(isPublicAddress)) return;
  throw new ReleaseIndexError(`RELEASES_URL redirects to ${host}, whose address is not public.`);
}
