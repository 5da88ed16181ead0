// Handles incoming requests: rejects malformed and unroutable ones, and proxies the others to an instance.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { bodyOf } from './request_body';
import { countIn, isOverShare } from '../client_share';
import { hasCertificate } from '../tls_contexts';
import { beginProxying, chooseInstance, type InboundRequest, type ProxiedRequest } from './proxied_request';
import { callerOf } from './forwarded_head';
import type { IngressState } from '../ingress_state';
import { fixedPage, render, type Page } from '../pages';
import { serveService } from './service_requests';
import { isClosingAfterResponse, endAfterRequest, closeAfterResponse, sendPage } from './response';
import { findSite, normalizeHost, type Site } from '../route_table';

interface RequestAddress {
  authority: string;
  target: string;
}

const CHALLENGE_PATH = '/.well-known/acme-challenge/';
const READY_PATH = '/readyz';
const TOKEN = /^[A-Za-z0-9_-]{1,256}$/;
const HTTPS_DEFAULT = 443;

interface NodeRequest extends InboundRequest {
  request: IncomingMessage;
  response: ServerResponse;
}

export function handleRequest(ingress: IngressState, inbound: NodeRequest): void {
  const { request, response } = inbound;
  if (isClosingAfterResponse(request.socket)) return;
  response.on('error', () => undefined); // a write to a client that has disconnected
  const malformed = protocolErrorOf(ingress, inbound);
  if (malformed !== null) return rejectRequest(inbound, malformed);
  const address = addressOf(request);
  if (address === null) return rejectRequest(inbound, fixedPage('malformed'));
  if (inbound.listener === 'http' && address.target.startsWith(CHALLENGE_PATH))
    return void answerChallenge(ingress, inbound, address);
  routeRequest(ingress, inbound, address);
}

function routeRequest(ingress: IngressState, inbound: NodeRequest, address: RequestAddress): void {
  const site = findSite(ingress.table, address.authority);
  if (site !== null) return serveSite(ingress, inbound, site, address);
  if (routeToEdge(ingress, inbound, address)) return;
  if (ingress.parts.isServedElsewhere?.(normalizeHost(address.authority)))
    return rejectRequest(inbound, fixedPage('misdirected'));
  if (!ingress.table.complete) return rejectRequest(inbound, fixedPage('starting'));
  if (isProbe(inbound, address)) return sendReady(inbound);
  rejectRequest(inbound, fixedPage('unknown_host'));
}

/** Load balancers and Kubernetes ask a machine or a pod by its address, which is no name of an application. */
function isProbe({ request }: NodeRequest, { authority, target }: RequestAddress): boolean {
  const isByAddress = isIP(normalizeHost(authority).replace(/^\[(.*)\]$/, '$1')) !== 0;
  return target === READY_PATH && request.method === 'GET' && isByAddress;
}

function sendReady({ response }: NodeRequest): void {
  const body = '{"status":"ok"}';
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length });
  response.end(body);
}

/** Serves a request whose host name is routed to an application. */
export function serveSite(
  ingress: IngressState,
  inbound: InboundRequest,
  site: Site,
  { authority, target }: RequestAddress,
): void {
  if (site.service !== null)
    return serveService(ingress, inbound, site, { authority, host: normalizeHost(authority), target });
  const isOfEdge = ingress.parts.edge?.isOwn(inbound.request) ?? false;
  const caller = callerOf(inbound.request, authority, inbound.listener, isOfEdge ? 1 : ingress.trustProxy);
  const full = site.application.open >= ingress.limits.applicationRequests;
  const isGreedy = isOverShare(site.application, caller.address, ingress.limits);
  const proxied = beginProxying(ingress, inbound, { site, caller, host: normalizeHost(authority), authority, target });
  if (full) return sendPage(proxied, fixedPage('busy'));
  if (isGreedy) return sendPage(proxied, fixedPage('address_busy'));
  countAsOpen(proxied);
  // A CDN zone redirects its visitors itself, to its own host name.
  if (site.route.force_https && caller.scheme === 'http' && !isOfEdge) return redirectToHttps(proxied);
  admitRequest(proxied);
}

/** Increments the open requests; `finishProxying` decrements them. */
function countAsOpen(proxied: ProxiedRequest): void {
  proxied.isCounted = true;
  countIn(proxied.site.application, proxied.caller.address);
}

/** @returns false where the host name does not belong to a CDN zone */
function routeToEdge(ingress: IngressState, inbound: NodeRequest, { authority, target }: RequestAddress): boolean {
  const { edge } = ingress.parts;
  const host = normalizeHost(authority);
  if (!edge?.has(host) || inbound.upgrade !== null) return false;
  const { request, response, listener } = inbound;
  const { address, scheme, requestId } = callerOf(request, authority, listener, ingress.trustProxy);
  const visitor = { host, scheme, address, requestId };
  const serve = (): void => edge.handle(request, response, visitor);
  if (scheme === 'https' || !edge.forcesHttps(host)) {
    serve();
    return true;
  }
  void Promise.resolve(hasCertificate(ingress.certificates, host)).then((has) => {
    if (response.destroyed) return;
    if (!has) return serve();
    edge.handle(request, response, { ...visitor, redirect: httpsAddress(ingress, authority, host, target) });
  });
  return true;
}

function admitRequest(proxied: ProxiedRequest): void {
  const { ingress, request, site } = proxied;
  if (site.route.maintenance) return sendPage(proxied, fixedPage('maintenance'));
  if (Number(request.headers['content-length'] ?? 0) > ingress.limits.bodyBytes)
    return sendPage(proxied, fixedPage('body_too_large'));
  chooseInstance(proxied);
}

function redirectToHttps(proxied: ProxiedRequest): void {
  const has = hasCertificate(proxied.ingress.certificates, proxied.host);
  if (has === true) return sendRedirect(proxied);
  if (has === false) return admitRequest(proxied);
  void has.then((found) => {
    if (proxied.closed) return;
    if (found) sendRedirect(proxied);
    else admitRequest(proxied);
  });
}

function sendRedirect(proxied: ProxiedRequest): void {
  const { ingress, authority, host, target } = proxied;
  const page: Page = {
    status: 308,
    reason: 'https',
    title: 'Moved to https',
    detail: 'This address is served over https.',
  };
  sendPage(proxied, page, { Location: httpsAddress(ingress, authority, host, target) });
}

// If the client named a port, it uses the ports of the ingress directly; otherwise an external port mapping applies.
function httpsAddress({ httpsPort }: IngressState, authority: string, host: string, target: string): string {
  const named = /:\d+$/.test(authority) && !authority.endsWith(':80');
  const port = named && httpsPort !== null && httpsPort !== HTTPS_DEFAULT ? `:${httpsPort}` : '';
  return `https://${host}${port}${target === '*' ? '/' : target}`;
}

// Further checks for request smuggling after Node's parser (RFC 9112 sections 3.2, 6.1 and 11.2).
function protocolErrorOf({ limits }: IngressState, { request, upgrade }: NodeRequest): Page | null {
  const { headers, httpVersionMajor, httpVersionMinor } = request;
  const coding = headers['transfer-encoding'];
  if (request.rawHeaders.length > limits.headers * 2) return fixedPage('too_many_headers');
  if (httpVersionMajor !== 1 || countHostHeaders(request) > 1) return fixedPage('malformed');
  if (coding === undefined)
    return upgrade !== null && Number(headers['content-length'] ?? 0) > 0 ? fixedPage('malformed') : null;
  if (headers['content-length'] !== undefined || httpVersionMinor === 0 || upgrade !== null)
    return fixedPage('malformed');
  return coding.toLowerCase() === 'chunked' ? null : fixedPage('not_implemented');
}

function countHostHeaders({ rawHeaders }: IncomingMessage): number {
  let found = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') found += 1;
  }
  return found;
}

// The host of an absolute request target takes precedence over Host (RFC 9112 section 3.2.2).
function addressOf(request: IncomingMessage): RequestAddress | null {
  const target = request.url ?? '';
  if (target.startsWith('/') || (target === '*' && request.method === 'OPTIONS'))
    return { authority: request.headers.host ?? '', target };
  const [, authority, path = ''] = /^https?:\/\/([^/?#@]+)([/?].*)?$/i.exec(target) ?? [];
  if (authority === undefined) return null;
  return { authority, target: path.startsWith('/') ? path : `/${path}` };
}

async function answerChallenge(ingress: IngressState, inbound: NodeRequest, address: RequestAddress): Promise<void> {
  const { response } = inbound;
  const token = address.target.slice(CHALLENGE_PATH.length).split('?', 1)[0] as string;
  const host = normalizeHost(address.authority);
  const answer = TOKEN.test(token) ? await ingress.parts.challenge(token, host).catch(() => null) : null;
  if (response.destroyed) return;
  // An application may obtain certificates itself.
  if (answer === null) return routeRequest(ingress, inbound, address);
  if (answer === '') return rejectRequest(inbound, fixedPage('unknown_host'));
  response.writeHead(200, {
    'Content-Type': 'text/plain',
    'Content-Length': Buffer.byteLength(answer),
    'Cache-Control': 'no-store',
  });
  response.end(answer);
}

/** Rejects a request that belongs to no application: it is neither counted nor logged. */
function rejectRequest({ request, response, listener }: NodeRequest, page: Page): void {
  const { requestId } = callerOf(request, '', listener, 0);
  const { headers, body } = render(page, request, requestId);
  const whole = bodyOf(request) === 'none';
  if (page.status !== 404 || !whole) closeAfterResponse(response);
  response.writeHead(page.status, headers);
  if (whole) return void response.end(body);
  response.write(body);
  endAfterRequest(request, response);
}
