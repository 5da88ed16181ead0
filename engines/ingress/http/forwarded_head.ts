// The request head as forwarded to the instance: without hop-by-hop fields (RFC 9110 section 7.6.1), with X-Forwarded-*
// fields.
import { isIP } from 'node:net';
import { HOP_BY_HOP } from '../../../core/protocols/hop_by_hop';
import { mintRequestId } from '../../../core/ids';
import { EDGE_FIELD } from '../../cdn';
import { withoutNamed } from './response_parser';
import type { VisitorRequest } from '../visitor';

/** The client, as far as proxy headers are trusted. */
export interface Caller {
  address: string;
  scheme: 'http' | 'https';
  requestId: string;
  /** Values of X-Forwarded-For, -Host and -Port for the instance. */
  chain: string;
  host: string;
  port: string;
}

const REQUEST_ID_FIELD = 'x-request-id';
const DROPPED = new Set([...HOP_BY_HOP, 'host', 'proxy-authorization', 'expect']);
const OURS = new Set([
  ...['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-port', REQUEST_ID_FIELD],
  EDGE_FIELD,
]);
/** Client address fields that proxies set. */
const OF_PROXIES = new Set(['forwarded', 'x-real-ip', 'client-ip', 'true-client-ip']);
const REQUEST_ID = /^[A-Za-z0-9._-]{8,128}$/;
const PORT = /:(\d{1,5})$/;

/** `trustProxy` is the number of trusted proxies in front. */
export function callerOf(
  request: VisitorRequest,
  authority: string,
  listener: 'http' | 'https',
  trustProxy: number,
): Caller {
  const remote = plainAddress(request.socket.remoteAddress ?? '');
  const port = (scheme: string): string => PORT.exec(authority)?.[1] ?? (scheme === 'https' ? '443' : '80');
  if (trustProxy === 0)
    return {
      address: remote,
      scheme: listener,
      requestId: mintRequestId(),
      chain: remote,
      host: authority,
      port: port(listener),
    };
  const { headers } = request;
  const chain = headers['x-forwarded-for'] === undefined ? remote : `${String(headers['x-forwarded-for'])}, ${remote}`;
  const hops = chain.split(',');
  const hop = (hops[Math.max(0, hops.length - 1 - trustProxy)] as string).trim();
  const named = first(headers['x-forwarded-proto']);
  const scheme = named === 'https' || named === 'http' ? named : listener;
  const id = first(headers['x-request-id']);
  return {
    address: isIP(hop) ? hop : remote,
    scheme,
    requestId: REQUEST_ID.test(id) ? id : mintRequestId(),
    chain,
    host: first(headers['x-forwarded-host']) || authority,
    port: /^\d{1,5}$/.test(first(headers['x-forwarded-port'])) ? first(headers['x-forwarded-port']) : port(scheme),
  };
}

interface ForwardOptions {
  target: string;
  authority: string;
  caller: Caller;
  trustProxy: number;
  protocol: string | null;
  expects: boolean;
  /** X-Request-Id: that of the caller, or what the visitor sent, which services of the platform note in their logs. */
  requestId: 'of_caller' | 'as_sent';
}

/** Request line and headers, including the empty line. */
export function forwardedHead(request: VisitorRequest, options: ForwardOptions): string {
  const { caller } = options;
  const { connection } = request.headers;
  const raw = connection === undefined ? request.rawHeaders : withoutNamed(request.rawHeaders, connection);
  let head = `${request.method} ${options.target} HTTP/1.1\r\nHost: ${options.authority}\r\n`;
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] as string;
    const lower = name.toLowerCase();
    const isSent = lower === REQUEST_ID_FIELD && options.requestId === 'as_sent';
    if (isSent || passes(lower, options.trustProxy)) head += `${name}: ${raw[index + 1]}\r\n`;
  }
  head += `X-Forwarded-For: ${caller.chain}\r\nX-Forwarded-Proto: ${caller.scheme}\r\n`;
  head += `X-Forwarded-Host: ${caller.host}\r\nX-Forwarded-Port: ${caller.port}\r\n`;
  if (options.requestId === 'of_caller') head += `X-Request-Id: ${caller.requestId}\r\n`;
  if (options.expects) head += 'Expect: 100-continue\r\n';
  if (isChunked(request)) head += 'Transfer-Encoding: chunked\r\n';
  if (options.protocol !== null) head += `Connection: Upgrade\r\nUpgrade: ${options.protocol}\r\n`;
  return `${head}\r\n`;
}

export function isChunked(request: VisitorRequest): boolean {
  return request.headers['transfer-encoding'] !== undefined;
}

/** Trailers that are forwarded to the instance: no framing, and no field that the ingress sets itself. */
export function forwardedTrailers(request: VisitorRequest): string {
  let text = '';
  const raw = request.rawTrailers;
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] as string).toLowerCase();
    if (passes(name, 0) && name !== 'content-length') text += `${raw[index]}: ${raw[index + 1]}\r\n`;
  }
  return text;
}

function passes(name: string, trustProxy: number): boolean {
  if (DROPPED.has(name)) return false;
  // CGI maps both X_Forwarded_For and X-Forwarded-For to the same variable.
  const plain = name.includes('_') ? name.replaceAll('_', '-') : name;
  // CGI maps `Proxy` to HTTP_PROXY, which HTTP clients in the program would use ("httpoxy").
  if (OURS.has(plain) || plain === 'proxy') return false;
  return trustProxy > 0 || !(OF_PROXIES.has(plain) || plain.startsWith('x-forwarded-'));
}

function first(value: string | string[] | undefined): string {
  const text = Array.isArray(value) ? value[0] : value;
  return text === undefined ? '' : (text.split(',', 1)[0] as string).trim();
}

function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}
