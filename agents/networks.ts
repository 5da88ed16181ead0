// The networks of projects: opened where they are wanted, and where some are left of a time when they were.
import { join } from 'node:path';
import type { Config } from '../core/config';
import { hasEntries } from '../core/directory';
import { StartupError } from '../core/startup_error';
import type { NetworkDriver } from '../drivers/network';
import { openNetworks, resolverOpenings } from '../drivers/network/open';
import { memberOfNetwork } from '../drivers/runtime/network_members';
import type { Platform } from '../platform/platform';

export interface OpenedNetworks {
  driver: NetworkDriver;
  isolated: boolean;
}

/** undefined: all units share the network of the host. @throws StartupError where NETWORK asks for what cannot be */
export async function openNetworksOf({
  config,
  log,
}: Pick<Platform, 'config' | 'log'>): Promise<OpenedNetworks | undefined> {
  const isolated = config.network === 'isolated';
  if (!isolated && !hasEntries(networksDirectory(config))) return undefined;
  try {
    const driver = await openNetworks(await networkOptions(config));
    const { facts } = driver.fingerprint();
    if (isolated) log.info(facts, 'Each project has a network of its own.');
    if (isolated && !facts.way_out)
      log.warn(facts, 'Networks of projects have no way out: /dev/net/tun cannot be used. Builds cannot download.');
    return { driver, isolated };
  } catch (error) {
    if (!isolated) {
      log.warn({ err: error }, 'Networks of projects are left, and could not be opened to remove them.');
      return undefined;
    }
    throw new StartupError(
      `NETWORK is isolated, but this host cannot give projects networks of their own: ${reasonOf(error)}`,
    );
  }
}

/** What networks of this installation are made of. */
export async function networkOptions(config: Config): Promise<Parameters<typeof openNetworks>[0]> {
  const { runtimeDir, networkBlock, networkAllow, ingressPort, ingressTlsPort } = config;
  const publicPorts = [ingressPort, ingressTlsPort].filter((port) => port !== null && port > 0) as number[];
  return {
    directory: networksDirectory(config),
    block: networkBlock,
    openings: { ...(await resolverOpenings()), publicPorts, allowed: networkAllow },
    memberOf: (name) => memberOfNetwork(join(runtimeDir, 'units'), name),
  };
}

function networksDirectory({ runtimeDir }: Config): string {
  return join(runtimeDir, 'networks');
}

function reasonOf(error: unknown): string {
  const { message, cause, stderr } = error as { message: string; cause?: unknown; stderr?: string };
  return [message, stderr, typeof cause === 'string' ? cause : ''].filter(Boolean).join(' ').trim();
}
