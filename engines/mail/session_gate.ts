// Limits the sessions of a client at a mail server, so that nobody takes all.
import type { Socket } from 'node:net';
import type { SMTPServer, SMTPServerSession } from 'smtp-server';
import { guardConnections, openConnectionGate, rawOf } from '../../core/process/connection_gate';

interface Library {
  connections: Set<{ session: Partial<SMTPServerSession> }>;
  connect(socket: Socket, options: unknown): void;
}

/** @param perAddress those of one public address */
export function guardSessions(server: SMTPServer, perAddress: number): void {
  const sessions = new WeakMap<Socket, Partial<SMTPServerSession>>();
  const library = server as unknown as Library;
  const connect = library.connect.bind(library);
  library.connect = (socket, options) => {
    connect(socket, options);
    const newest = [...library.connections].at(-1);
    if (newest) sessions.set(rawOf(socket), newest.session);
  };
  // Before its login, and at the server of bounces, which has none, before its message: behind the address of an
  // office, silent sessions of one client would keep out the others.
  const isIdle = (socket: Socket): boolean => {
    const session = sessions.get(socket);
    return !session?.user && !session?.envelope?.mailFrom;
  };
  const gate = openConnectionGate({ perAddress, total: server.options.maxClients, isIdle });
  guardConnections(server.server, gate, (socket) => {
    socket.end('421 4.7.0 Too many sessions of this address. Try again later.\r\n', () => socket.destroySoon());
  });
}
