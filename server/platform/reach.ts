// Whether this machine can connect to an address, and from which of its own.
import { createSocket } from 'node:dgram';
import { connect, isIPv6 } from 'node:net';

const CONNECT_MS = 2_000;

export interface Reach {
  /** Address of this machine from which it connects; null: no way leads there. */
  from: string | null;
  /** Why it cannot connect, as a code of the system such as ECONNREFUSED; null: it can. */
  error: string | null;
}

/** Tries to connect once, and leaves no connection. Never throws. */
export async function reachOf(address: string, port: number): Promise<Reach> {
  const from = await sourceTowards(address, port);
  const error = await new Promise<string | null>((resolve) => {
    const socket = connect({ host: address, port, timeout: CONNECT_MS });
    const finish = (found: string | null): void => {
      socket.destroy();
      resolve(found);
    };
    socket.once('connect', () => finish(null));
    socket.once('timeout', () => finish('ETIMEDOUT'));
    socket.once('error', (failure: NodeJS.ErrnoException) => finish(failure.code ?? failure.message));
  });
  return { from, error };
}

/** The kernel chooses it when a socket of datagrams is connected, which sends nothing. */
function sourceTowards(address: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
    const finish = (from: string | null): void => {
      socket.close();
      resolve(from);
    };
    // A callback would get the error in the place of this event.
    socket.once('error', () => finish(null));
    socket.once('connect', () => finish(socket.address().address));
    socket.connect(port, address);
  });
}
