// The container registry of this host.
import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { Config } from '../../core/config';
import { serviceSocket } from '../../core/platform_names';
import { limits } from '../../core/limits';
import type { RegistryContent } from '../../core/protocols/registry_content';
import { type RegistryDriver, openEmbeddedRegistry } from '../../engines/registry';
import { openDistribution } from '../../drivers/distribution/driver';
import { registryContent } from '../../models/registries/registry/content';
import type { Platform } from '../platform/platform';
import { openRegistryTokens, registryTokenOptions, type OpenedRegistryTokens } from '../platform/registry_tokens';

const BYTES_PER_GB = 1_000_000_000;

interface OpenedRegistry {
  driver: RegistryDriver;
  close(): Promise<void>;
}

/** @returns null where REGISTRY_PORT is 0, or where the registry cannot listen: the log says why */
export async function openRegistry(platform: Platform): Promise<OpenedRegistry | null> {
  const { config, database, log } = platform;
  if (config.registryPort === 0) return null;
  const content = registryContent(database);
  const tokens = await openRegistryTokens(platform, content, registryTokenOptions(config));
  try {
    const driver = await openDriver(platform, content, tokens);
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

/**
 * On a cluster every worker issues tokens and takes notifications for the Distribution server, which needs no files.
 * @returns null elsewhere: the host opens its registry
 */
export async function openSharedRegistry(platform: Platform): Promise<OpenedRegistry | null> {
  const { workloads, distributionUrl } = platform.config;
  return workloads === 'kubernetes' && distributionUrl !== null ? openRegistry(platform) : null;
}

async function openDriver(
  { config, log }: Platform,
  content: RegistryContent,
  tokens: OpenedRegistryTokens,
): Promise<RegistryDriver> {
  const shared = {
    ...{ listen: config.registryListen, port: config.registryPort, certificate: certificateFiles(config) },
    // Behind proxies all clients have a few addresses: they count there.
    connectionsPerAddress: config.trustProxy > 0 ? Infinity : limits.connectionsPerAddress,
    ...{ ingressSocket: serviceSocket(config, 'registry'), graceMs: config.shutdownGraceSeconds * 1000 },
    ...{ content, tokens },
    log: (message: string, error: unknown) => log.error({ err: error }, message),
  };
  if (config.distributionUrl === null) {
    const sizeMax = config.registrySizeGb * BYTES_PER_GB;
    const urls = { url: registryUrl(config), nodesUrl: config.registryUrlForNodes };
    return openEmbeddedRegistry({ ...shared, directory: config.registryDir, ...urls, sizeMax });
  }
  await writeTokenCertificate(config.registryDir, tokens);
  if (config.distributionEventsKey === null)
    log.warn('DISTRIBUTION_EVENTS_KEY is not set: images are listed a minute late, and robots show no last use');
  const { distributionUrl, distributionEventsKey: eventsKey } = config;
  return openDistribution({ ...shared, distributionUrl, eventsKey });
}

/** For `rootcertbundle` of the server. The same key has many certificates: one that is there stays. */
async function writeTokenCertificate(directory: string, tokens: OpenedRegistryTokens): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, 'token.crt');
  const certificate = await tokens.certificate();
  const there = await readFile(file, 'utf8').catch(() => null);
  if (there === null || !isSameKey(there, certificate)) await writeFile(file, certificate, { mode: 0o644 });
}

function isSameKey(one: string, other: string): boolean {
  try {
    const [first, second] = [one, other].map((text) => new X509Certificate(text).publicKey);
    return first !== undefined && second !== undefined && first.equals(second);
  } catch {
    return false;
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
