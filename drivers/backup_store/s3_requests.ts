// Signed requests to an S3 service, in path style. Temporary failures are retried.
import { setTimeout as sleep } from 'node:timers/promises';
import { EMPTY_SHA256, sha256Hex, signedHeaders, uriEncodePath } from '../../core/protocols/sigv4';
import { trusted } from '../../core/outbound/client';
import { checkpoint, DriverError, EngineAway, type DriverContext, type DriverErrorReason } from '../../core/driver';
import { pauseMsAfter } from '../../core/process/backoff';

export interface S3Options {
  /** Without a trailing slash. */
  url: string;
  region: string;
  bucket: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** What messages call the service. */
  title?: StoreTitle;
}

export type StoreTitle = 'backup store' | 'file store';

interface S3Call {
  method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE';
  /** Object key; absent: the bucket itself. */
  key?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: Buffer<ArrayBuffer>;
}

/** Sends a request; a status of 400 and above is an error, except for those in `expected`. */
export interface SendS3 {
  (call: S3Call, ctx: DriverContext, expected?: readonly number[]): Promise<Response>;
  readonly title: StoreTitle;
}

const TRIES = 4;
const BACKOFF = { firstMs: 250, maxMs: 1_000 };
/** Timeout for the response head: sufficient for a part of 16 MB over a slow connection. */
const HEAD_WITHIN_MS = 120_000;
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);
const REFUSED: Record<number, DriverErrorReason> = { 401: 'unauthorized', 403: 'unauthorized' };

export function s3Requests(options: S3Options): SendS3 {
  const { title = 'backup store' } = options;
  const send = async (call: S3Call, ctx: DriverContext, expected: readonly number[] = []): Promise<Response> => {
    for (let attempt = 1; ; attempt += 1) {
      checkpoint(ctx);
      const response = await once(options, call, ctx).catch((error: unknown) => ({ error }));
      if ('error' in response) {
        if (attempt >= TRIES || ctx.signal.aborted) throw away(title, response.error);
      } else if (response.status < 400 || expected.includes(response.status)) {
        return response;
      } else if (!PASSING.has(response.status) || attempt >= TRIES) {
        throw refusal(title, response.status, await response.text().catch(() => ''));
      } else {
        await response.body?.cancel();
      }
      await sleep(pauseMsAfter(attempt, BACKOFF) * (0.5 + Math.random()));
    }
  };
  return Object.assign(send, { title });
}

/** The store is unreachable, or the connection broke. */
export function away(title: StoreTitle, cause: unknown): DriverError {
  return Object.assign(new EngineAway(`The ${title} does not respond.`), { cause });
}

async function once(options: S3Options, call: S3Call, ctx: DriverContext): Promise<Response> {
  const { method, key, query = {}, headers = {}, body } = call;
  const url = new URL(`${options.url}/${options.bucket}${key === undefined ? '' : `/${uriEncodePath(key)}`}`);
  // Not as a form: a space is %20 in a signature.
  url.search = new URLSearchParams(query).toString().replaceAll('+', '%20');
  const { host: _, ...signed } = signedHeaders({
    ...{ method, url, headers, region: options.region, credentials: options },
    payloadHash: body ? sha256Hex(body) : EMPTY_SHA256,
  });
  return trusted(url, {
    ...{ method, headers: signed, ...(body && { body }), bodyBytesMax: Infinity },
    ...{ signal: ctx.signal, within: { ms: HEAD_WITHIN_MS, of: 'head' } },
  });
}

// The code is from a public list; the rest of the response may name keys.
function refusal(title: StoreTitle, status: number, text: string): DriverError {
  const code = /<Code>(\w{1,64})<\/Code>/.exec(text)?.[1] ?? String(status);
  const reason = REFUSED[status] ?? 'transient';
  const message =
    code === 'NoSuchBucket'
      ? `The bucket of the ${title} does not exist.`
      : `The ${title} refuses a request of the platform (${code}).`;
  return PASSING.has(status) ? new EngineAway(message) : new DriverError(reason, message);
}
