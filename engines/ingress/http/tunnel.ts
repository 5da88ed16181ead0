// A connection after a protocol upgrade, e.g. a WebSocket: bytes in both directions until one side ends.
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ResponseHead } from './response_parser';
import type { ProxiedRequest } from './proxied_request';
import { finishProxying } from './response';
import { countBytes, countRequest } from '../traffic';
import { detachSocket } from '../upstream';

export interface Tunnel {
  proxied: ProxiedRequest;
  client: Duplex;
  instance: Duplex;
  touchedMs: number;
}

/** Switches from HTTP to raw bytes. Throws an Error for a head that cannot be forwarded. */
export function openTunnel(proxied: ProxiedRequest, head: ResponseHead, rest: Buffer): void {
  const { ingress, upgrade, connection, upstream } = proxied;
  if (upgrade === null || !connection?.socket || upstream === null) return;
  const text = headText(head, upgrade.protocol ?? '');
  upgrade.detach();
  const tunnel: Tunnel = {
    proxied,
    client: upgrade.socket,
    instance: detachSocket(connection, connection.socket),
    touchedMs: performance.now(),
  };
  proxied.connection = null;
  proxied.status = 101;
  proxied.answered = true;
  ingress.running.delete(proxied);
  ingress.tunnels.add(tunnel);
  upstream.tunnels.add(tunnel);
  if (proxied.site.service === null)
    countRequest(ingress.traffic, proxied.owner, 101, performance.now() - proxied.startedMs);
  tunnel.client.write(text, 'latin1');
  relay(tunnel, tunnel.instance, tunnel.client, (bytes) => count(proxied, 0, bytes));
  relay(tunnel, tunnel.client, tunnel.instance, (bytes) => count(proxied, bytes, 0));
  forwardEarlyBytes(tunnel.client, Buffer.from(rest), (bytes) => count(proxied, 0, bytes));
  forwardEarlyBytes(tunnel.instance, upgrade.head, (bytes) => count(proxied, bytes, 0));
  const finish = (): void => finishTunnel(tunnel);
  tunnel.client.on('close', finish);
  tunnel.instance.on('close', finish);
}

/** Ends both sides after pending writes. */
export function endTunnel(tunnel: Tunnel): void {
  tunnel.client.end();
  tunnel.instance.end();
  setTimeout(() => (tunnel.client.destroy(), tunnel.instance.destroy()), 500).unref();
}

function headText(head: ResponseHead, protocol: string): string {
  let text = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n`;
  for (let index = 0; index < head.headers.length; index += 2) {
    const [name, value] = [head.headers[index] as string, head.headers[index + 1] as string];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}

// Forwards bytes received together with the heads.
function forwardEarlyBytes(to: Duplex, bytes: Buffer, counted: (bytes: number) => void): void {
  if (bytes.length === 0) return;
  counted(bytes.length);
  to.write(bytes);
}

function relay(tunnel: Tunnel, from: Duplex, to: Duplex, counted: (bytes: number) => void): void {
  from.on('data', (chunk: Buffer) => {
    counted(chunk.length);
    tunnel.touchedMs = performance.now();
    if (!to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.on('end', () => to.end());
  from.on('error', () => to.destroy());
}

function count(proxied: ProxiedRequest, received: number, sent: number): void {
  proxied.receivedBytes += received;
  proxied.sentBytes += sent;
  if (proxied.site.service !== null) return;
  countBytes(proxied.ingress.traffic, proxied.owner, received, sent);
}

function finishTunnel(tunnel: Tunnel): void {
  const { proxied } = tunnel;
  if (!proxied.ingress.tunnels.delete(tunnel)) return;
  endTunnel(tunnel);
  proxied.upstream?.tunnels.delete(tunnel);
  finishProxying(proxied);
}
