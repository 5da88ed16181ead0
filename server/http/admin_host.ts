// Which names in Host the admin port answers to. A page that a browser in the network has open can be given the address
// of this machine (DNS rebinding); its requests still carry its own, public name.
import { isIP } from 'node:net';
import { hostname as machineName } from 'node:os';
import { getDomain } from 'tldts';
import { bareHost, isPrivateHost } from '../../core/protocols/addresses';

/** Names of networks beside those of isPrivateHost, and services of a cluster. */
const OF_NETWORK = /\.(?:lan|corp|home|intranet|private|svc)$/;
const OPTIONS = { extractHostname: false, validateHostname: false } as const;

/**
 * Addresses, names of private networks, and those of the domain of BASE_URL or of this machine. @param header value
 * of Host; clients without one are no browsers
 */
export function isAdminHost(header: string | undefined, baseUrl: string): boolean {
  if (header === undefined) return true;
  const name = bareHost(header.replace(/:\d+$/, ''));
  if (isIP(name) || isPrivateHost(name) || OF_NETWORK.test(name)) return true;
  const domain = getDomain(name, OPTIONS);
  const own = getDomain(new URL(baseUrl).hostname, OPTIONS);
  return (domain !== null && domain === own) || name === machineName().toLowerCase();
}
