// Public network addresses. Connections to user-supplied addresses are restricted to these.
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** All IPv6 addresses allocated by IANA so far; ipaddr.js considers some others unicast (`::7f00:1`). */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3') as [ipaddr.IPv6, number];

/** Neither private, loopback, link-local (where clouds keep their metadata), shared, reserved nor multicast. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || (parsed as ipaddr.IPv6).match(GLOBAL_IPV6);
}

/** Names that are local to a machine or a private network (RFC 6761, RFC 6762, RFC 8375, and ICANN of 2024). */
const PRIVATE_NAMES = /(?:^|\.)(?:localhost|localdomain|local|internal|home\.arpa)$/;

/**
 * Whether a host of a URL, or of host:port, is recognisably not public, in any notation of an address. Other names must
 * be checked after their resolution, at the connection.
 */
export function isPrivateHost(host: string): boolean {
  const given = bareHost(host);
  const name = isIP(given) ? given : (normalHost(given) ?? given);
  if (isIP(name)) return !isPublicAddress(name);
  return !name.includes('.') || PRIVATE_NAMES.test(name);
}

/** The address block of one customer: an IPv4 address, or the /64 of an IPv6 address. */
export function addressBlock(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${(parsed as ipaddr.IPv6).parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/** Without brackets and trailing dots, in lower case. */
export function bareHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.+$/, '');
}

/** The normal form of a host as in browsers: `0x7f.1` is 127.0.0.1. Null for an invalid host. */
export function normalHost(host: string): string | null {
  const url = `http://${isIP(host) === 6 ? `[${host}]` : host}/`;
  if (/[\s/?#@\\]/.test(host) || !URL.canParse(url)) return null;
  const { hostname, port } = new URL(url);
  return hostname === '' || port !== '' ? null : bareHost(hostname);
}

/** `host:port`, with brackets around an IPv6 address. Null for an invalid text. */
export function parseHostPort(text: string): { host: string; port: number } | null {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text);
  const host = match && normalHost(match[1] ?? match[2] ?? '');
  const port = Number(match?.[3]);
  return host && port > 0 && port < 65_536 ? { host, port } : null;
}
