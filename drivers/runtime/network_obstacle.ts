// Whether a host that could give projects networks of their own should do so by itself.
import { hasWayOut } from '../network/open';
import type { ProbeOptions } from './host_probe';
import { unitsByNetwork } from './network_members';

/**
 * Why `auto` means the network of the host, before anything is tried; null: nothing is known against it.
 * @param units the directory of the runtime
 */
export async function networkObstacle(sandbox: ProbeOptions['sandbox'], units: string): Promise<string | null> {
  if (process.platform !== 'linux') return 'They need Linux.';
  if (sandbox === 'none') return 'They need bubblewrap, and SANDBOX is none.';
  // Builds would download nothing.
  if (!(await hasWayOut())) return 'They would have no way out: /dev/net/tun cannot be used.';
  // An application that moved would not find its database, which runs on.
  const { onHost, inNetworks } = await unitsByNetwork(units);
  if (inNetworks > 0 || onHost === 0) return null;
  return (
    `${onHost} applications and databases run on the network of the host. At the first start of the service without ` +
    'them, or with NETWORK=isolated, each project gets its own.'
  );
}
