// The container registry of this host.
import { isIP } from 'node:net';
import type { Config } from '../core/config';
import type { RegistryDriver } from '../drivers/registry';
import { openEmbeddedRegistry } from '../drivers/registry/embedded/driver';
import { registryContent } from '../models/registry/content';
import type { Platform } from '../platform/platform';
import { openRegistryTokens } from '../platform/registry_tokens';

const BYTES_PER_GB = 1_000_000_000;

export interface OpenedRegistry {
  driver: RegistryDriver;
  close(): Promise<void>;
}

/** @returns null where REGISTRY_PORT is 0, or where the registry cannot listen: the log says why */
export async function openRegistry(platform: Platform): Promise<OpenedRegistry | null> {
  const { config, database, log } = platform;
  if (config.registryPort === 0) return null;
  const content = registryContent(database);
  const tokens = await openRegistryTokens(platform, content, config.registryHost);
  try {
    const driver = await openEmbeddedRegistry({
      directory: config.registryDir,
      listen: config.registryListen,
      port: config.registryPort,
      certificate: certificateFiles(config),
      url: registryUrl(config),
      sizeMax: config.registrySizeGb * BYTES_PER_GB,
      content,
      tokens,
      log: (message, error) => log.error({ err: error }, message),
    });
    log.info({ port: driver.port, host: config.registryHost }, 'the container registry answers');
    const close = async (): Promise<void> => {
      await driver.close();
      await tokens.close();
    };
    return { driver, close };
  } catch (error) {
    await tokens.close();
    log.error({ err: error, port: config.registryPort }, 'the container registry cannot listen');
    return null;
  }
}

function certificateFiles({ registryCertFile: certFile, registryKeyFile: keyFile }: Config) {
  return certFile !== null && keyFile !== null ? { certFile, keyFile } : null;
}

/** Plain HTTP is for clients on this machine; elsewhere something with TLS stands in front, or the registry has it. */
function registryUrl(config: Config): string {
  const { registryHost } = config;
  const name = registryHost.replace(/:\d+$/, '');
  const isLocal = name === 'localhost' || (isIP(name) === 4 && name.startsWith('127.'));
  return `${isLocal && !certificateFiles(config) ? 'http' : 'https'}://${registryHost}`;
}
