// Connections to a port of the loopback interface of a network.
import { connect, type Socket } from 'node:net';
import type { NetworkLocation } from '../network';

/** What a gate answers before it passes bytes on: the port took the connection, or it did not. */
const TAKEN = '+'.charCodeAt(0);
const LONGEST_WAIT_MS = 10_000;

/**
 * `connected` is called once the port has taken the connection: only from then on the caller reads. What is written
 * before is sent then. A failure is an `error` of the socket, ECONNREFUSED where nothing listens.
 */
export function connectInto(
  location: NetworkLocation,
  port: number,
  connected: (socket: Socket) => void,
  signal?: AbortSignal,
): Socket {
  if ('address' in location) {
    const socket = connect({ host: location.address, port, noDelay: true, signal });
    return socket.once('connect', () => connected(socket));
  }
  const socket = connect({ path: location.gate, signal });
  socket.write(`${port}\n`);
  const late = setTimeout(() => socket.destroy(refusal('ETIMEDOUT', port)), LONGEST_WAIT_MS);
  const onReadable = (): void => {
    const answer = socket.read(1) as Buffer | null;
    if (answer === null) return;
    clearTimeout(late);
    socket.off('readable', onReadable);
    if (answer[0] !== TAKEN) return void socket.destroy(refusal('ECONNREFUSED', port));
    connected(socket);
    socket.resume();
  };
  socket.on('readable', onReadable);
  socket.once('close', () => clearTimeout(late));
  return socket;
}

/** Whether something listens at the port. */
export function isPortTaken(location: NetworkLocation, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectInto(location, port, () => (socket.destroy(), resolve(true)));
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}

function refusal(code: string, port: number): Error {
  return Object.assign(new Error(`connect ${code} port ${port}`), { code });
}

/** Whether a gate answers; an address always does. */
export function isAnswering(location: NetworkLocation): Promise<boolean> {
  if ('address' in location) return Promise.resolve(true);
  return new Promise((resolve) => {
    const socket = connect({ path: location.gate });
    socket.once('connect', () => (socket.destroy(), resolve(true)));
    socket.once('error', () => resolve(false));
  });
}
