// Limits the share of an application's open requests that one client may hold.
import { isPublicAddress } from '../../core/protocols/addresses';
import type { IngressLimits } from './limits';
import type { ApplicationLoad } from './route_table';

/** Whether one more request of this client would exceed its share. */
export function isOverShare(load: ApplicationLoad, address: string, limits: IngressLimits): boolean {
  if (load.open * 2 < limits.applicationRequests) return false;
  return openByClient(load, address) >= limits.addressRequests;
}

export function openByClient(load: ApplicationLoad, address: string): number {
  return load.openByAddress.get(clientOf(address)) ?? 0;
}

/** Of all private addresses together, as of programs on this machine: each of them has as many as it likes. */
export function openByPrivate(load: ApplicationLoad): number {
  let sum = 0;
  for (const [client, open] of load.openByAddress)
    if (!isPublicAddress(client.includes(':') ? `${client}::` : client)) sum += open;
  return sum;
}

export function countIn(load: ApplicationLoad, address: string): void {
  const client = clientOf(address);
  load.open += 1;
  load.openByAddress.set(client, (load.openByAddress.get(client) ?? 0) + 1);
}

export function countOut(load: ApplicationLoad, address: string): void {
  const client = clientOf(address);
  const left = (load.openByAddress.get(client) ?? 0) - 1;
  load.open -= 1;
  if (left > 0) load.openByAddress.set(client, left);
  else load.openByAddress.delete(client);
}

// A single IPv6 customer has a whole /64, so addresses are counted per /64.
function clientOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head.split(':').filter(Boolean);
  const zeros = tail === undefined ? 0 : 8 - groups.length - tail.split(':').filter(Boolean).length;
  return [...groups, ...new Array<string>(Math.max(0, zeros)).fill('0')].slice(0, 4).join(':');
}
