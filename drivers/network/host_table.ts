// The rules of the host for networks made by root: one table of nft(8) for each installation. It is loaded as a whole
// at the start, and again if another program has removed it. The permissions of a unit in an isolated network are one
// element of a set in the table, which is added and removed separately.
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { openQueue } from '../../core/in_turn';
import { repeatWork } from '../../core/process/background';
import { run } from '../../core/process/command';
import { driverContext } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import { isAlive, processOf } from '../../core/process/processes';
import { hostRoutes, uplinksOf } from './host_routes';
import { withForward, withPublished, withoutForward, type ForwardRule, type PublishedAddresses } from './forward_rules';
import { withPeer, withoutPeer, type Peer } from './peer_rules';
import { hostRules, withoutRules, type HostContents, type Openings } from './rules';

export interface HostTableOptions {
  /** Tag of the installation. */
  tag: string;
  directory: string;
  block: string;
  openings: Openings;
  isTrial?: boolean;
  /** Loads the peers and forwards from the notes on the disk. */
  contents(): Promise<Omit<HostContents, 'published'>>;
  /** Interval of checks whether another program has removed the rules. Default: ten seconds. */
  checkRulesEveryMs?: number;
}

export interface HostTable {
  /** Loads the rules again where they are gone. */
  ensure(ctx: DriverContext): Promise<void>;
  addPeer(peer: Peer, ctx: DriverContext): Promise<void>;
  /** Removes the peer of a network whose directory is gone; null: the peer is unknown. */
  removePeer(peer: Peer | null, ctx: DriverContext): Promise<void>;
  /** Replaces the forward of the port. Its note must be on the disk already. */
  addForward(forward: ForwardRule, ctx: DriverContext): Promise<void>;
  removeForward(port: number, ctx: DriverContext): Promise<void>;
  /** Replaces all published ports. They are not stored on the disk. */
  publish(published: PublishedAddresses, ctx: DriverContext): Promise<void>;
  /** Looks no longer. The rules stay. */
  close(): void;
  /** Removes the rules too. */
  remove(ctx: DriverContext): Promise<void>;
}

export const NAMESPACES = '/run/netns';
const INTERFACES = '/sys/class/net';
const CHECK_EVERY_MS = 10_000;
const CHECK_MS = 5_000;

/** @throws DriverError where the host has no packet filter for us */
export async function openHostTable(options: HostTableOptions, ctx: DriverContext): Promise<HostTable> {
  const table = tableOf(options.tag);
  let published: PublishedAddresses = new Map();
  // A full load from the disk runs before or after the change of an element, never concurrently.
  const inTurn = openQueue();
  const loadAll = (within: DriverContext): Promise<void> => load(options, published, within);
  const ensure = (within: DriverContext): Promise<void> =>
    inTurn(async () => {
      if (!(await isLoaded(table, within))) await loadAll(within);
    });
  const change = (rules: string | null, within: DriverContext): Promise<void> =>
    inTurn(() => (rules === null ? loadAll(within) : run('nft', [rules], within).then(noop, () => loadAll(within))));
  await loadAll(ctx);
  if (!options.isTrial) await removeAbandoned(table, ctx);
  const everyMs = options.checkRulesEveryMs ?? CHECK_EVERY_MS;
  // Whoever needs the rules ensures them first, and says why they are missing.
  const checking = options.isTrial
    ? null
    : repeatWork({ name: 'firewall_rules', everyMs }, () => ensure(driverContext(CHECK_MS)));
  return {
    ensure,
    addPeer: (peer, within) => change(withPeer(table, peer), within),
    removePeer: (peer, within) => change(peer && withoutPeer(table, peer), within),
    addForward: (forward, within) => change(withForward(table, forward), within),
    removeForward: (port, within) => change(withoutForward(table, port), within),
    publish: (addresses, within) => change(withPublished(table, (published = addresses)), within),
    close: () => void checking?.stop(),
    remove: (within) => inTurn(() => run('nft', [withoutRules(table)], within).then(noop)),
  };
}

const noop = (): void => undefined;

function tableOf(tag: string): string {
  return `platform_${tag}`;
}

/** Prefix of the names of an installation's interfaces. */
export function linkPrefixOf(tag: string): string {
  return `pl${tag}`;
}

/** Prefix of the names of an installation's network namespaces. */
export function namespacePrefixOf(tag: string): string {
  return `platform-${tag}-`;
}

async function load(options: HostTableOptions, published: PublishedAddresses, ctx: DriverContext): Promise<void> {
  const { tag, directory, block, openings, isTrial } = options;
  const uplinks = isTrial ? [] : uplinksOf(hostRoutes());
  // A host that already forwards keeps doing so; otherwise forwarding is limited to the networks of the installation.
  const closed = (await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim() === '0' ? uplinks : [];
  const names = { table: tableOf(tag), interfaces: `${linkPrefixOf(tag)}*`, block, closed, owner: ownerNow() };
  // An argument of a program has at most 128 KiB.
  const file = path.join(directory, `.rules.${process.pid}`);
  await writeFile(file, hostRules(names, { ...(await options.contents()), published }, openings), { mode: 0o600 });
  await run('nft', ['-f', file], ctx).finally(() => rm(file, { force: true }));
  // Response packets are forwarded only if forwarding is enabled on the interface by which they arrive.
  for (const link of uplinks) await writeFile(`/proc/sys/net/ipv4/conf/${link}/forwarding`, '1');
}

async function isLoaded(table: string, ctx: DriverContext): Promise<boolean> {
  const chain = await run('nft', ['list', 'chain', 'inet', table, 'forward'], ctx).catch(() => '');
  return chain.includes('jump');
}

/** Says which process has loaded a table: its number, its start, and the namespace in which the number is known. */
function ownerNow(): string {
  return ['owner', process.pid, processOf(process.pid)?.start, pidNamespace()].join('_');
}

function pidNamespace(): string {
  return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');
}

/**
 * Removes the rules of installations whose process was killed and which have no networks. Their next start loads the
 * rules again.
 */
async function removeAbandoned(own: string, ctx: DriverContext): Promise<void> {
  const chains = await run('nft', ['list', 'chains', 'inet'], ctx).catch(() => '');
  const owners = chains.matchAll(/^table inet platform_([0-9a-f]{6}) \{\n\tchain owner_(\d+)_(\d+)_(\d+) /gm);
  for (const [, tag = '', pid, start = '', namespace] of owners) {
    const isKnown = namespace === pidNamespace();
    if (tableOf(tag) === own || !isKnown || isAlive(Number(pid), start) || hasNetworks(tag)) continue;
    await run('nft', [withoutRules(tableOf(tag))], ctx).catch(noop);
  }
}

function hasNetworks(tag: string): boolean {
  const names = (directory: string): string[] => (existsSync(directory) ? readdirSync(directory) : []);
  return (
    names(NAMESPACES).some((name) => name.startsWith(namespacePrefixOf(tag))) ||
    names(INTERFACES).some((name) => name.startsWith(linkPrefixOf(tag)))
  );
}
