// Addresses of the network interfaces of this machine.
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { isPublicAddress } from '../../core/protocols/addresses';
import { canonicalAddress } from './lookup';

const LINK_LOCAL = /^(fe[89ab][0-9a-f]:|169\.254\.)/i;
const IPV6_TABLE = '/proc/net/if_inet6';
/** IFA_F_TEMPORARY and IFA_F_DEPRECATED of the kernel: the machine gives them up by itself. */
const PASSING = 0x01 | 0x20;

/** All but those of loopback, and of the link alone, at which nothing can listen without naming it. */
export function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all
    .filter(({ internal, address }) => !internal && !LINK_LOCAL.test(address))
    .map(({ address }) => canonicalAddress(address));
}

/** Those for records: public, and not for a while alone. */
export function lastingPublicAddresses(): string[] {
  return lastingAddresses().filter(isPublicAddress);
}

/**
 * Where the name server listens: at those of the records; behind NAT, at all. One that is gone tomorrow silences it.
 * @param published addresses of the records
 */
export function nameServerAddresses(published: readonly string[]): string[] {
  const own = lastingAddresses();
  const known = own.filter((address) => published.includes(address));
  return known.length ? known : own;
}

function lastingAddresses(): string[] {
  const passing = passingAddresses();
  return ownAddresses().filter((address) => !passing.has(address));
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
