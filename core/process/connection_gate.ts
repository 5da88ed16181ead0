// Limits the connections that one client may hold at the servers of this process, and those of all clients. Nobody
// keeps others out by opening many: idle connections of the client that holds most are closed first.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { memoize } from '../memoize';
import { addressBlock, isPublicAddress } from '../protocols/addresses';
import { isOfIngress } from './ingress_connections';

interface GateOptions {
  /**
   * Connections of one public address. Private ones, such as a proxy or a node of a cluster, may have half of all.
   * Infinity, where all clients come through proxies: one address may have all.
   */
  perAddress: number;
  /** Connections of all; default: what the limit of open files allows. */
  total?: number;
  /** Whether a connection may end to make room. */
  isIdle(socket: Socket): boolean;
}

interface ConnectionGate {
  /**
   * Counts a new connection until it closes. Beyond the limit of its client, the client's oldest idle connection is
   * closed; beyond the total, one of the client that holds most, or of its own.
   * @returns false where no idle connection makes room: then it is not counted, and to be closed
   */
  admit(socket: Socket): boolean;
}

interface Client {
  gate: GateOptions;
  /** The oldest first. */
  sockets: Set<Socket>;
}

/** Clients of all gates of this process, by gate and address: they share the descriptors. */
const clients = new Map<string, Client>();
const releases = new WeakMap<Socket, () => void>();
let open = 0;
let gates = 0;
/** Searches for an idle connection that found none; null: among all gates. */
const vain = new Map<GateOptions | null, { size: number; until: number }>();
/** A search looks at all connections: floods of refused ones must not pay for one each. */
const VAIN_MS = 100;

/** Descriptors for everything else: files, databases, programs. */
const SHARE_OF_CONNECTIONS = 0.6;
const CONNECTIONS_MAX = 20_000;
const DESCRIPTORS_DEFAULT = 1024;
/** For `checkContinue`: one that looks on, and one that answers. */
const LISTENERS_OF_GATE = 2;
const EXPECTATION_FAILED = 417;

/** How many connections of clients fit into the limit of open files of this process. */
export const connectionsMax = memoize((): number => {
  const descriptors = Number(/^Max open files\s+(\d+)/m.exec(limitsOfProcess())?.[1] ?? DESCRIPTORS_DEFAULT);
  return Math.min(CONNECTIONS_MAX, Math.floor(descriptors * SHARE_OF_CONNECTIONS));
});

/** A gate for one or several servers; all gates of the process share the descriptors. */
export function openConnectionGate(gate: GateOptions): ConnectionGate {
  const number = (gates += 1);
  let own = 0;
  return {
    admit(socket) {
      if (releases.has(socket) || isOfIngress(socket)) return true;
      const address = socket.remoteAddress ?? '';
      const key = `${number} ${addressBlock(address)}`;
      const client = clients.get(key) ?? { gate, sockets: new Set() };
      const total = gate.total ?? CONNECTIONS_MAX;
      const ofPrivate = Math.max(gate.perAddress, Math.ceil(total / 2));
      const ofAddress = isPublicAddress(address) ? gate.perAddress : ofPrivate;
      const ofClient = ofAddress === Infinity ? Infinity : Math.min(ofAddress, Math.ceil(connectionsMax() / 2));
      if (client.sockets.size >= ofClient && !endIdle(client)) return false;
      const isFull = own >= total || open >= connectionsMax();
      if (isFull && !makeRoom(client, own >= total ? gate : null)) return false;
      clients.set(key, client);
      client.sockets.add(socket);
      [own, open] = [own + 1, open + 1];
      let isCounted = true;
      const release = (): void => {
        if (!isCounted) return;
        isCounted = false;
        [own, open] = [own - 1, open - 1];
        client.sockets.delete(socket);
        if (!client.sockets.size) clients.delete(key);
      };
      releases.set(socket, release);
      socket.once('close', release);
      return true;
    },
  };
}

function endIdle({ gate, sockets }: Client): boolean {
  for (const socket of sockets) {
    if (!gate.isIdle(socket)) continue;
    // Now, not at its close: the next one that comes in this turn has to find the room.
    releases.get(socket)?.();
    socket.destroy();
    return true;
  }
  return false;
}

/**
 * Closes an idle connection of a client with more of them, or one of its own.
 * @param of clients of this gate; null: of all gates
 */
function makeRoom(client: Client, of: GateOptions | null): boolean {
  const { size } = client.sockets;
  const last = vain.get(of);
  // One for a client with more would find less. One with fewer gets a search of its own: nobody keeps it out.
  if (last && performance.now() < last.until && size >= last.size) return false;
  const larger = [...clients.values()].filter(
    ({ gate, sockets }) => (of === null || gate === of) && sockets.size > size,
  );
  const isMade = larger.sort((one, other) => other.sockets.size - one.sockets.size).some(endIdle) || endIdle(client);
  if (isMade) vain.delete(of);
  else vain.set(of, { size, until: performance.now() + VAIN_MS });
  return isMade;
}

/**
 * Guards an HTTP server. A connection is idle while no request on it is being answered.
 * @param refuse answers a connection that is one too many, and closes it
 */
export function guardHttp(
  server: HttpServer,
  options: Omit<GateOptions, 'isIdle'>,
  refuse: (socket: Socket) => void = (socket) => void socket.destroy(),
): void {
  const answering = new WeakMap<Socket, ServerResponse | null>();
  const isIdle = (socket: Socket): boolean => {
    const response = answering.get(socket);
    return response === undefined || (response !== null && (response.writableFinished || response.destroyed));
  };
  const gate = openConnectionGate({ ...options, isIdle });
  const note = (request: { socket: Socket }, response: ServerResponse): void =>
    void answering.set(rawOf(request.socket), response);
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.prependListener(event, note);
  answerExpectations(server);
  // It belongs to another protocol from here on.
  server.prependListener('upgrade', ({ socket }: { socket: Socket }) => void answering.set(rawOf(socket), null));
  guardConnections(server, gate, refuse);
}

/** What Node does where nobody listens for these events: a listener that only looks on would leave them unanswered. */
function answerExpectations(server: HttpServer): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (server.listenerCount('checkContinue') > LISTENERS_OF_GATE) return;
    response.writeContinue();
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (_: IncomingMessage, response: ServerResponse) => {
    if (server.listenerCount('checkExpectation') === LISTENERS_OF_GATE) response.writeHead(EXPECTATION_FAILED).end();
  });
}

/**
 * Puts a gate before a server of any protocol.
 * @param refuse closes a connection that is one too many
 * @param admitted called for the others, before the server gets them
 */
export function guardConnections(
  server: Server,
  gate: ConnectionGate,
  refuse: (socket: Socket) => void,
  admitted: (socket: Socket) => void = () => undefined,
): void {
  const [serve] = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection').on('connection', (socket: Socket) => {
    if (!gate.admit(socket)) {
      // The server, which would listen for them, never gets it: a reset would end the process.
      socket.on('error', () => socket.destroy());
      return refuse(socket);
    }
    admitted(socket);
    serve?.call(server, socket);
  });
}

/** The connection below TLS, which `connection` of an HTTPS server reports. */
export function rawOf(socket: Socket & { _parent?: Socket | null }): Socket {
  return socket._parent ?? socket;
}

function limitsOfProcess(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}
