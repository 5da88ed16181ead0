// Cookies of pages that are opened by the address of the machine, such as http://192.0.2.1:8080. Where the platform has
// a name that its own ingress serves, cookies are bound to TLS. Browsers would keep none of them over plain HTTP, so
// nobody could log in while the name does not work yet, or no more.
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { visitorOf } from '../../core/process/ingress_connections';
import { bareHost } from '../../core/protocols/addresses';

const PREFIX = '__Host-';
const BOUND = /; secure(?=;|$)/gi;
const OF_PROXIES = ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded'];

/**
 * Gives them names of their own, which this request cannot share with one that came over TLS.
 * @param response null: it sets no cookie
 */
export function unbindCookies(request: IncomingMessage, response: ServerResponse | null): void {
  if (!isByAddress(request)) return;
  const { cookie } = request.headers;
  if (cookie !== undefined) request.headers.cookie = cookie.split(';').flatMap(boundPairOf).join('; ');
  if (response === null) return;
  const writeHead = response.writeHead.bind(response) as (status: number, ...rest: unknown[]) => ServerResponse;
  response.writeHead = ((status: number, ...rest: unknown[]): ServerResponse => {
    const set = response.getHeader('Set-Cookie');
    if (set !== undefined) response.setHeader('Set-Cookie', [set].flat().map(String).map(plainLineOf));
    return writeHead(status, ...rest.map(withPlainLines));
  }) as ServerResponse['writeHead'];
}

/** Not where a proxy may have taken the request over TLS. */
function isByAddress(request: IncomingMessage): boolean {
  const { headers } = request;
  if (visitorOf(request) !== null || OF_PROXIES.some((name) => headers[name] !== undefined)) return false;
  const host = bareHost((headers.host ?? '').replace(/:\d*$/, ''));
  return isIP(host) !== 0 || host === 'localhost';
}

/** A pair of the Cookie header as cookies are named that are bound to TLS; those themselves are no such ones here. */
function boundPairOf(pair: string): string[] {
  const plain = pair.trim();
  return plain === '' || plain.startsWith(PREFIX) ? [] : [PREFIX + plain];
}

function withPlainLines(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return given;
  const entries = Object.entries(given as OutgoingHttpHeaders).map(([name, value]) =>
    /^set-cookie$/i.test(name) && value !== undefined
      ? [name, [value].flat().map(String).map(plainLineOf)]
      : [name, value],
  );
  return Object.fromEntries(entries);
}

function plainLineOf(line: string): string {
  return line.startsWith(PREFIX) ? line.slice(PREFIX.length).replace(BOUND, '') : line;
}
