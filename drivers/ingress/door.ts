// Where requests come in: what is wrong with them is said here, the rest goes to an instance.
import type { IncomingMessage } from 'node:http';
import { bodyOf } from './body';
import { hasCertificate } from './certificates';
import { dispatch, openExchange, type Arrival, type Exchange } from './exchange';
import { callerOf } from './forward';
import type { Gate } from './gate';
import { pageOf, render, type Page } from './pages';
import { isEnding, linger, makeLast, say } from './response';
import { findSite, hostOf } from './table';

interface Address {
  authority: string;
  target: string;
}

const CHALLENGE_PATH = '/.well-known/acme-challenge/';
const TOKEN = /^[A-Za-z0-9_-]{1,256}$/;
const HTTPS_DEFAULT = 443;

export function arrive(gate: Gate, arrival: Arrival): void {
  const { request, response } = arrival;
  if (isEnding(request.socket)) return;
  response.on('error', () => undefined); // a write to a client that has gone
  const malformed = complaintAbout(gate, arrival);
  if (malformed !== null) return turnAway(arrival, malformed);
  const address = addressOf(request);
  if (address === null) return turnAway(arrival, pageOf('malformed'));
  if (arrival.listener === 'http' && address.target.startsWith(CHALLENGE_PATH))
    return void answerChallenge(gate, arrival, address);
  enter(gate, arrival, address);
}

function enter(gate: Gate, arrival: Arrival, { authority, target }: Address): void {
  const site = findSite(gate.table, authority);
  if (site === null) return turnAway(arrival, pageOf('unknown_host'));
  const caller = callerOf(arrival.request, authority, arrival.listener, gate.trustProxy);
  const full = site.application.open >= gate.limits.applicationRequests;
  const exchange = openExchange(gate, arrival, { site, caller, host: hostOf(authority), authority, target });
  if (full) return say(exchange, pageOf('busy'));
  if (site.route.force_https && caller.scheme === 'http') return secure(exchange);
  admit(exchange);
}

function admit(exchange: Exchange): void {
  const { gate, request, site } = exchange;
  if (site.route.maintenance) return say(exchange, pageOf('maintenance'));
  if (Number(request.headers['content-length'] ?? 0) > gate.limits.bodyBytes)
    return say(exchange, pageOf('body_too_large'));
  dispatch(exchange);
}

function secure(exchange: Exchange): void {
  const has = hasCertificate(exchange.gate.certificates, exchange.host);
  if (has === true) return redirect(exchange);
  if (has === false) return admit(exchange);
  void has.then((found) => {
    if (exchange.closed) return;
    if (found) redirect(exchange);
    else admit(exchange);
  });
}

// A visitor who named our port sees the ports as they are; one who did not comes through ports that others map to ours.
function redirect(exchange: Exchange): void {
  const { gate, authority, host, target } = exchange;
  const named = /:\d+$/.test(authority) && !authority.endsWith(':80');
  const port = named && gate.httpsPort !== null && gate.httpsPort !== HTTPS_DEFAULT ? `:${gate.httpsPort}` : '';
  const page: Page = {
    status: 308,
    reason: 'https',
    title: 'Moved to https',
    detail: 'This address is served over https.',
  };
  say(exchange, page, { Location: `https://${host}${port}${target === '*' ? '/' : target}` });
}

// Node's parser refuses most of what makes two servers see different requests in the same bytes. This is the rest
// (RFC 9112 sections 3.2, 6.1 and 11.2).
function complaintAbout({ limits }: Gate, { request, upgrade }: Arrival): Page | null {
  const { headers, httpVersionMajor, httpVersionMinor } = request;
  const coding = headers['transfer-encoding'];
  if (request.rawHeaders.length > limits.headers * 2) return pageOf('too_many_headers');
  if (httpVersionMajor !== 1 || hostHeaders(request) > 1) return pageOf('malformed');
  if (coding === undefined)
    return upgrade !== null && Number(headers['content-length'] ?? 0) > 0 ? pageOf('malformed') : null;
  if (headers['content-length'] !== undefined || httpVersionMinor === 0 || upgrade !== null) return pageOf('malformed');
  return coding.toLowerCase() === 'chunked' ? null : pageOf('not_implemented');
}

function hostHeaders({ rawHeaders }: IncomingMessage): number {
  let found = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') found += 1;
  }
  return found;
}

// The host in the request line wins over the header (RFC 9112 section 3.2.2).
function addressOf(request: IncomingMessage): Address | null {
  const target = request.url ?? '';
  if (target.startsWith('/') || (target === '*' && request.method === 'OPTIONS'))
    return { authority: request.headers.host ?? '', target };
  const [, authority, path = ''] = /^https?:\/\/([^/?#@]+)([/?].*)?$/i.exec(target) ?? [];
  if (authority === undefined) return null;
  return { authority, target: path.startsWith('/') ? path : `/${path}` };
}

async function answerChallenge(gate: Gate, arrival: Arrival, address: Address): Promise<void> {
  const { response } = arrival;
  const token = address.target.slice(CHALLENGE_PATH.length).split('?', 1)[0] as string;
  const answer = TOKEN.test(token) ? await gate.parts.challenge(token).catch(() => null) : null;
  if (response.destroyed) return;
  // An application may get certificates of its own.
  if (answer === null) return enter(gate, arrival, address);
  response.writeHead(200, {
    'Content-Type': 'text/plain',
    'Content-Length': Buffer.byteLength(answer),
    'Cache-Control': 'no-store',
  });
  response.end(answer);
}

/** An answer that belongs to no application: nobody's counters, nobody's log. */
function turnAway({ request, response, listener }: Arrival, page: Page): void {
  const { requestId } = callerOf(request, '', listener, 0);
  const { headers, body } = render(page, request, requestId);
  const whole = bodyOf(request) === 'none';
  if (page.status !== 404 || !whole) makeLast(response);
  response.writeHead(page.status, headers);
  if (whole) return void response.end(body);
  response.write(body);
  linger(request, response);
}
