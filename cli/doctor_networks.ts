// Whether projects can have networks of their own, tried as the start does, in a place of its own.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Config } from '../core/config';
import { networkFailure, openNetworks, resolverOpenings } from '../drivers/network/open';
import type { Finding } from './finding';

const CHECK = 'networks of projects';
const OFF = 'none: all share that of the host (NETWORK).';

export async function projectNetworks({ network, networkBlock }: Config): Promise<Finding> {
  const found = await tryNetworks(networkBlock);
  // Nobody has asked for them.
  if (network !== 'isolated') {
    const could =
      'reason' in found ? `This host cannot make them: ${found.reason}` : `With isolated, they ${found.works}`;
    return { check: CHECK, status: 'ok', detail: `${OFF} ${could}` };
  }
  if ('reason' in found) return { check: CHECK, status: 'failed', detail: found.reason };
  return { check: CHECK, status: found.hasWayOut ? 'ok' : 'warning', detail: found.works };
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
