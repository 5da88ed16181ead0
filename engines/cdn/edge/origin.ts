// Requests to origins. A host name is resolved once, its addresses are validated, and the connection uses one of them.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import { bareHost } from '../../../core/protocols/addresses';
import { presignUrl } from '../../../core/protocols/sigv4';
import type { Outbound } from '../../../core/outbound';
import { EDGE_FIELD, type CdnOriginSpec } from '../cdn';
import type { HeaderFields } from './headers';

interface OriginRequest {
  method: string;
  /** Path and query string, unmodified. */
  target: string;
  headers: HeaderFields;
  /** null: no body. */
  body: Readable | null;
  signal: AbortSignal;
}

export interface OriginClient {
  /** Resolves with the response head. @throws Error where the origin does not respond */
  send(origin: CdnOriginSpec, request: OriginRequest): Promise<IncomingMessage>;
  close(): void;
}

/** An origin that sends nothing for this long has failed. */
const SILENCE_MS = 60_000;
const AGENT = { keepAlive: true, maxSockets: 256, maxFreeSockets: 32, timeout: SILENCE_MS };

/** @param token authenticates requests to applications at the ingress of this installation */
export function openOriginClient(outbound: Outbound, token: string): OriginClient {
  const agents = { http: new http.Agent(AGENT), https: new https.Agent(AGENT) };
  return {
    async send(origin, { method, target, headers, body, signal }) {
      const { protocol, hostname, port } = new URL(origin.url);
      const isSecure = protocol === 'https:';
      const host = bareHost(hostname);
      const address = await addressOf(outbound, origin, host);
      const options: https.RequestOptions = {
        ...{
          method: origin.bucket && method !== PREFLIGHT ? 'GET' : method,
          path: origin.bucket ? bucketTarget(origin, method, target) : target,
          signal,
          host,
          agent: isSecure ? agents.https : agents.http,
        },
        port: port || (isSecure ? 443 : 80),
        headers: {
          ...{ ...headers, host: origin.host_header },
          ...(origin.is_internal && !origin.bucket && { [EDGE_FIELD]: token }),
        },
        lookup: fixedLookup(address),
        timeout: SILENCE_MS,
        ...(isSecure && {
          servername: isIP(origin.host_header) ? undefined : origin.host_header.replace(/:\d+$/, ''),
          secureContext: outbound.secureContext(),
          rejectUnauthorized: !origin.is_internal,
        }),
      };
      return exchange(isSecure ? https.request(options) : http.request(options), body);
    },
    close() {
      agents.http.destroy();
      agents.https.destroy();
    },
  };
}

const SIGNED_SECONDS = 60;
const INDEX = 'index.html';

const PREFLIGHT = 'OPTIONS';

/** Browsers do not authenticate preflights, so that object storages answer those without a signature. */
function bucketTarget(origin: CdnOriginSpec, method: string, target: string): string {
  const signed = signedTarget(origin, target);
  return method === PREFLIGHT ? (signed.split('?', 1)[0] ?? signed) : signed;
}

/**
 * Signed path of an object. Query strings of visitors are dropped: the object storage would treat them as operations.
 */
function signedTarget({ url, bucket }: CdnOriginSpec, target: string): string {
  if (!bucket) return target;
  const path = target.split('?', 1)[0] ?? '/';
  const key = `${decodedKey(path)}${path.endsWith('/') ? INDEX : ''}`;
  const { name, region, credentials } = bucket;
  const signed = presignUrl({
    ...{ method: 'GET', endpoint: url, bucket: name, key, region, credentials, expiresSeconds: SIGNED_SECONDS },
  });
  return signed.slice(new URL(signed).origin.length);
}

function decodedKey(path: string): string {
  try {
    return decodeURIComponent(path.slice(1));
  } catch {
    return path.slice(1);
  }
}

async function addressOf(outbound: Outbound, { is_internal }: CdnOriginSpec, host: string): Promise<string> {
  const addresses = await outbound.names.resolve(host);
  if (!is_internal) outbound.requireAllowed(host, addresses);
  return addresses[0] as string;
}

function fixedLookup(address: string): LookupFunction {
  const family = isIP(address);
  return (_host, options, callback) =>
    options.all ? callback(null, [{ address, family }]) : callback(null, address, family);
}

function exchange(request: http.ClientRequest, body: Readable | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.on('error', reject);
    request.on('timeout', () => request.destroy(new Error('the origin sent nothing for a minute')));
    request.on('response', resolve);
    if (!body) return void request.end();
    body.on('error', (error) => request.destroy(error));
    body.pipe(request);
  });
}
