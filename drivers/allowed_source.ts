// Allowed sources of a server, in the form that drivers use.
import { isIP } from 'node:net';
import { DriverError } from '../core/driver';

/** @returns the source. @throws DriverError invalid unless it is a network in CIDR notation */
export function requireNetwork(source: string): string {
  const [address = '', bits = '', ...rest] = source.split('/');
  const family = isIP(address);
  const isNetwork = family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
  if (isNetwork && rest.length === 0) return source;
  throw new DriverError('invalid', `The source ${JSON.stringify(source)} is not a network in CIDR notation.`);
}
