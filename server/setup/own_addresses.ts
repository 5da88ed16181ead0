// Addresses of the network interfaces of this machine.
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { isPublicAddress } from '../../core/protocols/addresses';
import { canonicalAddress } from './lookup';

const IPV6_TABLE = '/proc/net/if_inet6';
/** IFA_F_TEMPORARY and IFA_F_DEPRECATED of the kernel: the machine gives them up by itself. */
const PASSING = 0x01 | 0x20;

/** All but those of loopback. */
export function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ internal }) => !internal).map(({ address }) => canonicalAddress(address));
}

/** Those for records: public, and not for a while alone. */
export function lastingPublicAddresses(): string[] {
  const passing = passingAddresses();
  return ownAddresses().filter((address) => isPublicAddress(address) && !passing.has(address));
}

/** Lines such as `fe800000000000000000000000000001 02 40 20 80 eth0`: the fifth word has the flags. */
function passingAddresses(): ReadonlySet<string> {
  const lines = readTable()
    .split('\n')
    .map((line) => line.split(/\s+/));
  const found = lines.filter(([, , , , flags = '0']) => parseInt(flags, 16) & PASSING);
  return new Set(found.map(([hex = '']) => canonicalAddress(hex.replace(/.{4}(?=.)/g, '$&:'))));
}

function readTable(): string {
  try {
    return readFileSync(IPV6_TABLE, 'utf8');
  } catch {
    return '';
  }
}
