// Many visitors at once, and slow ones: raw connections, on each of which several requests wait.
import { connect, type Socket } from 'node:net';

interface Crowd {
  port: number;
  host: string;
  target: string;
  connections: number;
  /** On each connection, at once. */
  requests: number;
  /** By turns. */
  codings: string[];
}

/** @returns how many answers had status 200. @throws Error where a connection ends before its last one */
export async function visitTogether(crowd: Crowd): Promise<number> {
  const each = Array.from({ length: crowd.connections }, () => visitOnOne(crowd));
  return (await Promise.all(each)).reduce((sum, count) => sum + count, 0);
}

function visitOnOne({ port, host, target, requests, codings }: Crowd): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const texts = Array.from({ length: requests }, (_, index) => {
      const last = index === requests - 1 ? 'Connection: close\r\n' : '';
      const coding = codings[index % codings.length];
      return `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAccept-Encoding: ${coding}\r\n${last}\r\n`;
    });
    const chunks: Buffer[] = [];
    socket.on('connect', () => socket.write(texts.join('')));
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => {
      const count = Buffer.concat(chunks).toString('latin1').split('HTTP/1.1 200 OK\r\n').length - 1;
      if (count === requests) resolve(count);
      else reject(new Error(`${count} of ${requests} answers`));
    });
  });
}

/** Asks, and reads nothing of the answer. */
export function visitWithoutReading(port: number, host: string, target: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.pause();
      socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, () => resolve(socket));
    });
    socket.on('error', reject);
  });
}
