// Limits the connections of visitors, by address and in total.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { guardConnections, openConnectionGate } from '../../../core/process/connection_gate';
import type { IngressState } from '../ingress_state';
import { isIdleVisitor } from './simple_connection';

/** @param sockets gets the open ones, for the end of the ingress @returns puts the gate before one of its servers */
export function openVisitorGate(ingress: IngressState, sockets: Set<Socket>): (server: Server) => void {
  const { connections, addressConnections } = ingress.limits;
  // Behind proxies all visitors have a few addresses: they count there.
  const perAddress = ingress.trustProxy > 0 ? Infinity : addressConnections;
  const gate = openConnectionGate({ perAddress, total: connections, isIdle: isIdleVisitor });
  const refuse = (socket: Socket): void => void socket.destroy();
  const admitted = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  };
  return (server) => guardConnections(server, gate, refuse, admitted);
}
