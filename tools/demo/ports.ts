import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

/** A TCP port of the loopback interface that a server can listen on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * A port for UDP and TCP. TCP has fewer: a server cannot listen where a connection that a client has closed is still
 * remembered (TIME_WAIT), as thousands are after the demo's visitors.
 */
export async function freeDnsPort(): Promise<number> {
  for (;;) {
    const port = await freePort();
    const socket = createSocket('udp4');
    const isFree = await boundPort(socket, port).catch(() => null);
    socket.close();
    if (isFree) return port;
  }
}

/** @param port 0: any free one */
export async function boundPort(socket: Socket, port = 0): Promise<number> {
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  return socket.address().port;
}
