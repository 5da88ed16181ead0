// Lets connections of visitors in, so many of one address and of all.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { openConnectionGate } from '../../../core/process/connection_gate';
import type { IngressState } from '../ingress_state';
import { isIdleVisitor } from './simple_connection';

/** @param sockets those that are open, for the end of the ingress @returns guards one of its servers */
export function openVisitorGate(ingress: IngressState, sockets: Set<Socket>): (server: Server) => void {
  const { connections, addressConnections } = ingress.limits;
  // Behind proxies all visitors have a few addresses: they count there.
  const perAddress = ingress.trustProxy > 0 ? Infinity : addressConnections;
  const gate = openConnectionGate({ perAddress, total: connections, isIdle: isIdleVisitor });
  return (server) => {
    const [serve] = server.listeners('connection') as ((socket: Socket) => void)[];
    server.removeAllListeners('connection').on('connection', (socket: Socket) => {
      if (!gate.admit(socket)) return void socket.destroy();
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
      serve?.call(server, socket);
    });
  };
}
