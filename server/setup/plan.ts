// Names, records and settings of an installation that has a domain.
import { isIP, isIPv6 } from 'node:net';
import type { Config } from '../../core/config';
import { SetupError } from './setup_error';

export interface Choice {
  domain: string;
  /** Default: `apps.` and the domain. */
  appsDomain?: string;
  email: string | null;
  /** Public addresses of this machine; empty where nobody knows them. */
  addresses: readonly string[];
  acmeDirectory: string;
  acmeCaFile: string | null;
  /** The platform's own name server serves zones of customers, and `dns.` and the domain. */
  nameServer: boolean;
  /** Addresses of the interfaces on which the name server listens: another one may have the loopback. */
  listen: readonly string[];
  /** Those of visitors; others only in tests, which cannot have these. */
  ports: { http: number; tls: number };
}

export interface DnsRecord {
  name: string;
  type: 'A' | 'AAAA' | 'NS';
  value: string;
  /** What it is for. */
  purpose: string;
}

export interface Plan extends Choice {
  appsDomain: string;
  platformHost: string;
  /** Names that must lead to this machine; a wildcard is written as `*.apps.example.com`. */
  names: { name: string; purpose: string }[];
  records: DnsRecord[];
  settings: Record<string, string>;
}

/** Let's Encrypt. */
export const DEFAULT_DIRECTORY = 'https://acme-v02.api.letsencrypt.org/directory';
export const USUAL_PORTS = { http: 80, tls: 443 };
/** Where neither an option nor the network interfaces say the address. */
const UNKNOWN_ADDRESS = '<address of this machine>';

/** @throws SetupError where two names are in each other's way */
export function setupPlanOf(choice: Choice, config: Config): Plan {
  const { domain } = choice;
  const appsDomain = choice.appsDomain ?? `apps.${domain}`;
  const platformHost = `platform.${domain}`;
  const names = [
    { name: platformHost, purpose: 'dashboard and API' },
    { name: `*.${appsDomain}`, purpose: 'applications' },
    ...(hasStorage(config) ? [{ name: `s3.${domain}`, purpose: 'object storage' }] : []),
    ...(hasRegistry(config) ? [{ name: `registry.${domain}`, purpose: 'container images' }] : []),
    ...(hasMail(config) ? [{ name: `mail.${domain}`, purpose: 'mail' }] : []),
  ];
  for (const { name } of names.filter((one) => !one.name.startsWith('*.')))
    if (name === appsDomain || name.endsWith(`.${appsDomain}`))
      throw new SetupError(
        `${name} would be below ${appsDomain}, where applications choose their names. Choose another --apps-domain.`,
      );
  const plan = { ...choice, appsDomain, platformHost, names };
  return { ...plan, records: recordsOf(plan), settings: settingsOf(plan, config) };
}

/** Below which its name servers have their names. */
export function nameServerDomain(domain: string): string {
  return `dns.${domain}`;
}

/** Whether setup has given it a name server: another setup without the option does not take it away. */
export function hasNameServer({ baseUrl, dnsDomain }: Pick<Config, 'baseUrl' | 'dnsDomain'>): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname.startsWith('platform.') && dnsDomain === nameServerDomain(hostname.replace('platform.', ''));
}

function hasStorage({ s3Port, rgwUrl }: Config): boolean {
  return s3Port !== 0 && rgwUrl === null;
}

function hasRegistry({ registryPort, registryCertFile, distributionUrl }: Config): boolean {
  return registryPort !== 0 && registryCertFile === null && distributionUrl === null;
}

function hasMail({ smtpPorts }: Config): boolean {
  return smtpPorts.length > 0;
}

type Named = Omit<Plan, 'records' | 'settings'>;

function recordsOf({ names, addresses, domain, appsDomain, nameServer }: Named): DnsRecord[] {
  const known = addresses.length ? addresses : [UNKNOWN_ADDRESS];
  // Not among the names that are checked: once it is delegated, only the name server itself answers for it.
  const server = { name: `ns1.${nameServerDomain(domain)}`, purpose: 'name server' };
  const hosts = [...names, ...(nameServer ? [server] : [])].flatMap(({ name, purpose }) =>
    known.map((value): DnsRecord => ({ name, type: isIPv6(value) ? 'AAAA' : 'A', value, purpose })),
  );
  if (!nameServer) return hosts;
  // Not all of the domain of applications: they are reached also while the name server is not.
  const delegated = {
    [nameServerDomain(domain)]: 'DNS zones',
    [`_acme-challenge.${appsDomain}`]: 'one certificate for all applications',
  };
  return [
    ...hosts,
    ...Object.entries(delegated).map(([name, purpose]): DnsRecord => ({
      name,
      type: 'NS',
      value: server.name,
      purpose,
    })),
  ];
}

function settingsOf(plan: Named, config: Config): Record<string, string> {
  const { domain, appsDomain, platformHost, email, addresses, acmeDirectory, acmeCaFile, nameServer, ports } = plan;
  const port = ports.tls === USUAL_PORTS.tls ? '' : `:${ports.tls}`;
  // One socket of both families; without IPv6 in the records the usual one will do, also where the kernel has no IPv6.
  const everywhere = addresses.some((address) => isIP(address) === 6) ? '::' : '0.0.0.0';
  return {
    BASE_URL: `https://${platformHost}${port}`,
    APPS_DOMAIN: appsDomain,
    INGRESS_LISTEN: everywhere,
    INGRESS_PORT: String(ports.http),
    INGRESS_TLS_PORT: String(ports.tls),
    ACME_DIRECTORY: acmeDirectory,
    ...(email !== null && { ACME_EMAIL: email }),
    ...(acmeCaFile !== null && { ACME_CA_FILE: acmeCaFile }),
    ...(hasStorage(config) && { S3_URL: `https://s3.${domain}${port}` }),
    ...(hasRegistry(config) && { REGISTRY_HOST: `registry.${domain}` }),
    ...(hasMail(config) && { SMTP_HOST: `mail.${domain}`, SMTP_LISTEN: everywhere }),
    ...(nameServer && {
      DNS_DOMAIN: nameServerDomain(domain),
      DNS_LISTEN: plan.listen.join(','),
      ...(addresses.length && { DNS_IPS: addresses.join(',') }),
    }),
  };
}
