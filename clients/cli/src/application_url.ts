// Where visitors reach an application.
import type { Session } from './session';

const INGRESS_PORT = '8000';

/**
 * The address of a host name that the platform gave. The API tells the name alone: a server with https has its
 * applications there too, and one on this computer at the usual port, unless SVC_INGRESS_PORT says another.
 */
export function applicationUrl({ server }: Session, hostname: unknown): string {
  const { SVC_INGRESS_PORT } = process.env;
  const scheme = server.startsWith('https:') ? 'https' : 'http';
  const port = SVC_INGRESS_PORT ?? (scheme === 'http' ? INGRESS_PORT : '');
  const isUsual = !port || port === (scheme === 'https' ? '443' : '80');
  return `${scheme}://${hostname}${isUsual ? '' : `:${port}`}`;
}
