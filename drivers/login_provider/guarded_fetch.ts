// `fetch` for openid-client, through core/outbound/: limited in time and size, and without redirects.
import { limits } from '../../core/limits';
import type { Outbound } from '../../core/outbound';
import { guarded, responseFieldsOf, WITHOUT_BODY } from '../../core/outbound/client';
import { OutboundError } from '../../core/outbound/trace';

interface FetchOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

export type GuardedFetch = (url: string, options?: FetchOptions) => Promise<Response>;

const BODY_BYTES_MAX = 512 * 1024;

/** @throws OutboundError from the returned function */
export function guardedFetch(outboundFor: (url: URL) => Outbound): GuardedFetch {
  return async (text, { method = 'GET', headers = {}, body } = {}) => {
    const url = new URL(text);
    const sent = body == null ? undefined : Buffer.from(String(body));
    const list = Object.entries(headers).map(([name, value]) => ({ name, value }));
    const request = { url, method, headers: list, body: sent, bodyBytesMax: BODY_BYTES_MAX };
    const answer = await guarded(outboundFor(url), request, limits.probeTimeoutMs);
    const { status } = answer;
    const content = WITHOUT_BODY.has(status) ? null : new Uint8Array(answer.body);
    return new Response(content, { status, headers: responseFieldsOf(answer.headers) });
  };
}

/** The OutboundError in the cause chain, if any. */
export function outboundErrorOf(error: unknown): OutboundError | null {
  for (let one = error; one instanceof Error; one = one.cause) if (one instanceof OutboundError) return one;
  return null;
}
