// Resolves the address of a repository, and checks whether the platform may connect to it. The host name is resolved
// only here; git is then pinned to the checked addresses, so that a second DNS response cannot redirect it (DNS
// rebinding).
import { gitUrl } from '../../core/formats/reference_formats';
import type { DriverContext } from '../../core/driver';
import type { Outbound } from '../../core/outbound';
import { abortable } from '../../core/outbound/socket';
import { SourceError } from '../source';

/** Settings of the operator (ALLOW_HTTP_GIT, ALLOW_LOCAL_GIT), and what resolves and judges hosts. */
export interface AddressRules {
  allowHttpGit: boolean;
  allowLocalGit: boolean;
  outbound: Outbound;
}

export interface RemoteEndpoint {
  scheme: 'https' | 'http' | 'ssh' | 'file';
  /** Address passed to git. */
  address: string;
  /** Without brackets; empty for file. */
  host: string;
  port: number;
  /** Checked IP addresses of the host. */
  ips: string[];
}

type UnresolvedEndpoint = Omit<RemoteEndpoint, 'ips'>;

const defaultPorts: Record<RemoteEndpoint['scheme'], number> = { https: 443, http: 80, ssh: 22, file: 0 };

/** @throws SourceError forbidden_address, unreachable */
export async function resolveEndpoint(
  address: string,
  rules: AddressRules,
  ctx: DriverContext,
): Promise<RemoteEndpoint> {
  return requireAllowed(parseAddress(address), rules, ctx);
}

/**
 * The same for an address named by a server: of a redirect, or of a large file.
 * @throws SourceError forbidden_address, unreachable
 */
export async function resolveWebEndpoint(
  address: string,
  rules: AddressRules,
  ctx: DriverContext,
): Promise<RemoteEndpoint> {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw new SourceError(
      'forbidden_address',
      'The host of the repository redirects or refers to an address that is not a plain http or https URL.',
    );
  return requireAllowed(webEndpoint(url), rules, ctx);
}

async function requireAllowed(
  named: UnresolvedEndpoint,
  rules: AddressRules,
  ctx: DriverContext,
): Promise<RemoteEndpoint> {
  if (named.scheme === 'file' && !rules.allowLocalGit)
    throw new SourceError(
      'forbidden_address',
      'This platform does not allow repositories on its own disk. Use an https or ssh address.',
    );
  if (named.scheme === 'http' && !rules.allowHttpGit)
    throw new SourceError(
      'forbidden_address',
      'This platform does not allow repositories over http without TLS. Use an https or ssh address.',
    );
  if (named.scheme === 'file') return { ...named, ips: [] };
  return { ...named, ips: await resolveHost(named.host, rules.outbound, ctx) };
}

/**
 * Whether a credential for one may be sent to the other: same host, port and scheme, or same host after an upgrade to
 * https.
 */
export function isSameOrigin(one: RemoteEndpoint, other: RemoteEndpoint): boolean {
  if (one.host.toLowerCase() !== other.host.toLowerCase()) return false;
  if (one.scheme === other.scheme) return one.port === other.port;
  return one.scheme === 'http' && other.scheme === 'https' && one.port === 80 && other.port === 443;
}

function parseAddress(address: string): UnresolvedEndpoint {
  if (gitUrl(address) === null)
    throw new SourceError(
      'forbidden_address',
      'The address is not that of a Git repository. Use an https or ssh address without a password.',
    );
  const scheme = /^([a-z]+):\/\//i.exec(address)?.[1]?.toLowerCase() as RemoteEndpoint['scheme'] | undefined;
  if (scheme === undefined)
    return {
      scheme: 'ssh',
      address,
      host: address.slice(address.indexOf('@') + 1, address.indexOf(':')),
      port: defaultPorts.ssh,
    };
  if (scheme === 'file') return { scheme, address, host: '', port: 0 };
  return { ...webEndpoint(new URL(address)), scheme };
}

// The normalised URL, so that git parses the same host from it.
function webEndpoint(url: URL): UnresolvedEndpoint {
  const scheme = url.protocol.slice(0, -1) as RemoteEndpoint['scheme'];
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return { scheme, address: url.href, host, port: Number(url.port) || defaultPorts[scheme] };
}

async function resolveHost(host: string, outbound: Outbound, { signal }: DriverContext): Promise<string[]> {
  const ips = await abortable(signal, outbound.names.resolveAll(host)).catch((error: unknown) => {
    const message = `The host ${host} could not be found. Check the address of the repository.`;
    throw Object.assign(new SourceError('unreachable', message), { cause: error });
  });
  if (ips.every((ip) => outbound.isAllowed(ip))) return ips;
  const message = `The host ${host} is in a private network. Repositories must have a public address.`;
  throw new SourceError('forbidden_address', message);
}
