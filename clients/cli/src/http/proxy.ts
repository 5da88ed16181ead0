// Proxies by the variables that curl knows: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in either case.
import * as http from 'node:http';
import * as https from 'node:https';
import { isIP } from 'node:net';
import * as tls from 'node:tls';
import { EXIT, Failure } from '../failure';

type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy for an address, or undefined to connect directly. */
export function proxyFor(url: URL, env: Environment = process.env): URL | undefined {
  const read = (name: string): string => env[name] || env[name.toLowerCase()] || '';
  const given = read(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY') || read('ALL_PROXY');
  if (!given || isExcepted(url, read('NO_PROXY'))) return undefined;
  const text = given.includes('://') ? given : `http://${given}`;
  if (!URL.canParse(text)) throw new Failure('The address of the proxy in the environment is no URL.', EXIT.usage);
  return new URL(text);
}

function isExcepted(url: URL, exceptions: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  // As in curl, the person's own computer is reached directly.
  if (host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host.startsWith('127.')) return true;
  return exceptions
    .split(/[\s,]+/)
    .filter(Boolean)
    .some((entry) => {
      const [, name = '', port] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase().replace(/^\*?\./, '')) ?? [];
      if (name === '*') return true;
      const isPort = !port || port === (url.port || (url.protocol === 'https:' ? '443' : '80'));
      return isPort && (host === name || host.endsWith(`.${name}`));
    });
}

export function proxyAuthorization({ username, password }: URL): Record<string, string> {
  if (!username) return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };
}

/** A TLS connection to the host of the address through the proxy (CONNECT, RFC 9110 section 9.3.6). */
export function openTunnel(proxy: URL, url: URL): Promise<tls.TLSSocket> {
  const target = `${url.hostname}:${url.port || 443}`;
  const { request } = proxy.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    const tunnel = request({
      host: proxy.hostname,
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      method: 'CONNECT',
      path: target,
      headers: { Host: target, ...proxyAuthorization(proxy) },
      agent: false,
    });
    tunnel.once('connect', ({ statusCode }, socket) => {
      if (statusCode !== 200) {
        socket.destroy();
        const message = `The proxy ${proxy.host} refused the connection to ${target} with status ${statusCode}.`;
        return reject(new Failure(message, EXIT.retry));
      }
      const host = url.hostname.replace(/^\[|\]$/g, '');
      // An address is no server name (RFC 6066 section 3); the certificate is checked against `host` then.
      const name = isIP(host) ? {} : { servername: host };
      const secure = tls.connect({ socket, host, ...name, ALPNProtocols: ['http/1.1'] }, () => resolve(secure));
      secure.once('error', reject);
    });
    tunnel.once('error', reject);
    tunnel.end();
  });
}
