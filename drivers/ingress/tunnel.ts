// A connection that is no longer HTTP, e.g. a WebSocket: bytes both ways until one side ends.
import { validateHeaderName, validateHeaderValue } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { AnswerHead } from './answer';
import type { Exchange } from './exchange';
import { closeExchange } from './response';
import { countBytes, countRequest } from './traffic';
import { releaseSocket } from './upstream';

export interface Tunnel {
  exchange: Exchange;
  client: Duplex;
  instance: Duplex;
  touchedMs: number;
}

/** Goes over from HTTP to bytes. Throws an Error for a head that cannot be passed on. */
export function openTunnel(exchange: Exchange, head: AnswerHead, rest: Buffer): void {
  const { gate, upgrade, line, upstream, response } = exchange;
  if (upgrade === null || line === null || upstream === null) return;
  const text = headText(head, upgrade.protocol ?? '');
  response.detachSocket(upgrade.socket as Socket);
  const tunnel: Tunnel = {
    exchange,
    client: upgrade.socket,
    instance: releaseSocket(line),
    touchedMs: performance.now(),
  };
  exchange.line = null;
  exchange.status = 101;
  exchange.answered = true;
  gate.running.delete(exchange);
  gate.tunnels.add(tunnel);
  upstream.tunnels.add(tunnel);
  countRequest(gate.book, exchange.owner, 101, performance.now() - exchange.startedMs);
  tunnel.client.write(text, 'latin1');
  relay(tunnel, tunnel.instance, tunnel.client, (bytes) => count(exchange, 0, bytes));
  relay(tunnel, tunnel.client, tunnel.instance, (bytes) => count(exchange, bytes, 0));
  pass(tunnel.client, rest, (bytes) => count(exchange, 0, bytes));
  pass(tunnel.instance, upgrade.head, (bytes) => count(exchange, bytes, 0));
  const finish = (): void => finishTunnel(tunnel);
  tunnel.client.on('close', finish);
  tunnel.instance.on('close', finish);
}

/** Ends both sides once what is on its way is written. */
export function endTunnel(tunnel: Tunnel): void {
  tunnel.client.end();
  tunnel.instance.end();
  setTimeout(() => (tunnel.client.destroy(), tunnel.instance.destroy()), 500).unref();
}

function headText(head: AnswerHead, protocol: string): string {
  let text = `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n`;
  for (let index = 0; index < head.headers.length; index += 2) {
    const [name, value] = [head.headers[index] as string, head.headers[index + 1] as string];
    validateHeaderName(name);
    validateHeaderValue(name, value);
    text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}

// What came with the heads.
function pass(to: Duplex, bytes: Buffer, counted: (bytes: number) => void): void {
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

function count(exchange: Exchange, received: number, sent: number): void {
  exchange.receivedBytes += received;
  exchange.sentBytes += sent;
  countBytes(exchange.gate.book, exchange.owner, received, sent);
}

function finishTunnel(tunnel: Tunnel): void {
  const { exchange } = tunnel;
  if (!exchange.gate.tunnels.delete(tunnel)) return;
  endTunnel(tunnel);
  exchange.upstream?.tunnels.delete(tunnel);
  closeExchange(exchange);
}
