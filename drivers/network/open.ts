// Chooses the network driver for this host, by trial.
import { mkdir, readFile } from 'node:fs/promises';
import { isIPv4, type Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import { driverContext } from '../../core/driver';
import type { NetworkDriver } from '../network';
import { openRootNetworks } from './as_root';
import { hasTun, openUserNetworks } from './as_user';
import { connectInto } from '../../core/outbound/network_location';
import type { Openings } from './rules';

export interface NetworkOptions {
  directory: string;
  block: string;
  openings: Openings;
  isTrial?: boolean;
  /** Interval of checks whether another program has removed the rules of root's networks. Default: ten seconds. */
  checkRulesEveryMs?: number;
  memberOf(name: string): Promise<number | null>;
}

const TRIAL_MS = 15_000;
const TRIAL = 'trial-';
const NOTHING_LISTENS = 9;

/** @throws Error that says what the host lacks */
export async function openNetworks(options: NetworkOptions): Promise<NetworkDriver> {
  await mkdir(options.directory, { recursive: true, mode: 0o700 });
  const ctx = driverContext(TRIAL_MS);
  const networks = process.getuid?.() === 0 ? await openRootNetworks(options, ctx) : await openUserNetworks(options);
  for (const abandoned of await networks.list()) if (abandoned.startsWith(TRIAL)) await networks.remove(abandoned, ctx);
  const name = `${TRIAL}${randomBytes(4).toString('hex')}`;
  try {
    const { location } = await networks.ensure(name, ctx);
    // Refused by the network itself: the way in works.
    const answer = await new Promise<string>((resolve) => {
      const onConnected = (socket: Socket): void => (socket.destroy(), resolve('taken'));
      const onFailed = (error: NodeJS.ErrnoException): void => resolve(error.code ?? error.message);
      connectInto(location, NOTHING_LISTENS, { onConnected, onFailed }, ctx.signal);
    });
    if (answer !== 'ECONNREFUSED') throw new Error(`A connection into a network of its own ended with ${answer}.`);
    return networks;
  } finally {
    await networks.remove(name, driverContext(TRIAL_MS)).catch(() => undefined);
  }
}

/** Whether networks would have one, as far as this can be known without making one. */
export async function hasWayOut(): Promise<boolean> {
  return process.getuid?.() === 0 || hasTun();
}

/** Why there are no networks, for the operator. */
export function networkFailure(error: unknown): string {
  const { message, cause, stderr } = error as { message: string; cause?: unknown; stderr?: string };
  return [message, stderr, typeof cause === 'string' ? cause : '']
    .filter(Boolean)
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The resolvers of this host as an isolated network reaches them. */
export async function resolverOpenings(): Promise<Pick<Openings, 'resolvers' | 'loopbackResolver'>> {
  const own = await nameserversIn('/etc/resolv.conf');
  const isLocal = own.some((address) => address.startsWith('127.'));
  // If the host uses systemd-resolved, this file lists its upstream resolvers.
  const upstream = isLocal ? await nameserversIn('/run/systemd/resolve/resolv.conf') : [];
  const resolvers = [...own, ...upstream].filter((address) => !address.startsWith('127.'));
  return { resolvers, loopbackResolver: isLocal ? (resolvers[0] ?? null) : null };
}

async function nameserversIn(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return [...text.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, address = '']) => address).filter((one) => isIPv4(one));
}
