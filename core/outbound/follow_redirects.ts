// Redirects of requests that the platform makes itself: each hop is a separate request, which the caller validates and
// sends like the first.

/** One request on the way. */
export interface Hop<Headers> {
  url: URL;
  method: string;
  headers: Headers;
}

interface HopResponse<Answer> {
  answer: Answer;
  status: number;
  location: string | undefined;
  /** Closes the connection of a response whose body is not read. */
  close?(): void;
}

/** Why a redirect is not followed. */
type RedirectRefusal = 'address' | 'method' | 'count';

export interface RedirectPolicy<Headers, Answer> {
  redirectsMax: number;
  /**
   * What becomes of a method that writes, after 301, 302 and 303: GET, as in browsers (RFC 9110 §15.4), the same again,
   * or no further request. 307 and 308 always keep it.
   */
  writes: 'rewritten' | 'kept' | 'refused';
  /** Whether a redirect may lead there. */
  allows(to: URL, from: URL): boolean;
  /** Headers that may be sent to another origin. A header dropped at one hop stays dropped at later hops. */
  headersElsewhere(headers: Headers): Headers;
  /** The error of a redirect that is not followed. */
  refusal(why: RedirectRefusal, answer: Answer, from: URL): Error;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const KEEPING_METHOD = new Set([307, 308]);

/**
 * The first answer that leads nowhere else.
 * @throws the errors of `send`, and `policy.refusal`
 */
export async function followRedirects<Headers, Answer>(
  first: Hop<Headers>,
  policy: RedirectPolicy<Headers, Answer>,
  send: (hop: Hop<Headers>) => Promise<HopResponse<Answer>>,
): Promise<Answer> {
  let hop = first;
  for (let redirects = 0; ; redirects += 1) {
    const { answer, status, location, close } = await send(hop);
    if (!REDIRECTS.has(status) || location === undefined) return answer;
    close?.();
    const url = URL.canParse(location, hop.url.href) ? new URL(location, hop.url.href) : null;
    if (url === null || !policy.allows(url, hop.url)) throw policy.refusal('address', answer, hop.url);
    if (redirects === policy.redirectsMax) throw policy.refusal('count', answer, hop.url);
    const method = methodAfter(status, hop.method, policy.writes);
    if (method === null) throw policy.refusal('method', answer, hop.url);
    const headers = url.origin === hop.url.origin ? hop.headers : policy.headersElsewhere(hop.headers);
    hop = { url, method, headers };
  }
}

function methodAfter(status: number, method: string, writes: 'rewritten' | 'kept' | 'refused'): string | null {
  if (KEEPING_METHOD.has(status) || writes === 'kept' || method === 'GET' || method === 'HEAD') return method;
  if (writes === 'refused') return null;
  // 301 and 302 rewrite POST alone.
  return status === 303 || method === 'POST' ? 'GET' : method;
}
