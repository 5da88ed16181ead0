// A way to a server in a pod for clients of this host that cannot verify it: the certificate names the Service, and
// the clients of MariaDB compare that with the address that they connect to. The tunnel asks the server for TLS, as a
// client does within the protocol (mariadb.com/kb, "Connection", SSLRequest), and verifies the certificate before it
// passes on what proves the password. Packets of the login are numbered, and the request for TLS is one more.
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { duplexPair, type Duplex } from 'node:stream';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { DriverContext } from '../../../core/driver';
import type { Owner } from '../../hosted_server/server_directory';

export interface NetworkAddress {
  host: string;
  port: number;
  /** PEM. */
  authority: string;
  /** That its certificate names. */
  serverName: string;
}

const CLIENT_SSL = 0x0800;
const HEADER_BYTES = 4;
/** Of a login packet, which a request for TLS has alone. */
const CAPABILITY_BYTES = 32;
const [OK, ERROR] = [0x00, 0xff];
const LOGIN_MS = 10_000;
const KEEP_ALIVE_MS = 15_000;

/** A connection for a client in this process. `onCertificate`: gets that of the server, DER. */
export function openServerTunnel(
  at: NetworkAddress,
  onCertificate: (certificate: Buffer) => void,
  { signal }: DriverContext,
): Duplex {
  const [client, inner] = duplexPair();
  client.once('close', () => inner.destroy());
  void forward(inner, at, onCertificate, signal).then(
    () => client.destroy(),
    (error: Error) => client.destroy(error),
  );
  return client;
}

/** A socket for programs of `owner`, in a directory of their own, while `work` runs. */
export async function withTunnelSocket<T>(
  at: NetworkAddress,
  owner: Owner,
  work: (place: { socket: string; directory: string }) => Promise<T>,
  { signal }: DriverContext,
): Promise<T> {
  const directory = await mkdtemp(path.join(tmpdir(), 'platform-tunnel-'));
  const server = createServer((client) => {
    client.on('error', () => undefined);
    void forward(client, at, () => undefined, signal)
      .catch(() => undefined)
      .then(() => client.destroy());
  });
  try {
    const socket = path.join(directory, 'server.sock');
    await listen(server, socket);
    if (process.getuid?.() === 0) for (const one of [socket, directory]) await chown(one, owner.uid, owner.gid);
    return await work({ socket, directory });
  } finally {
    server.close();
    await rm(directory, { recursive: true, force: true });
  }
}

async function listen(server: Server, socket: string): Promise<void> {
  server.listen(socket);
  await once(server, 'listening');
}

/** Until either side ends. @throws Error where the server cannot be verified, or does not speak TLS */
async function forward(
  client: Duplex,
  at: NetworkAddress,
  onCertificate: (certificate: Buffer) => void,
  signal: AbortSignal,
): Promise<void> {
  const socket = connect({ host: at.host, port: at.port, noDelay: true });
  socket.setKeepAlive(true, KEEP_ALIVE_MS);
  let secure: TLSSocket | null = null;
  const abort = (): void => void (secure ?? socket).destroy();
  // Once what the client said last is sent.
  const end = (): void => (secure ?? socket).destroySoon();
  const late = setTimeout(() => socket.destroy(notReachable()), LOGIN_MS);
  client.once('close', end);
  signal.addEventListener('abort', abort, { once: true });
  try {
    secure = await logIn(client, socket, at, onCertificate);
    clearTimeout(late);
    client.pipe(secure).pipe(client);
    await Promise.race([once(secure, 'close'), once(client, 'close')]);
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', abort);
    end();
  }
}

/** Passes on the packets of the login, until the server has accepted or refused it. */
async function logIn(
  client: Duplex,
  socket: Socket,
  at: NetworkAddress,
  onCertificate: (certificate: Buffer) => void,
): Promise<TLSSocket> {
  const greeting = await readPacket(socket);
  // Such as that of a server with too many connections.
  if (greeting.readUInt8(HEADER_BYTES) === ERROR)
    throw Object.assign(new Error('the server refuses'), { code: `ER_${greeting.readUInt16LE(HEADER_BYTES + 1)}` });
  client.write(greeting);
  const login = await readPacket(client);
  login.writeUInt32LE(login.readUInt32LE(HEADER_BYTES) | CLIENT_SSL, HEADER_BYTES);
  const request = Buffer.concat([
    Buffer.alloc(HEADER_BYTES),
    login.subarray(HEADER_BYTES).subarray(0, CAPABILITY_BYTES),
  ]);
  request.writeUIntLE(CAPABILITY_BYTES, 0, 3);
  request.writeUInt8(login.readUInt8(3), 3);
  socket.write(request);
  const secure = connectTls({ socket, ca: at.authority, servername: at.serverName });
  await once(secure, 'secureConnect');
  onCertificate(secure.getPeerCertificate().raw);
  for (let packet = login; ; packet = await readPacket(client)) {
    secure.write(renumbered(packet, 1));
    const answer = await readPacket(secure);
    client.write(renumbered(answer, -1));
    if ([OK, ERROR].includes(answer.readUInt8(HEADER_BYTES))) return secure;
  }
}

async function readPacket(stream: Duplex): Promise<Buffer> {
  const header = await readBytes(stream, HEADER_BYTES);
  return Buffer.concat([header, await readBytes(stream, header.readUIntLE(0, 3))]);
}

/** @throws Error where the stream ends before */
async function readBytes(stream: Duplex, count: number): Promise<Buffer> {
  for (;;) {
    const chunk = stream.read(count) as Buffer | null;
    if (chunk?.length === count) return chunk;
    if (chunk !== null || stream.readableEnded || stream.destroyed) throw notReachable();
    await Promise.race([once(stream, 'readable'), once(stream, 'close')]);
  }
}

function renumbered(packet: Buffer, by: 1 | -1): Buffer {
  packet.writeUInt8((packet.readUInt8(3) + by) & 0xff, 3);
  return packet;
}

function notReachable(): Error {
  return Object.assign(new Error('the connection ended before the login'), { code: 'ECONNRESET' });
}
