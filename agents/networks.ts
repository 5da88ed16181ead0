// The networks of projects: opened where they are wanted, and where some are left of a time when they were.
import { join } from 'node:path';
import type { Config } from '../core/config';
import { StartupError } from '../core/startup_error';
import type { NetworkDriver } from '../drivers/network';
import { listNetworkDirectories } from '../drivers/network/network_directory';
import { networkFailure, openNetworks, resolverOpenings } from '../drivers/network/open';
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
  if (!isolated && !(await listNetworkDirectories(networksDirectory(config))).length) return undefined;
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
      `NETWORK is isolated, but this host cannot give projects networks of their own: ${networkFailure(error)}`,
    );
  }
}

/** What networks of this installation are made of. */
export async function networkOptions(config: Config): Promise<Parameters<typeof openNetworks>[0]> {
  const { runtimeDir, networkBlock, networkAllow } = config;
  return {
    directory: networksDirectory(config),
    block: networkBlock,
    openings: {
      ...(await resolverOpenings()),
      services: servicePorts(config),
      databases: config.databasePorts,
      allowed: networkAllow,
    },
    memberOf: (name) => memberOfNetwork(join(runtimeDir, 'units'), name),
  };
}

/** Of servers that ask for a key or a password, or are there for everybody. */
function servicePorts({ ingressPort, ingressTlsPort, s3Port, smtpPorts, registryPort }: Config): number[] {
  const ports = [ingressPort, ingressTlsPort ?? 0, s3Port, registryPort, ...smtpPorts.map(({ port }) => port)];
  return [...new Set(ports)].filter((port) => port > 0);
}

function networksDirectory({ runtimeDir }: Config): string {
  return join(runtimeDir, 'networks');
}
