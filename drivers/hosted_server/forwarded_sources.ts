// Which public endpoints the kernel leads to by itself (docs/decisions/0155): those that are open to few addresses. To
// one that is open to many the access proxy leads, because it shares out the connections of the server between them.
import ipaddr from 'ipaddr.js';
import type { PortToForward } from '../runtime';

/** Prefixes of at least so many bits. */
const FEW = { ipv4: 24, ipv6: 64 };

/** null: nothing is to be forwarded. @param addresses of the host; null: all that are not of the loopback interface */
export function portToForward(
  port: number,
  sources: readonly string[],
  addresses: readonly string[] | null,
): PortToForward | null {
  const all = sources.map((source) => ipaddr.parseCIDR(source));
  if (!all.every(([address, bits]) => bits >= FEW[address.kind()])) return null;
  const ranges = sources.filter((source) => ipaddr.IPv4.isValidCIDR(source));
  const own = addresses?.filter((address) => ipaddr.IPv4.isValid(address)) ?? null;
  if (!ranges.length || own?.length === 0) return null;
  return { port, sources: withoutContained(ranges), addresses: own };
}

// A set of nft(8) does not take ranges that overlap.
function withoutContained(ranges: readonly string[]): string[] {
  const all = [...new Set(ranges.map(normalized))].map((range) => ipaddr.IPv4.parseCIDR(range));
  return all
    .filter(([address, bits]) => !all.some(([other, fewer]) => fewer < bits && address.match(other, fewer)))
    .map(([address, bits]) => `${address.toString()}/${bits}`);
}

function normalized(range: string): string {
  return `${ipaddr.IPv4.networkAddressFromCIDR(range).toString()}/${ipaddr.IPv4.parseCIDR(range)[1]}`;
}
