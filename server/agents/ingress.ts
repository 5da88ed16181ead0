// Opens the ingress and the cache of CDN zones: in a separate process, which serves on without this one, or here.
import { ingressDirectory, platformNames, serviceSocket } from '../../core/platform_names';
import { StartupError } from '../../core/startup_error';
import { inheritedNodeArguments } from '../../core/process/node_arguments';
import { operatorCertificate } from '../../drivers/certificates/operator';
import type { CdnDriver } from '../../engines/cdn';
import type { Certificate, IngressCallbacks, IngressDriver } from '../../engines/ingress/ingress';
import { openIngress } from '../../engines/ingress/http/http';
import type { ServedService } from '../../engines/ingress/platform_services';
import { openRemoteIngress } from '../../engines/ingress/process/remote';
import { outrankedDomains } from '../../models/domains/domain/outranked';
import { findChallenge, findServedCertificate } from '../../models/domains/certificate';
import { outboundOf } from '../platform/outbound';
import { proofOf } from '../platform/setup_proof';
import type { Platform } from '../platform/platform';
import type { PodRoutes } from '../../drivers/workload/kubernetes/pod_routes';
import { cdnLimits, edgeToken, openCdn, openFurtherCdn, storedZonesOf } from './cdn/cdn';
import type { CacheLease } from './cdn/cdn_lease';
import { ingressClusterOf, followCluster } from './workloads/followed_pods';
import type { RouterLines } from './router_lines';

/** Another process listens on INGRESS_PORT, or has the ingress of the data directory. */
export class PortTaken extends Error {}

interface OpenedIngress {
  ingress: IngressDriver;
  cdn: CdnDriver;
}

/** Pushes how to close each part as it opens it. @throws PortTaken, StartupError */
export async function openIngressOf(
  platform: Platform,
  lines: RouterLines,
  opened: (() => Promise<void> | void)[],
): Promise<OpenedIngress> {
  const { config } = platform;
  const callbacks = openCallbacks(platform, lines, opened, () => ingress?.forgetCertificate(null));
  const open = config.ingressProcess === 'separate' ? openSeparate : openHere;
  const { ingress, cdn }: OpenedIngress = await open(platform, callbacks, opened).catch(
    (error: NodeJS.ErrnoException) => {
      throw listenError(error, config);
    },
  );
  opened.push(() => ingress.close(config.shutdownGraceSeconds * 1000));
  await warnOfOutranked(platform);
  return { ingress, cdn };
}

/** Names that were a customer's before they were the platform's. */
async function warnOfOutranked({ config, database, log }: Platform): Promise<void> {
  const names = platformNames(config).map(({ hostname }) => hostname);
  if (names.length === 0) return;
  for (const { hostname, project_id } of await outrankedDomains(database, names))
    log.warn(
      { hostname, project_id },
      'a domain of a project is a name of the platform, which the ingress serves there: let the project delete it',
    );
}

interface FurtherIngress extends PodRoutes {
  cdn: CdnDriver;
}

/**
 * An ingress beside that of the process with the jobs, in this process, with a cache of its own. Pushes how to close
 * each part as it opens it.
 * @throws StartupError
 */
export async function openFurtherIngress(
  platform: Platform,
  lines: RouterLines,
  lease: CacheLease,
  opened: (() => Promise<void> | void)[],
): Promise<FurtherIngress> {
  const { config, secrets, log } = platform;
  const { ingressListen: host, ingressPort: port, ingressTlsPort: tlsPort, trustProxy, shutdownGraceSeconds } = config;
  const cdn = openFurtherCdn({ config, secrets, outbound: outboundOf(config), log }, lease);
  opened.push(() => cdn.close());
  const callbacks = openCallbacks(platform, lines, opened, () => ingress?.forgetCertificate(null));
  const own = new Set(platformNames(config).map(({ hostname }) => hostname));
  const parts: IngressCallbacks = { ...callbacks, edge: cdn.engine.edge, isServedElsewhere: (name) => own.has(name) };
  const ingress: IngressDriver = await openIngress({ host, port, tlsPort, trustProxy, parts }).catch(
    (error: NodeJS.ErrnoException) => {
      throw new StartupError(listenError(error, config).message);
    },
  );
  cdn.removeLeftovers();
  const followed = await withPods(ingress, config, log);
  opened.push(() => followed.ingress.close(shutdownGraceSeconds * 1000));
  return { ...followed, cdn: cdn.engine.driver };
}

/** @param onChange the certificate of the operator has changed */
function openCallbacks(
  { config, database, secrets }: Platform,
  { line }: RouterLines,
  opened: (() => Promise<void> | void)[],
  onChange: () => void,
): IngressCallbacks {
  const operators = operatorCertificate(config, onChange);
  if (operators) opened.push(() => operators.close());
  const certificate = async (host: string): Promise<Certificate | null> =>
    operators?.of(host) ??
    (await findServedCertificate(database, secrets, host)) ??
    operators?.lastResort(host) ??
    null;
  const challenge = async (token: string, host: string): Promise<string | null> =>
    proofOf(secrets, token) ?? (await findChallenge(database, token)) ?? (isDefaultName(config, host) ? '' : null);
  return { certificate, challenge, line };
}

/** Orders of tenants for such names would use up the limits of the whole domain at an authority. */
function isDefaultName({ appsDomain, cdnDomain }: Platform['config'], host: string): boolean {
  return [appsDomain, cdnDomain].some((domain) => host.endsWith(`.${domain}`));
}

async function openHere(
  { config, secrets, log }: Platform,
  callbacks: IngressCallbacks,
  opened: (() => Promise<void> | void)[],
): Promise<OpenedIngress> {
  const cdn = openCdn({ config, secrets, outbound: outboundOf(config), log });
  opened.push(() => cdn.close());
  const { ingressListen: host, ingressPort: port, ingressTlsPort: tlsPort, trustProxy } = config;
  const parts = { ...callbacks, edge: cdn.edge };
  // It ends with the servers for which requests would wait.
  const limits = { serviceAwayMs: 0 };
  const services = servicesOf(config);
  const ingress = await openIngress({ host, port, tlsPort, trustProxy, services, parts, limits });
  return { ingress: (await withPods(ingress, config, log)).ingress, cdn: cdn.driver };
}

async function withPods(ingress: IngressDriver, config: Platform['config'], log: Platform['log']): Promise<PodRoutes> {
  const cluster = ingressClusterOf(config);
  if (!cluster) return { ingress, known: Promise.resolve() };
  return followCluster(ingress, cluster, (message, error) => log.warn({ err: error }, message));
}

function openSeparate({ config, secrets, log }: Platform, callbacks: IngressCallbacks): Promise<OpenedIngress> {
  const { ingressListen: host, ingressPort: port, ingressTlsPort: tlsPort, trustProxy } = config;
  const { allowPrivateAddresses, dnsResolvers: resolvers, outboundCaFile: caFile } = config;
  const cdn = { ...cdnLimits(config), allowPrivateAddresses, resolvers, caFile, token: edgeToken(secrets) };
  const cluster = ingressClusterOf(config);
  const { execPath } = process;
  const script = require.resolve('./workloads/ingress_of_cluster');
  const program = { execPath, execArgv: inheritedNodeArguments(), script, cwd: process.cwd() };
  return openRemoteIngress({
    directory: ingressDirectory(config),
    settings: { host, port, tlsPort, trustProxy, services: servicesOf(config), ...(cluster && { cluster }), cdn },
    ...(cluster && { program }),
    callbacks,
    stored: storedZonesOf({ config, secrets, log }),
    log: (message, error) => log.warn({ err: error }, message),
  });
}

/** The servers of the platform itself, with the names of buckets and of their websites beside that of S3. */
function servicesOf(config: Platform['config']): ServedService[] {
  const { baseUrl, s3Domain, s3WebsiteDomain, appsDomain, cdnDomain } = config;
  // What belongs to applications as well would be theirs no more.
  const ofBuckets = [s3Domain, s3WebsiteDomain].filter((domain) => domain !== appsDomain && domain !== cdnDomain);
  return platformNames(config).map(({ hostname, service: name, port }) => {
    const hosts = [hostname, ...(name === 's3' ? ofBuckets.map((domain) => `*.${domain}`) : [])];
    const plainHosts = hosts.filter((host) => host === `*.${s3WebsiteDomain}`);
    const socket = serviceSocket(config, name) as string;
    return { name, hosts, plainHosts, port, baseUrl, socket };
  });
}

function listenError(error: NodeJS.ErrnoException, { ingressListen, ingressPort }: Platform['config']): Error {
  const port = `${ingressListen}:${ingressPort} (INGRESS_PORT)`;
  if (error.code === 'EADDRINUSE') return new PortTaken(`can't listen on ${port}: the port is taken`);
  if (error.code === 'EBUSY') return new PortTaken(`can't serve on ${port}: ${error.message}`);
  return new StartupError(`can't listen on ${port}: ${error.code ?? error.message}`);
}
