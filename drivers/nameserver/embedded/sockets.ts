// UDP and TCP, IPv4 and IPv6, on one port. TCP as RFC 7766 has it: several queries on a connection, answered in order,
// and an end for clients that are slow or silent.
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import type { Responder } from './responder';

const IDLE_MS = 10_000;
const CONNECTIONS_MAX = 10_000;
/** Bytes that wait to be sent to one client before its next query is read. */
const WAITING_BYTES_MAX = 1 << 20;

export interface NameserverSockets {
  close(): Promise<void>;
}

/** @throws the errno of the first address that cannot be bound; nothing stays open then */
export async function openSockets(port: number, addresses: string[], responder: Responder): Promise<NameserverSockets> {
  const opened: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => void (await Promise.all(opened.map((end) => end())));
  try {
    for (const address of addresses) {
      opened.push(await openUdp(port, address, responder));
      opened.push(await openTcp(port, address, responder));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { close };
}

async function openUdp(port: number, address: string, responder: Responder): Promise<() => Promise<void>> {
  const socket: UdpSocket = createSocket({
    type: address.includes(':') ? 'udp6' : 'udp4',
    ...(address.includes(':') && { ipv6Only: true }),
    recvBufferSize: 4 << 20,
    // Addresses come from the kernel: the usual look-up would only put off each response to a later turn.
    lookup: (host, _, done) => done(null, host, 4),
  });
  socket.on('message', (message, { address: from, port: fromPort }) => {
    const response = respondSafely(responder, message, from, 'udp');
    // Without a callback: a client that is gone is no error of ours.
    if (Buffer.isBuffer(response)) socket.send(response, fromPort, from);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(port, address, () => {
      socket.off('error', reject);
      socket.on('error', () => {});
      resolve();
    });
  });
  return () => new Promise((resolve) => socket.close(() => resolve()));
}

async function openTcp(port: number, address: string, responder: Responder): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serve(socket, responder);
  });
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: address, ipv6Only: address.includes(':') }, () => {
      server.off('error', reject);
      server.on('error', () => {});
      resolve();
    });
  });
  return () =>
    new Promise((resolve) => {
      for (const socket of sockets) socket.destroy();
      server.close(() => resolve());
    });
}

function serve(socket: Socket, responder: Responder): void {
  const address = socket.remoteAddress ?? '';
  let waiting: Buffer = Buffer.alloc(0);
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
  socket.on('drain', () => socket.resume());
  socket.on('data', (chunk: Buffer) => {
    waiting = waiting.length ? Buffer.concat([waiting, chunk]) : chunk;
    for (let message = takeMessage(); message; message = takeMessage()) {
      const response = respondSafely(responder, message, address, 'tcp');
      if (!response) return void socket.destroy();
      for (const part of Buffer.isBuffer(response) ? [response] : response) writeMessage(socket, part);
    }
    if (socket.writableLength > WAITING_BYTES_MAX) socket.pause();
  });
  function takeMessage(): Buffer | null {
    if (waiting.length < 2) return null;
    const length = waiting.readUInt16BE(0);
    if (waiting.length < 2 + length) return null;
    const message = waiting.subarray(2, 2 + length);
    waiting = waiting.subarray(2 + length);
    return message;
  }
}

function writeMessage(socket: Socket, message: Buffer): void {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length, 0);
  socket.write(Buffer.concat([length, message]));
}

/** A message that nobody foresaw ends in silence, never in the end of the server. */
function respondSafely(
  responder: Responder,
  message: Buffer,
  address: string,
  transport: 'udp' | 'tcp',
): Buffer | Buffer[] | null {
  try {
    return responder.respond(message, address, transport);
  } catch {
    return null;
  }
}
