// Selects the public endpoints that the kernel forwards (docs/decisions/0155): those that are open to few addresses.
// For endpoints open to many, the access proxy is needed, which shares the connections of the server fairly.
import ipaddr from 'ipaddr.js';
import type { PortToForward } from '../runtime';

/** Minimum prefix lengths. */
const FEW = { ipv4: 24, ipv6: 64 };

/** null: nothing to forward. @param addresses of the host; null: all except those of the loopback interface */
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

// Sets of nft(8) reject overlapping ranges.
function withoutContained(ranges: readonly string[]): string[] {
  const all = [...new Set(ranges.map(normalized))].map((range) => ipaddr.IPv4.parseCIDR(range));
  return all
    .filter(([address, bits]) => !all.some(([other, fewer]) => fewer < bits && address.match(other, fewer)))
    .map(([address, bits]) => `${address.toString()}/${bits}`);
}

function normalized(range: string): string {
  return `${ipaddr.IPv4.networkAddressFromCIDR(range).toString()}/${ipaddr.IPv4.parseCIDR(range)[1]}`;
}
