// Images of releases of this host: what they are made of, and where they go.
import path from 'node:path';
import type { Config } from '../../core/config';
import { EngineAway } from '../../core/driver';
import { openOutbound, type Outbound } from '../../core/outbound';
import { parseImageReference } from '../../core/protocols/image_reference';
import type { ImageAccess } from '../../drivers/image';
import { openReleaseImages } from '../../drivers/release_image/publish';
import type { ToolchainDriver } from '../../drivers/toolchain';
import type { RegistryDriver } from '../../engines/registry';
import type { HostDrivers } from '../../jobs/job';
import { outboundOf } from '../platform/outbound';

/** For servers of our own on this machine. */
export function openUnchecked(): Outbound {
  return openOutbound({ isAllowed: () => true, hostsFile: true, resolvers: [], caFile: null });
}

export function toolchainDirectory({ runtimeDir }: Config): string {
  return path.join(runtimeDir, 'toolchains');
}

export function releaseImagesOf(
  config: Config,
  registry: RegistryDriver | null,
  toolchains: ToolchainDriver,
): HostDrivers['openReleaseImages'] {
  const parts = {
    directory: path.join(config.runtimeDir, 'release_images'),
    base: { reference: config.releaseBaseImage, access: () => baseAccess(config, registry) },
    toolchains: {
      directory: path.resolve(toolchainDirectory(config)),
      ensure: toolchains.ensure,
    },
    outbound: outboundOf(config),
    unchecked: openUnchecked(),
    access: (...rights: Parameters<RegistryDriver['ownAccess']>) => required(registry).ownAccess(...rights),
  };
  return openReleaseImages(parts);
}

/** Any repository of this installation may have it: the operator has named it. */
async function baseAccess(config: Config, registry: RegistryDriver | null): Promise<ImageAccess> {
  const { host, repository } = parseImageReference(config.releaseBaseImage);
  if (host !== config.registryHost) return { credentials: null, local: null };
  return { credentials: null, local: await required(registry).pullAccess(repository) };
}

function required(registry: RegistryDriver | null): RegistryDriver {
  if (registry) return registry;
  throw new EngineAway('The container registry of this installation is not running.');
}
