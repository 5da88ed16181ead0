// One request to an LFS server, or to where it keeps its objects.
import type { DriverContext } from '../../../core/driver';
import { followRedirects, type Hop } from '../../../core/outbound/follow_redirects';
import { SourceError } from '../../source';
import { resolveWebEndpoint, type AddressRules, type RemoteEndpoint } from '../address';
import { requestPinned, type WebRequest, type WebResponse } from '../web_request';

const REDIRECTS_MAX = 3;

interface LfsHop extends Hop<Record<string, string>> {
  method: 'GET' | 'POST';
}

/**
 * The answer with status 200. Each address is checked like that of a repository; the headers of `first` go to its own
 * origin alone, and a POST stays one, as in git-lfs.
 * @param requestTo what else is sent to an address, of which `hop` has the headers that may be sent there
 * @throws SourceError
 */
export async function requestLfs(
  rules: AddressRules,
  first: LfsHop,
  ctx: DriverContext,
  requestTo: (endpoint: RemoteEndpoint, hop: Hop<Record<string, string>>) => Omit<WebRequest, 'method'>,
): Promise<WebResponse> {
  let host = '';
  const policy = {
    redirectsMax: REDIRECTS_MAX,
    writes: 'kept' as const,
    // `resolveWebEndpoint` is the judge, with an error of its own.
    allows: () => true,
    headersElsewhere: () => ({}),
    refusal: (_why: unknown, { status }: WebResponse) => refusalOf(status, host),
  };
  const answer = await followRedirects(first, policy, async (hop) => {
    const endpoint = await resolveWebEndpoint(hop.url.href, rules, ctx);
    host = endpoint.host;
    const got = await requestPinned(
      rules.outbound,
      endpoint,
      { ...requestTo(endpoint, hop), method: first.method },
      ctx,
    );
    const close = (): void => void got.response.destroy();
    return { answer: got, status: got.status, location: got.response.headers.location, close };
  });
  if (answer.status === 200) return answer;
  answer.response.destroy();
  throw refusalOf(answer.status, host);
}

/** What a status of an LFS server means. */
export function refusalOf(status: number, host: string): SourceError {
  if (status === 401 || status === 403)
    return new SourceError(
      'refused',
      `The host ${host} refused access to the large files (Git LFS) of the repository. Check that the token or ` +
        'the deploy key may read them.',
    );
  if (status === 404 || status === 410 || status === 501)
    return new SourceError(
      'refused',
      `The host ${host} has no large files (Git LFS) for the repository. Push them with git lfs push --all.`,
    );
  return new SourceError(
    'unreachable',
    `The host ${host} answered a request for large files (Git LFS) with the status ${status}. Try again later.`,
  );
}
