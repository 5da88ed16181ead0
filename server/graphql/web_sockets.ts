// WebSockets at /graphql are opened, and closed with a reason, for clients of graphql-ws and of its predecessor
// subscriptions-transport-ws: browsers show a client why a WebSocket was closed, but not why a handshake was refused.
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import type { RestEntry } from '../../rest/exchange';

/** Of graphql-ws and of subscriptions-transport-ws. */
const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'];
const PATH = /^\/graphql\/?(?:\?|$)/i;
/** "Subprotocol not acceptable" in the protocol of graphql-ws, whose client does not try again then. */
const NOT_ACCEPTABLE = 4406;
/** At most 123 bytes (RFC 6455 section 5.5). */
const REASON = 'Subscriptions are server-sent events here (GraphQL over SSE): POST with Accept: text/event-stream.';
/** Until a client that does not close its side is cut off. */
const CLOSING_MS = 2_000;

/** Opens WebSockets at the address of the GraphQL face, and closes them with the reason. No other addresses. */
export function webSocketRefusal(
  done: (entry: RestEntry) => void,
): (request: IncomingMessage, socket: Duplex, head: Buffer, requestId: string) => boolean {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: 1024,
    handleProtocols: (offered) => PROTOCOLS.find((protocol) => offered.has(protocol)) ?? false,
  });
  return (request, socket, head, request_id) => {
    if (!PATH.test(request.url ?? '') || request.headers.upgrade?.toLowerCase() !== 'websocket') return false;
    const started = performance.now();
    sockets.handleUpgrade(request, socket, head, (ws) => {
      ws.on('error', () => ws.terminate());
      ws.close(NOT_ACCEPTABLE, REASON);
      const timer = setTimeout(() => ws.terminate(), CLOSING_MS);
      ws.once('close', () => clearTimeout(timer));
    });
    done({
      ...{ request, started, request_id, operation: 'graphql', status: 101 },
      ...{ identity: null, project: null, code: 'not_acceptable', cause: null },
    });
    return true;
  };
}
