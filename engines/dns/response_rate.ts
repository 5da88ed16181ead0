// Response rate limiting: a client network without a valid cookie gets a limited number of UDP responses per second.
// Beyond the limit, every second response is truncated, so that an honest client retries over TCP; the others are
// dropped, which prevents reflection attacks.
import ipaddr from 'ipaddr.js';

const WINDOW_MS = 1_000;
/** Networks counted at a time; a larger number within a second is an attack with forged addresses. */
const NETWORKS_MAX = 100_000;

export type RateVerdict = 'answer' | 'truncate' | 'drop';

export interface ResponseRate {
  judge(address: string): RateVerdict;
}

/** @param perSecond responses per second for a /24 (IPv4) or /56 (IPv6) */
export function openResponseRate(perSecond: number): ResponseRate {
  let counts = new Map<string, number>();
  let windowEnd = 0;
  return {
    judge(address) {
      const now = performance.now();
      if (now >= windowEnd) {
        counts = new Map();
        windowEnd = now + WINDOW_MS;
      }
      const network = networkOf(address);
      const count = (counts.get(network) ?? 0) + 1;
      if (count > 1 || counts.size < NETWORKS_MAX) counts.set(network, count);
      if (count <= perSecond) return 'answer';
      return count % 2 ? 'truncate' : 'drop';
    },
  };
}

function networkOf(address: string): string {
  if (!address.includes(':')) return address.slice(0, address.lastIndexOf('.'));
  const bytes = ipaddr.parse(address).toByteArray();
  return bytes.slice(0, 7).join('.');
}
