// Whether a host that supports isolated networks of projects should enable them by default.
import { hostRoutes, overlappingRoute } from '../network/host_routes';
import { driverContext } from '../../core/driver';
import { hasWayOut } from '../network/open';
import { closedChain } from '../network/packet_filter';
import type { ProbeOptions } from './host_probe';
import { unitsByNetwork } from './network_members';

const LIST_MS = 10_000;

/**
 * Why `auto` means the network of the host, before anything is tried; null: nothing is known against it.
 * @param units the directory of the runtime
 * @param block of addresses for networks
 */
export async function networkObstacle(
  sandbox: ProbeOptions['sandbox'],
  units: string,
  block: string,
): Promise<string | null> {
  if (process.platform !== 'linux') return 'They need Linux.';
  if (sandbox === 'none') return 'They need bubblewrap, and SANDBOX is none.';
  // Builds would download nothing.
  if (!(await hasWayOut())) return 'They would have no way out: /dev/net/tun cannot be used.';
  const reason = process.getuid?.() === 0 ? await rootObstacle(block) : null;
  if (reason !== null) return reason;
  // An application that moved would not find its database, which runs on.
  const { onHost, inNetworks } = await unitsByNetwork(units);
  if (inNetworks > 0 || onHost === 0) return null;
  return (
    `${onHost} applications and databases run on the network of the host. At the first start of the service without ` +
    'them, or with NETWORK=isolated, each project gets its own.'
  );
}

async function rootObstacle(block: string): Promise<string | null> {
  const route = overlappingRoute(hostRoutes(), block);
  if (route !== null) return `NETWORK_BLOCK (${block}) overlaps with the route to ${route}. Set another block.`;
  const chain = await closedChain(driverContext(LIST_MS));
  if (chain === null) return null;
  return (
    `The packet filter of this host may drop traffic from these networks (${chain}). Accept forwarded and ` +
    `incoming traffic of interfaces named pl* there, then set NETWORK=isolated.`
  );
}
