// Whether projects have networks of their own, tried as the start does, in a place of its own.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Config } from '../core/config';
import { openNetworks, resolverOpenings } from '../drivers/network/open';
import type { Finding } from './finding';

const CHECK = 'networks of projects';

export async function projectNetworks({ network, networkBlock }: Config): Promise<Finding> {
  if (network !== 'isolated')
    return { check: CHECK, status: 'ok', detail: 'none: all share that of the host (NETWORK)' };
  const directory = mkdtempSync(path.join(tmpdir(), 'platform-networks-'));
  try {
    const openings = { ...(await resolverOpenings()), publicPorts: [], allowed: [] };
    const memberOf = (): Promise<null> => Promise.resolve(null);
    const driver = await openNetworks({ directory, block: networkBlock, openings, memberOf });
    const { facts } = driver.fingerprint();
    await driver.close();
    if (facts.way_out) return { check: CHECK, status: 'ok', detail: `work, made by ${driver.name}` };
    const detail = 'work, but without a way out: /dev/net/tun cannot be used, so builds cannot download';
    return { check: CHECK, status: 'warning', detail };
  } catch (error) {
    return { check: CHECK, status: 'failed', detail: String((error as Error).message) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
