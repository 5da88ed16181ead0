// Networks made by root: a network namespace for each, with a pair of interfaces to the host. The way in is the
// kernel's alone: the host reaches the loopback interface of the network by the network's address (rules.ts), so there
// is no helper to start, to feed or to lose. All steps may be repeated.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import ipaddr from 'ipaddr.js';
import { openQueue, type InTurn } from '../../core/in_turn';
import { run } from '../../core/process/command';
import { DriverError, driverContext } from '../../core/driver';
import type { DriverContext } from '../../core/driver';
import type { EnteredNetwork, NetworkDriver, NetworkMember } from '../network';
import type { NetworkLocation } from '../../core/outbound/network_location';
import { forwardRules, openPortForwards, type RootForwards } from './forwarded_ports';
import {
  installationTag,
  listNetworkDirectories,
  networkDirectoryOf,
  readNetworkNote,
  removeNetworkDirectory,
  writeNetworkNote,
} from './network_directory';
import {
  NAMESPACES,
  linkPrefixOf,
  namespacePrefixOf,
  openHostTable,
  type HostTable,
  type HostTableOptions,
} from './host_table';
import type { Peer } from './peer_rules';
import { entranceRules, memberRules, type Openings } from './rules';

interface RootNetworkOptions {
  directory: string;
  /** CIDR of IPv4 addresses, of which each network has four. */
  block: string;
  openings: Openings;
  /** A trial of the host's features: leaves no permanent change on the host. */
  isTrial?: boolean;
  checkRulesEveryMs?: number;
}

interface Root extends RootNetworkOptions {
  tag: string;
  table: HostTable;
  forwards: RootForwards;
  /** Slots of all networks that have a directory; null: not read yet. */
  slots: Set<number> | null;
  /** Names of networks that are whole: made by this process, which starts units in them one after another. */
  whole: Set<string>;
  /** One change at a time: they share rules and numbers. */
  inTurn: InTurn;
}

const ADDRESSES_EACH = 4;
const SLOT = 'slot';
/** Note of a unit's network: the name of its project's network. */
const WITHIN = 'within';
/** Unprivileged programs may bind ports below 1024: the namespace has no other listeners. */
const ALL_PORTS = 'echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start';
const CLOSE_MS = 10_000;

// $1 namespace, $2 interface, $3 address of the host, $4 address of the network, $5 rules of the network. A name
// without a namespace behind is left by a kill within `ip netns add`.
const MAKE = `set -e
ip netns exec "$1" true 2>/dev/null || { ip netns del "$1" 2>/dev/null || rm -f "${NAMESPACES}/$1"; ip netns add "$1"; }
if ! ip link show "$2" >/dev/null 2>&1 || ! ip -n "$1" link show eth0 >/dev/null 2>&1; then
  ip link del "$2" 2>/dev/null || :
  ip link add "$2" type veth peer name eth0 netns "$1"
fi
echo 1 > "/proc/sys/net/ipv4/conf/$2/forwarding"
echo 1 > "/proc/sys/net/ipv4/conf/$2/route_localnet"
ip addr replace "$3/30" dev "$2"
ip link set "$2" up
ip -n "$1" link set lo up
ip -n "$1" addr replace "$4/30" dev eth0
ip -n "$1" link set eth0 up
ip -n "$1" route replace default via "$3"
ip netns exec "$1" sh -c 'echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet
  echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6 2>/dev/null || :'
ip netns exec "$1" nft "$5"
`;

// $1 namespace, $2 interface
const REMOVE = `
ip link del "$2" 2>/dev/null || :
ip netns del "$1" 2>/dev/null || rm -f "${NAMESPACES}/$1"
[ ! -e "/sys/class/net/$2" ] && [ ! -e "${NAMESPACES}/$1" ]
`;

/** Loads the rules of the host. @throws DriverError where the host cannot have networks */
export async function openRootNetworks(options: RootNetworkOptions, ctx: DriverContext): Promise<NetworkDriver> {
  if (slotsOf(options) < 1) throw new DriverError('invalid', 'NETWORK_BLOCK is too small. Set a larger block.');
  const tag = installationTag(options.directory);
  const table = await openHostTable({ ...options, tag, contents: () => contentsOf(options) }, ctx);
  const forwards = openPortForwards(options.directory, table, (name) => insideOf(options, name));
  const root: Root = { ...options, tag, table, forwards, slots: null, whole: new Set(), inTurn: openQueue() };
  return {
    name: 'root',
    tag: root.tag,
    directory: root.directory,
    fingerprint: () => ({ healthy: true, reason: null, facts: { network: 'root', way_out: true } }),
    ensure: (name, context) => root.inTurn(() => ensure(root, name, context)),
    ensureMember: (name, member, context) => root.inTurn(() => ensureMember(root, name, member, context)),
    forwards: {
      ...forwards,
      set: (unitId, port, context) => root.inTurn(() => forwards.set(unitId, port, context)),
    },
    find: (name) => find(root, name),
    remove: (name, context) => root.inTurn(() => remove(root, name, context)),
    list: () => list(root),
    close: () => root.inTurn(() => close(root)),
  };
}

async function close(root: Root): Promise<void> {
  root.table.close();
  if ((await list(root)).length === 0) await root.table.remove(driverContext(CLOSE_MS));
}

async function ensure(root: Root, name: string, ctx: DriverContext): Promise<EnteredNetwork> {
  const directory = networkDirectoryOf(root.directory, name);
  const slot = Number((await readNetworkNote(directory, SLOT)) ?? (await takeSlot(root, directory)));
  const ends = addressesOf(root.block, slot);
  const namespace = namespaceOf(root.tag, name);
  const link = interfaceOf(root.tag, slot);
  if (!root.whole.has(name) || !isThere(namespace, link)) {
    root.whole.delete(name);
    await root.table.ensure(ctx);
    const rules = entranceRules(ends, root.openings);
    await run('sh', ['-c', MAKE, 'make', namespace, link, ends.host, ends.inside, rules], ctx);
    root.whole.add(name);
  }
  return enteredAt(namespace, ends.inside);
}

function enteredAt(namespace: string, address: string): EnteredNetwork {
  return {
    location: { address },
    command: ['nsenter', `--net=${path.join(NAMESPACES, namespace)}`, '--'],
    sandboxOptions: [],
  };
}

/** @throws DriverError where the network of the project is not there */
async function ensureMember(
  root: Root,
  name: string,
  member: NetworkMember,
  ctx: DriverContext,
): Promise<EnteredNetwork> {
  const project = find(root, member.within);
  if (project === null || !('address' in project))
    throw new DriverError('transient', 'The network of the project does not exist on this host.');
  const directory = networkDirectoryOf(root.directory, name);
  await writeNetworkNote(directory, WITHIN, member.within);
  const slot = Number((await readNetworkNote(directory, SLOT)) ?? (await takeSlot(root, directory)));
  const ends = { ...addressesOf(root.block, slot), project: project.address };
  const namespace = namespaceOf(root.tag, name);
  const rules = memberRules(ends, member, root.openings);
  await run('sh', ['-c', MAKE, 'make', namespace, interfaceOf(root.tag, slot), ends.host, ends.inside, rules], ctx);
  await run('ip', ['netns', 'exec', namespace, 'sh', '-c', ALL_PORTS], ctx);
  await root.table.addPeer({ from: ends.inside, to: project.address }, ctx);
  return enteredAt(namespace, ends.inside);
}

async function contentsOf(root: RootNetworkOptions): ReturnType<HostTableOptions['contents']> {
  const forwards = await forwardRules(root.directory, (name) => insideOf(root, name));
  return { peers: await peersOf(root), forwards };
}

/** Pairs of a unit's network and its project's network. */
async function peersOf(root: RootNetworkOptions): Promise<Peer[]> {
  const names = await listNetworkDirectories(root.directory);
  const peers = await Promise.all(
    names.map(async (name) => {
      const within = await readNetworkNote(networkDirectoryOf(root.directory, name), WITHIN);
      return within === null ? [] : (peerOf(root, name, within) ?? []);
    }),
  );
  return peers.flat();
}

function peerOf(root: RootNetworkOptions, name: string, within: string): Peer | null {
  const [from, to] = [insideOf(root, name), insideOf(root, within)];
  return from !== null && to !== null ? { from, to } : null;
}

// Tenants change nothing of it.
function isThere(namespace: string, link: string): boolean {
  return existsSync(path.join(NAMESPACES, namespace)) && existsSync(path.join('/sys/class/net', link));
}

function find(root: Root, name: string): NetworkLocation | null {
  const address = insideOf(root, name);
  return address === null || !existsSync(path.join(NAMESPACES, namespaceOf(root.tag, name))) ? null : { address };
}

function insideOf(root: RootNetworkOptions, name: string): string | null {
  const slot = slotIn(path.join(networkDirectoryOf(root.directory, name), SLOT));
  return slot === null ? null : addressesOf(root.block, slot).inside;
}

function slotIn(file: string): number | null {
  try {
    return Number(readFileSync(file, 'utf8').trim() || NaN);
  } catch {
    return null;
  }
}

async function remove(root: Root, name: string, ctx: DriverContext): Promise<void> {
  root.whole.delete(name);
  await root.forwards.removeInto(name, ctx);
  const directory = networkDirectoryOf(root.directory, name);
  const [slot, within] = [await readNetworkNote(directory, SLOT), await readNetworkNote(directory, WITHIN)];
  const peer = within === null ? null : peerOf(root, name, within);
  const link = interfaceOf(root.tag, slot === null ? -1 : Number(slot));
  await run('sh', ['-c', REMOVE, 'remove', namespaceOf(root.tag, name), link], ctx);
  await removeNetworkDirectory(directory);
  if (slot !== null) root.slots?.delete(Number(slot));
  // A later network with the same address must not inherit its permissions.
  if (within !== null) await root.table.removePeer(peer, ctx);
}

// Also of an installation whose directory was lost in the meantime.
async function list(root: Root): Promise<string[]> {
  const prefix = namespaceOf(root.tag, '');
  const namespaces = existsSync(NAMESPACES) ? readdirSync(NAMESPACES) : [];
  const named = namespaces.filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length));
  return [...new Set([...(await listNetworkDirectories(root.directory)), ...named])];
}

async function takeSlot(root: Root, directory: string): Promise<number> {
  const taken = (root.slots ??= await slotsTaken(root));
  const onHost = new Set(Object.values(os.networkInterfaces()).flatMap((all) => (all ?? []).map((one) => one.address)));
  // Two installations of a host that take one at the same time take different ones.
  const first = parseInt(root.tag, 16);
  for (let i = 0; i < slotsOf(root); i++) {
    const slot = (first + i) % slotsOf(root);
    if (taken.has(slot) || onHost.has(addressesOf(root.block, slot).host)) continue;
    await writeNetworkNote(directory, SLOT, String(slot));
    taken.add(slot);
    return slot;
  }
  throw new DriverError('capacity', 'All addresses of NETWORK_BLOCK are taken. Set a larger block.');
}

async function slotsTaken(root: Root): Promise<Set<number>> {
  const names = await listNetworkDirectories(root.directory);
  const notes = await Promise.all(names.map((name) => readNetworkNote(path.join(root.directory, name), SLOT)));
  return new Set(notes.filter((note) => note !== null).map(Number));
}

function slotsOf({ block }: RootNetworkOptions): number {
  return 2 ** (32 - ipaddr.IPv4.parseCIDR(block)[1]) / ADDRESSES_EACH;
}

function addressesOf(block: string, slot: number): { host: string; inside: string } {
  const first = ipaddr.IPv4.networkAddressFromCIDR(block).octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const at = (offset: number): string => {
    const number = first + slot * ADDRESSES_EACH + offset;
    return [24, 16, 8, 0].map((bits) => Math.floor(number / 2 ** bits) % 256).join('.');
  };
  return { host: at(1), inside: at(2) };
}

function namespaceOf(tag: string, name: string): string {
  return `${namespacePrefixOf(tag)}${name}`;
}

// The kernel limits names of interfaces to 15 characters.
function interfaceOf(tag: string, slot: number): string {
  return `${linkPrefixOf(tag)}${slot < 0 ? '-none' : slot.toString(36)}`;
}
