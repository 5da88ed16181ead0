// The port of the API while the service starts: who calls meanwhile is told to call again, instead of being refused as
// if there were no service. A start takes seconds, of which the restart of an upgrade should cost nobody a request.
import { createServer, type Server } from 'node:http';
import type { Config } from '../../core/config';
import { NOSNIFF } from '../../rest/send_text';
import { listenOrFail } from './listen';

/** `Refresh` is for browsers: a page that is loaded meanwhile comes by itself. */
const AGAIN = {
  ...NOSNIFF,
  ...{ 'Retry-After': '1', Refresh: '2', Connection: 'close', 'Content-Type': 'text/plain; charset=utf-8' },
};

/**
 * @returns a server whose port the service takes over
 * @throws StartupError for a taken port or an address that is not this machine's
 */
export async function openWaitingPort(config: Pick<Config, 'host' | 'port'>): Promise<Server> {
  const server = createServer((_, response) => void response.writeHead(503, AGAIN).end('The service starts.\n'));
  await listenOrFail(server, config);
  return server;
}
