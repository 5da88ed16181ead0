// The admin API of a Ceph RADOS Gateway (https://docs.ceph.com/en/latest/radosgw/adminops/) and S3 with the credentials
// of a bucket's owner. Both use Signature Version 4.
import { sha256Hex, signedHeaders, type Credentials } from '../../core/protocols/sigv4';
import { trusted } from '../../core/outbound/client';
import { checkpoint, DriverError, EngineAway, type DriverContext, type DriverErrorReason } from '../../core/driver';

export interface RgwOptions {
  /** URL of the gateway, without a trailing slash, such as http://127.0.0.1:7480. */
  url: string;
  /** Key of a user with the capabilities users=*, buckets=*, usage=read. */
  accessKeyId: string;
  secretAccessKey: string;
  /** Users of the gateway with this prefix, and everything they own, belong to the platform. */
  userPrefix: string;
}

export interface Answer {
  status: number;
  text: string;
  /** Error code. */
  code: string | null;
}

type Query = Record<string, string | number | boolean>;

export interface RgwApi {
  /** Calls the admin API. @returns null for 404 */
  admin<T>(method: string, path: string, query: Query, ctx: DriverContext): Promise<T | null>;
  /** Calls S3. Throws for statuses from 500 on and for an unreachable gateway; returns all others. */
  s3(
    owner: Credentials,
    method: string,
    path: string,
    query: Query,
    ctx: DriverContext,
    body?: string,
  ): Promise<Answer>;
}

/** Gateways accept any region in a signature. */
const REGION = 'default';
const ANSWER_WITHIN_MS = 15_000;
const REASONS: Record<number, DriverErrorReason> = {
  400: 'invalid',
  401: 'unauthorized',
  403: 'unauthorized',
  409: 'conflict',
};
const MESSAGES: Partial<Record<DriverErrorReason, string>> = {
  unauthorized: 'The object gateway refuses the admin key of the platform.',
  conflict: 'The object gateway has another user or key of this name.',
  invalid: 'The object gateway refuses the request.',
};

export function openRgwApi({ url, accessKeyId, secretAccessKey }: RgwOptions): RgwApi {
  const send = (credentials: Credentials, method: string, path: string, query: Query, ctx: DriverContext, body = '') =>
    request({ method, url: addressOf(url, path, query), body, credentials }, ctx);
  return {
    async admin<T>(method: string, path: string, query: Query, ctx: DriverContext): Promise<T | null> {
      const answer = await send({ accessKeyId, secretAccessKey }, method, `/admin/${path}`, query, ctx);
      if (answer.status === 404) return null;
      if (answer.status >= 400) throw rgwError(answer);
      return (answer.text ? JSON.parse(answer.text) : {}) as T;
    },
    s3: (owner, method, path, query, ctx, body) => send(owner, method, path, query, ctx, body),
  };
}

/** Converts an unexpected response to an error. */
export function rgwError({ status, text }: Answer): DriverError {
  const reason = REASONS[status] ?? 'transient';
  const message = MESSAGES[reason];
  const failure = message
    ? new DriverError(reason, message)
    : new EngineAway('The object gateway has an internal error.');
  return Object.assign(failure, { cause: new Error(`${status} ${text.slice(0, 500)}`) });
}

function addressOf(base: string, path: string, query: Query): URL {
  const url = new URL(base + path);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  // Not as a form: a space is %20 in a signature.
  url.search = url.search.replaceAll('+', '%20');
  return url;
}

interface Signed {
  method: string;
  url: URL;
  body: string;
  credentials: Credentials;
}

async function request({ method, url, body, credentials }: Signed, ctx: DriverContext): Promise<Answer> {
  checkpoint(ctx);
  const { host: _, ...headers } = signedHeaders({
    ...{ method, url, credentials, region: REGION, payloadHash: sha256Hex(body) },
    headers: body ? { 'content-type': 'application/xml' } : {},
  });
  try {
    const response = await trusted(url, {
      ...{ method, headers, ...(body && { body }), signal: ctx.signal },
      within: { ms: ANSWER_WITHIN_MS, of: 'response' },
    });
    const text = await response.text();
    const answer = { status: response.status, text, code: codeOf(text) };
    if (response.status >= 500) throw rgwError(answer);
    return answer;
  } catch (error) {
    if (error instanceof DriverError) throw error;
    throw Object.assign(new EngineAway('The object gateway does not respond.'), { cause: error });
  }
}

function codeOf(text: string): string | null {
  return /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? /"Code":"(\w+)"/.exec(text)?.[1] ?? null;
}
