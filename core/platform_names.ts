// Host names of the platform itself that its own ingress serves: those of the API with the dashboard, the S3 endpoint
// and the container registry. There is no setting for it: a name is served where clients are told to come to a port of
// the ingress with TLS.
import { join } from 'node:path';
import type { Config } from './config';
import { hostNameOf } from './protocols/domain_names';

type PlatformService = 'api' | 's3' | 'registry';

interface PlatformName {
  /** ASCII, lower case. */
  hostname: string;
  service: PlatformService;
  /** Of its URLs. */
  port: number;
}

type Names = Pick<
  Config,
  | 'ingressTlsPort'
  | 'baseUrl'
  | 's3Url'
  | 's3Port'
  | 'rgwUrl'
  | 'registryHost'
  | 'registryPort'
  | 'registryCertFile'
  | 'distributionUrl'
>;

const HTTPS_PORT = 443;

/** The names, each once: where two services have the same one, it belongs to the first. */
export function platformNames(config: Names): PlatformName[] {
  if (config.ingressTlsPort === null) return [];
  const { ingressTlsPort: tlsPort } = config;
  const names = new Map<string, PlatformName>();
  for (const [service, url] of urlsOf(config)) {
    const served = servedName(url, tlsPort);
    if (served !== null && !names.has(served.hostname)) names.set(served.hostname, { ...served, service });
  }
  return [...names.values()];
}

/** The names at which clients reach the platform, by whatever way: nobody else may have them, nor names below them. */
export function ownHostnames(config: Pick<Config, 'baseUrl' | 's3Url' | 'registryHost'>): string[] {
  const urls = [config.baseUrl, ...(config.s3Url === null ? [] : [config.s3Url]), `https://${config.registryHost}`];
  return urls.map((url) => hostNameOf(new URL(url).hostname)).filter((name) => name !== null);
}

/** The Unix socket at which the ingress reaches a service; null where it has no name that the ingress serves. */
export function serviceSocket(config: Names & Pick<Config, 'runtimeDir'>, service: PlatformService): string | null {
  const isServed = platformNames(config).some((name) => name.service === service);
  return isServed ? join(ingressDirectory(config), `${service}.sock`) : null;
}

/** Of the sockets between the ingress of a host and the other processes; of their user alone. */
export function ingressDirectory({ runtimeDir }: Pick<Config, 'runtimeDir'>): string {
  return join(runtimeDir, 'ingress');
}

function urlsOf(config: Names): [PlatformService, string][] {
  const urls: [PlatformService, string][] = [['api', config.baseUrl]];
  if (config.s3Url !== null && config.s3Port !== 0 && config.rgwUrl === null) urls.push(['s3', config.s3Url]);
  if (config.registryPort !== 0 && config.registryCertFile === null && config.distributionUrl === null)
    urls.push(['registry', `https://${config.registryHost}`]);
  return urls;
}

/** null where the URL leads elsewhere: to an address, to this machine alone, or to a proxy with a port or path. */
function servedName(url: string, tlsPort: number): Pick<PlatformName, 'hostname' | 'port'> | null {
  const parsed = new URL(url);
  const port = Number(parsed.port || HTTPS_PORT);
  if (parsed.protocol !== 'https:' || parsed.pathname !== '/' || ![HTTPS_PORT, tlsPort].includes(port)) return null;
  const hostname = hostNameOf(parsed.hostname);
  return hostname === null || hostname.endsWith('.localhost') ? null : { hostname, port };
}
