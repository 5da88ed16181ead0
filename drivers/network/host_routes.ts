// Routes of this host, read from the kernel.
import { readFileSync } from 'node:fs';

interface HostRoute {
  link: string;
  /** First address and mask, as numbers; both 0: the default route. */
  network: number;
  mask: number;
}

/** IPv4 routes; empty where the kernel does not expose them. */
export function hostRoutes(): HostRoute[] {
  try {
    return parseRoutes(readFileSync('/proc/net/route', 'utf8'));
  } catch {
    return [];
  }
}

/** Interfaces by which the host reaches the world. */
export function uplinksOf(routes: readonly HostRoute[]): string[] {
  return [...new Set(routes.filter(({ mask }) => mask === 0).map(({ link }) => link))];
}

/** A route, but the default one, to addresses of the block over an interface that is not of a network of projects. */
export function overlappingRoute(routes: readonly HostRoute[], block: string): string | null {
  const [address = '', bits = ''] = block.split('/');
  const [first, size] = [numberOf(address.split('.').map(Number)), maskOf(Number(bits))];
  const found = routes.find(({ link, network, mask }) => {
    const common = (mask & size) >>> 0;
    return mask !== 0 && !/^pl[0-9a-f]{6}/.test(link) && (network & common) >>> 0 === (first & common) >>> 0;
  });
  return found ? `${addressOf(found.network)}/${bitsOf(found.mask)} over ${found.link}` : null;
}

/** Iface Destination Gateway Flags RefCnt Use Metric Mask …; addresses have their bytes in reverse. */
export function parseRoutes(table: string): HostRoute[] {
  const lines = table.split('\n').slice(1);
  return lines.flatMap((line) => {
    const [link, network, , , , , , mask] = line.trim().split(/\s+/);
    return link && network && mask ? [{ link, network: reversed(network), mask: reversed(mask) }] : [];
  });
}

function reversed(hex: string): number {
  return numberOf((hex.match(/../g) ?? []).reverse().map((byte) => parseInt(byte, 16)));
}

function numberOf(bytes: number[]): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}

function maskOf(bits: number): number {
  return bits === 0 ? 0 : (0xffffffff << (32 - bits)) >>> 0;
}

function bitsOf(mask: number): number {
  return mask.toString(2).replaceAll('0', '').length;
}

function addressOf(number: number): string {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
}
