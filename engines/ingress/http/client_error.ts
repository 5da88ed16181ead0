// Responses to connections that fail before there is a request: malformed HTTP, or headers that come too slowly.
import type { Duplex } from 'node:stream';
import { mintRequestId } from '../../../core/ids';
import { fixedPage, render } from '../pages';
import { isClosingAfterResponse } from './response';

export function refuseClient(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (isClosingAfterResponse(socket)) return; // a response is pending, and closes the connection
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
  const statuses: Record<string, [number, string]> = {
    HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
    ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
  };
  const [status, title] = statuses[error.code ?? ''] ?? [400, 'Bad Request'];
  const { headers, body } = render({ ...fixedPage('malformed'), status, title }, null, mintRequestId());
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${title}\r\n${lines.join('')}\r\n${body}`);
}
