// The networks of projects: opened where they are wanted, and where some are left of a time when they were.
import { join } from 'node:path';
import type { Config } from '../../core/config';
import { StartupError } from '../../core/startup_error';
import type { NetworkDriver } from '../../drivers/network';
import { listNetworkDirectories } from '../../drivers/network/network_directory';
import { networkFailure, openNetworks, resolverOpenings } from '../../drivers/network/open';
import { memberOfNetwork } from '../../drivers/runtime/network_members';
import { networkObstacle } from '../../drivers/runtime/network_obstacle';
import { driverContext } from '../../core/driver';
import type { RuntimeDriver } from '../../drivers/runtime';
import type { Platform } from '../platform/platform';

const FINGERPRINT_MS = 5_000;

interface OpenedNetworks {
  driver: NetworkDriver;
  /** Of units that start from now on. */
  isolated: 'required' | 'wanted' | 'no';
}

/** undefined: all units share the network of the host. @throws StartupError where the host cannot provide NETWORK */
export async function openNetworksOf({
  config,
  log,
}: Pick<Platform, 'config' | 'log'>): Promise<OpenedNetworks | undefined> {
  const isolated = await isolationOf(config, log);
  const isLeft = (await listNetworkDirectories(networksDirectory(config))).length > 0;
  if (isolated === 'no' && !isLeft) return undefined;
  try {
    return { driver: await openNetworks(await networkOptions(config)), isolated };
  } catch (error) {
    if (isolated === 'required')
      throw new StartupError(
        `NETWORK is isolated, but this host cannot give projects networks of their own: ${networkFailure(error)}`,
      );
    if (isolated === 'wanted') logShared(log, networkFailure(error));
    if (isLeft) log.warn({ err: error }, 'Networks of projects are left, and could not be opened to remove them.');
    return undefined;
  }
}

/** Says which networks projects have, once that is known. */
export async function logNetworks(
  { log }: Pick<Platform, 'log'>,
  runtime: RuntimeDriver,
  opened: OpenedNetworks | undefined,
): Promise<void> {
  if (!opened || opened.isolated === 'no') return;
  const { network, way_out } = (await runtime.fingerprint(driverContext(FINGERPRINT_MS))).facts;
  if (network === 'shared') return logShared(log, 'They need bubblewrap.');
  log.info({ network, way_out }, 'Each project has a network of its own.');
  if (!way_out) log.warn('Networks of projects have no way out: /dev/net/tun cannot be used. Builds cannot download.');
}

/** Whether each project gets an isolated network. */
async function isolationOf(config: Config, log: Platform['log']): Promise<OpenedNetworks['isolated']> {
  if (config.network !== 'auto') return config.network === 'isolated' ? 'required' : 'no';
  const obstacle = await networkObstacle(config.sandbox, unitsDirectory(config), config.networkBlock);
  if (obstacle !== null) logShared(log, obstacle);
  return obstacle === null ? 'wanted' : 'no';
}

function logShared(log: Platform['log'], reason: string): void {
  log.info({ reason }, 'All projects share the network of the host: networks of their own cannot be used here.');
}

/** What networks of this installation are made of. */
async function networkOptions(config: Config): Promise<Parameters<typeof openNetworks>[0]> {
  const { networkBlock, networkAllow } = config;
  const units = unitsDirectory(config);
  return {
    directory: networksDirectory(config),
    block: networkBlock,
    openings: {
      ...(await resolverOpenings()),
      services: servicePorts(config),
      databases: config.databasePorts,
      allowed: networkAllow,
    },
    memberOf: (name) => memberOfNetwork(units, name),
  };
}

/** Ports of servers that are public or require a key or a password. */
function servicePorts({ ingressPort, ingressTlsPort, s3Port, smtpPorts, registryPort }: Config): number[] {
  const ports = [ingressPort, ingressTlsPort ?? 0, s3Port, registryPort, ...smtpPorts.map(({ port }) => port)];
  return [...new Set(ports)].filter((port) => port > 0);
}

function networksDirectory({ runtimeDir }: Config): string {
  return join(runtimeDir, 'networks');
}

function unitsDirectory({ runtimeDir }: Config): string {
  return join(runtimeDir, 'units');
}
