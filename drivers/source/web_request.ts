// A single HTTP request to a checked endpoint: it connects to one of the checked addresses, and only reports redirects.
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createSecureContext, rootCertificates } from 'node:tls';
import { memoize } from '../../core/memoize';
import type { DriverContext } from '../../core/driver';
import type { Outbound } from '../../core/outbound';
import { openExchange } from '../../core/outbound/exchange';
import { newTrace } from '../../core/outbound/trace';
import { SourceError } from '../source';
import type { RemoteEndpoint } from './address';

export interface WebRequest {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: Buffer;
}

export interface WebResponse {
  response: IncomingMessage;
  status: number;
}

const IDLE_MS = 30_000;

/** The caller must read or destroy the body. @throws SourceError unreachable */
export async function requestPinned(
  outbound: Outbound,
  { address, host, ips }: RemoteEndpoint,
  { method = 'GET', headers = {}, body }: WebRequest,
  ctx: DriverContext,
): Promise<WebResponse> {
  const idle = new AbortController();
  const timer = setTimeout(() => idle.abort(), IDLE_MS);
  const list = Object.entries(headers).map(([name, value]) => ({ name, value }));
  const target = { url: new URL(address), addresses: ips, method, headers: list, body, verifyTls: true };
  const signal = AbortSignal.any([ctx.signal, idle.signal]);
  try {
    const { response, close } = await openExchange(withRootsOfGit(outbound), target, newTrace(), signal);
    response.on('data', () => timer.refresh()).pause();
    response.once('close', () => (clearTimeout(timer), close()));
    return { response, status: response.statusCode ?? 0 };
  } catch (error) {
    clearTimeout(timer);
    const message = `The host ${host} did not answer, or closed the connection. Try again later.`;
    throw Object.assign(new SourceError('unreachable', message), { cause: error });
  }
}

/** Requests trust what git trusts, in a process that was given roots for it. */
function withRootsOfGit(outbound: Outbound): Outbound {
  const own = contextOfGit();
  return own ? { ...outbound, secureContext: () => own } : outbound;
}

const contextOfGit = memoize(() => {
  const file = process.env.GIT_SSL_CAINFO ?? process.env.SSL_CERT_FILE;
  return file === undefined
    ? undefined
    : createSecureContext({ ca: [...rootCertificates, readFileSync(file, 'utf8')] });
});
