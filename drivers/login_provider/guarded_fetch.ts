// `fetch` for openid-client, through core/outbound/: limited in time and size, and without redirects.
import { limits } from '../../core/limits';
import type { Outbound } from '../../core/outbound';
import { exchange } from '../../core/outbound/exchange';
import { newTrace, OutboundError, timeoutError } from '../../core/outbound/trace';

interface FetchOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

export type GuardedFetch = (url: string, options?: FetchOptions) => Promise<Response>;

const BODY_BYTES_MAX = 512 * 1024;
/** Statuses without a body, for which the `Response` constructor accepts none (RFC 9110 section 6.4.1). */
const WITHOUT_BODY = new Set([204, 205, 304]);

/** @throws OutboundError from the returned function */
export function guardedFetch(outboundFor: (url: URL) => Outbound): GuardedFetch {
  return async (text, { method = 'GET', headers = {}, body } = {}) => {
    const url = new URL(text);
    const trace = newTrace();
    const end = AbortSignal.timeout(limits.probeTimeoutMs);
    const sent = body == null ? undefined : Buffer.from(String(body));
    const request = {
      ...{ url, method, body: sent, verifyTls: true, bodyBytesMax: BODY_BYTES_MAX },
      headers: Object.entries(headers).map(([name, value]) => ({ name, value })),
    };
    try {
      const answer = await exchange(outboundFor(url), request, trace, end);
      const shown = Object.entries(answer.headers).flatMap(([name, value]) =>
        [value ?? []].flat().map((one): [string, string] => [name, one]),
      );
      return new Response(WITHOUT_BODY.has(answer.status) ? null : new Uint8Array(answer.body), {
        ...{ status: answer.status, headers: shown },
      });
    } catch (error) {
      if (!end.aborted) throw error;
      throw timeoutError(trace, limits.probeTimeoutMs / 1000);
    }
  };
}

/** The OutboundError in the cause chain, if any. */
export function outboundErrorOf(error: unknown): OutboundError | null {
  for (let one = error; one instanceof Error; one = one.cause) if (one instanceof OutboundError) return one;
  return null;
}
