// A single HTTP request to a checked endpoint: it connects to one of the checked addresses, and only reports redirects.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { isIP } from 'node:net';
import { rootCertificates } from 'node:tls';
import { memoize } from '../../core/memoize';
import type { DriverContext } from '../../core/driver';
import { SourceError } from '../source';
import type { RemoteEndpoint } from './address';

export interface WebRequest {
  method?: 'GET' | 'POST';
  headers?: Record<string, string>;
  body?: Buffer;
}

export interface WebResponse {
  response: http.IncomingMessage;
  status: number;
}

const IDLE_MS = 30_000;

/** The caller must read or destroy the body. @throws SourceError unreachable */
export function requestPinned(
  endpoint: RemoteEndpoint,
  { method = 'GET', headers = {}, body }: WebRequest,
  { signal }: DriverContext,
): Promise<WebResponse> {
  const { scheme, host } = endpoint;
  const options = { method, headers, lookup: lookupOf(endpoint), signal, agent: false, timeout: IDLE_MS };
  return new Promise((resolve, reject) => {
    const request =
      scheme === 'https'
        ? https.request(endpoint.address, { ...options, ca: trustedRoots() })
        : http.request(endpoint.address, options);
    request.on('response', (response) => resolve({ response, status: response.statusCode ?? 0 }));
    request.on('timeout', () => request.destroy());
    request.on('error', () =>
      reject(
        new SourceError('unreachable', `The host ${host} did not answer, or closed the connection. Try again later.`),
      ),
    );
    request.end(body);
  });
}

function lookupOf({ ips }: RemoteEndpoint): http.RequestOptions['lookup'] {
  return (_name, options, done) => {
    const all = ips.map((address) => ({ address, family: isIP(address) }));
    if (options.all) return done(null, all);
    done(null, all[0]!.address, all[0]!.family);
  };
}

/** Additional trusted roots of git, which Node.js does not read by itself. */
const trustedRoots = memoize((): string[] | undefined => {
  const file = process.env.GIT_SSL_CAINFO ?? process.env.SSL_CERT_FILE;
  return file === undefined ? undefined : [...rootCertificates, readFileSync(file, 'utf8')];
});
