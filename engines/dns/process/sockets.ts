// UDP and TCP, IPv4 and IPv6, on one port. TCP as RFC 7766 has it: several queries on a connection, answered in order,
// and an end for clients that are slow or silent.
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';
import { openConnectionGate } from '../../../core/process/connection_gate';
import type { Responder } from '../responder';

/** No query is as long. */
const QUERY_BYTES_MAX = 8_192;
const IDLE_MS = 10_000;
/** From the first byte of a message to its last one, however the bytes trickle. */
const MESSAGE_MS = 10_000;
const CONNECTIONS_MAX = 10_000;
const OF_ADDRESS_MAX = 500;
/** Connections that wait to be accepted; the kernel has a limit of its own (net.core.somaxconn). */
const BACKLOG = 4_096;
/** Bytes that wait to be sent to one client before its next query is read. */
const WAITING_BYTES_MAX = 1 << 20;

type Responds = Pick<Responder, 'respond'>;

export interface NameserverSockets {
  close(): Promise<void>;
}

/** @throws the errno of the first address that cannot be bound; nothing stays open then */
export async function openSockets(port: number, addresses: string[], responder: Responds): Promise<NameserverSockets> {
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

async function openUdp(port: number, address: string, { respond }: Responds): Promise<() => Promise<void>> {
  const socket: UdpSocket = createSocket({
    type: address.includes(':') ? 'udp6' : 'udp4',
    ...(address.includes(':') && { ipv6Only: true }),
    recvBufferSize: 4 << 20,
    // Addresses come from the kernel: the usual look-up would only put off each response to a later turn.
    lookup: (host, _, done) => done(null, host, 4),
  });
  const respondTo = (message: Buffer, from: string): Buffer | null => {
    const response = respondSafely(respond, message, from, 'udp');
    return Buffer.isBuffer(response) ? response : null;
  };
  socket.on('message', (message, { address: from, port: fromPort }) => {
    // Nothing can be sent to port 0, which a forged datagram may come from.
    const isUsual = fromPort !== 0 && message.length <= QUERY_BYTES_MAX;
    const response = isUsual ? respondTo(message, from.split('%', 1)[0] as string) : null;
    // Without a callback: a client that is gone is no error of ours.
    if (response) socket.send(response, fromPort, from);
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

async function openTcp(port: number, address: string, responder: Responds): Promise<() => Promise<void>> {
  const sockets = new Set<Socket>();
  // Of a client with too many, the one that has been open for longest makes room.
  const gate = openConnectionGate({ perAddress: OF_ADDRESS_MAX, total: CONNECTIONS_MAX, isIdle: () => true });
  const server: Server = createServer({ noDelay: true }, (socket) => {
    if (!gate.admit(socket)) return void socket.destroy();
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serve(socket, responder);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: address, ipv6Only: address.includes(':'), backlog: BACKLOG }, () => {
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

function serve(socket: Socket, responder: Responds): void {
  const address = socket.remoteAddress ?? '';
  let waiting: Buffer = Buffer.alloc(0);
  let late: NodeJS.Timeout | undefined;
  const answerWaiting = (): void => {
    let message: Buffer | null = null;
    let hasTaken = false;
    socket.cork();
    while (socket.writableLength <= WAITING_BYTES_MAX && (message = takeMessage())) {
      hasTaken = true;
      const response = respondSafely(responder.respond, message, address, 'tcp');
      if (!response) return void socket.destroy();
      for (const part of Buffer.isBuffer(response) ? [response] : response) writeMessage(socket, part);
    }
    socket.uncork();
    if (hasTaken) late = clearTimeout(late) as undefined;
    if (socket.writableLength > WAITING_BYTES_MAX) socket.pause();
    else if (waiting.length) late ??= setTimeout(() => socket.destroy(), MESSAGE_MS);
  };
  destroyWhenSilent(socket);
  socket.on('close', () => clearTimeout(late));
  socket.on('drain', () => {
    socket.resume();
    answerWaiting();
  });
  socket.on('data', (chunk: Buffer) => {
    waiting = waiting.length ? Buffer.concat([waiting, chunk]) : chunk;
    answerWaiting();
  });
  function takeMessage(): Buffer | null {
    const length = waiting.length < 2 ? 0 : waiting.readUInt16BE(0);
    if (length > QUERY_BYTES_MAX) socket.destroy();
    if (waiting.length < 2 || waiting.length < 2 + length) return null;
    const message = waiting.subarray(2, 2 + length);
    waiting = waiting.subarray(2 + length);
    return message;
  }
}

function destroyWhenSilent(socket: Socket): void {
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  socket.on('error', () => socket.destroy());
}

function writeMessage(socket: Socket, message: Buffer): void {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length, 0);
  socket.write(Buffer.concat([length, message]));
}

/** A message that nobody foresaw ends in silence, never in the end of the server. */
function respondSafely(
  respond: Responds['respond'],
  message: Buffer,
  address: string,
  transport: 'udp' | 'tcp',
): Buffer | Buffer[] | null {
  try {
    return respond(message, address, transport);
  } catch {
    return null;
  }
}
