// Whether projects can have isolated networks, tried as at the start, in a temporary directory.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Config } from '../../core/config';
import { networkFailure, openNetworks, resolverOpenings } from '../../drivers/network/open';
import { networkObstacle } from '../../drivers/runtime/network_obstacle';
import type { Finding } from './finding';

const CHECK = 'networks of projects';
const SHARED = 'none: all projects share that of the host.';

export async function projectNetworks(config: Config): Promise<Finding> {
  const { network, networkBlock } = config;
  const found = await tryNetworks(networkBlock);
  if (network === 'shared') {
    const could =
      'reason' in found ? `This host cannot make them: ${found.reason}` : `With isolated, they ${found.works}`;
    return { check: CHECK, status: 'ok', detail: `${SHARED} NETWORK is shared. ${could}` };
  }
  const obstacle =
    network === 'auto'
      ? await networkObstacle(config.sandbox, path.join(config.runtimeDir, 'units'), networkBlock)
      : null;
  const reason = obstacle ?? ('reason' in found ? found.reason : null);
  if ('works' in found && reason === null)
    return { check: CHECK, status: found.hasWayOut ? 'ok' : 'warning', detail: found.works };
  return network === 'auto'
    ? { check: CHECK, status: 'warning', detail: `${SHARED} ${reason}` }
    : { check: CHECK, status: 'failed', detail: String(reason) };
}

async function tryNetworks(block: string): Promise<{ works: string; hasWayOut: boolean } | { reason: string }> {
  const directory = mkdtempSync(path.join(tmpdir(), 'platform-networks-'));
  try {
    const openings = { ...(await resolverOpenings()), services: [], databases: [1, 1] as const, allowed: [] };
    const memberOf = (): Promise<null> => Promise.resolve(null);
    const driver = await openNetworks({ directory, block, openings, memberOf, isTrial: true });
    const { facts } = driver.fingerprint();
    await driver.close();
    const hasWayOut = facts.way_out === true;
    const lacking = ', but without a way out: /dev/net/tun cannot be used, so builds cannot download';
    return { works: `work, made by ${driver.name}${hasWayOut ? '' : lacking}`, hasWayOut };
  } catch (error) {
    return { reason: networkFailure(error) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
