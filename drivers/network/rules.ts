// Rules of nft(8), loaded as complete tables: an existing table is replaced atomically.
import { isIPv4 } from 'node:net';
import {
  answerFilter,
  forwardFilter,
  forwardObjects,
  type ForwardRule,
  type PublishedAddresses,
} from './forward_rules';
import { betweenPeers, peerSet, untrackedChain, type Peer } from './peer_rules';
import { REFUSED, chain, portsBetween, replaced, setOf } from './rule_text';

/** Name of the tables within networks. */
const TABLE = 'platform';

/**
 * Drops new connections of a network above a rate, and above a number of open ones (docs/decisions/0155): the kernel
 * keeps the connections of the whole host in one table, many for two minutes after their last packet. TCP and DNS
 * clients retry.
 */
const NOT_TOO_MANY = [
  'update @opened { ip saddr limit rate over 200/second burst 4000 packets } drop',
  'add @counted { ip saddr ct count over 8000 } drop',
];

/** Where no program of a tenant may connect to: private, shared, link-local (metadata), reserved, multicast. */
const NOT_PUBLIC = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];

export interface Openings {
  /** IPv4 addresses that answer DNS. */
  resolvers: readonly string[];
  /** Answers for a resolver of /etc/resolv.conf that listens on the loopback interface of the host; null: none does. */
  loopbackResolver: string | null;
  /** Ports of servers of the platform on this host that are for tenants too: in a network they are at 127.0.0.1. */
  services: readonly number[];
  /** First and last database port; units in isolated networks reach databases in the network of their project. */
  databases: readonly [number, number];
  /** Addresses or CIDRs that are reached although they are not public. */
  allowed: readonly string[];
}

/**
 * `interfaces`: pattern of the installation's interfaces. `closed`: interfaces that forward only because of the
 * networks, so other incoming packets are not forwarded, unless another program of the host translates (DNAT) them.
 */
interface HostNames {
  table: string;
  interfaces: string;
  block: string;
  closed: readonly string[];
  /** Name of an unused chain that identifies the process which loaded the rules. */
  owner: string;
}

/** The variable part of the host's rules. */
export interface HostContents {
  peers: readonly Peer[];
  forwards: readonly ForwardRule[];
  published: PublishedAddresses;
}

/**
 * Rules of the host: networks of an installation reach public addresses, but not the host, other networks or private
 * addresses.
 */
export function hostRules(
  { table, interfaces, block, closed, owner }: HostNames,
  { peers, forwards, published }: HostContents,
  openings: Openings,
): string {
  const services = setOf(openings.services);
  return replaced('inet', table, [
    peerSet(peers),
    '  set opened { type ipv4_addr; flags dynamic, timeout; timeout 1m; size 65535; }',
    '  set counted { type ipv4_addr; flags dynamic; size 65535; }',
    chain(owner, '', []),
    ...forwardObjects({ interfaces, block, arrivals: closed }, forwards, published),
    chain('forward', 'type filter hook forward priority filter; policy accept;', [
      ...forwardFilter(interfaces),
      `iifname "${interfaces}" jump way_out`,
      `oifname "${interfaces}" ct state established,related accept`,
      `oifname "${interfaces}" drop`,
      ...closingLines(closed),
    ]),
    chain('way_out', '', [
      'ct state established,related accept',
      ...betweenPeers(openings.databases).map((packets) => `oifname "${interfaces}" ${packets} accept`),
      ...NOT_TOO_MANY,
      `oifname "${interfaces}" goto refused`,
      ...destinations(openings),
      'accept',
    ]),
    untrackedChain(interfaces, openings.databases),
    hostChain(interfaces, block, openings),
    keptOnHost(block),
    ...services.map((ports) => serviceChain(`iifname "${interfaces}" ip daddr ${block} tcp dport ${ports}`)),
    chain('refused', '', REFUSED),
    chain('translated', 'type nat hook postrouting priority 100; policy accept;', [
      `ip saddr ${block} oifname != "${interfaces}" masquerade`,
    ]),
  ]);
}

/** Traffic from networks to the host itself: DNS and the configured services. */
function hostChain(interfaces: string, block: string, openings: Openings): string {
  const services = setOf(openings.services);
  return chain('to_host', 'type filter hook input priority filter; policy accept;', [
    `iifname != "${interfaces}" accept`,
    answerFilter,
    'ct state established,related accept',
    ...NOT_TOO_MANY,
    ...resolverRules(openings),
    ...services.map((ports) => `ip daddr != { ${block}, 127.0.0.0/8 } tcp dport ${ports} accept`),
    ...services.map((ports) => `ct status dnat ip daddr 127.0.0.1 tcp dport ${ports} accept`),
    'goto refused',
  ]);
}

// Packets to a removed network would leave by the default route. Blocks of installations may overlap.
function keptOnHost(block: string): string {
  const rule = `ip daddr ${block} oifname != "lo" oifname != "pl*" goto refused`;
  return chain('from_host', 'type filter hook output priority filter; policy accept;', [rule]);
}

function serviceChain(match: string): string {
  const rule = `${match} dnat ip to 127.0.0.1`;
  return chain('services', 'type nat hook prerouting priority -100; policy accept;', [rule]);
}

function closingLines(links: readonly string[]): string[] {
  if (!links.length) return [];
  return [
    'ct state established,related accept',
    'ct status dnat accept',
    // Packets to networks of other installations.
    'oifname "pl*" accept',
    `iifname { ${links.map((link) => `"${link}"`).join(', ')} } drop`,
  ];
}

/**
 * Rules inside a network: connections to its address `inside` are translated to the loopback interface. It reaches the
 * host at `host`.
 */
export function entranceRules({ host, inside }: { host: string; inside: string }, openings: Openings): string {
  return replaced('inet', TABLE, [
    chain('entrance', 'type nat hook prerouting priority -100; policy accept;', [
      `iifname "eth0" ip daddr ${inside} meta l4proto tcp dnat ip to 127.0.0.1`,
    ]),
    // Programs see a client of the loopback interface, as on the network of the host.
    chain('client', 'type nat hook input priority 100; policy accept;', [
      'iifname "eth0" ct status dnat snat ip to 127.0.0.1',
    ]),
    ...loopbackChains([
      ...resolverLines(openings),
      ...setOf(openings.services).map((ports) => `ip daddr 127.0.0.0/8 tcp dport ${ports} dnat ip to ${host}`),
    ]),
  ]);
}

/**
 * Rules inside a unit's network: only its port is reachable from outside, and database ports lead to the network at
 * `project`. The unit's own port takes precedence over database and service ports with the same number.
 */
export function memberRules(
  ends: { host: string; inside: string; project: string },
  { port, reached_at }: { port: number; reached_at: number },
  openings: Openings,
): string {
  return replaced('inet', TABLE, [
    chain('entrance', 'type nat hook prerouting priority -100; policy accept;', [
      `iifname "eth0" ip daddr ${ends.inside} tcp dport ${reached_at} dnat ip to 127.0.0.1:${port}`,
    ]),
    chain('client', 'type nat hook input priority 100; policy accept;', [
      'iifname "eth0" ct status dnat snat ip to 127.0.0.1',
    ]),
    chain('way_in', 'type filter hook input priority filter; policy accept;', [
      'iifname "lo" accept',
      'ct state established,related accept',
      'ct status dnat accept',
      'drop',
    ]),
    ...loopbackChains([
      `ip daddr 127.0.0.0/8 tcp dport ${port} accept`,
      ...resolverLines(openings),
      ...setOf(openings.services).map((ports) => `ip daddr 127.0.0.0/8 tcp dport ${ports} dnat ip to ${ends.host}`),
      `ip daddr 127.0.0.0/8 tcp dport ${portsBetween(openings.databases)} dnat ip to ${ends.project}`,
    ]),
  ]);
}

/** Rules of a rootless network, whose outbound traffic passes through a program with the rights of its user. */
export function outboundRules(openings: Openings): string {
  return replaced('inet', TABLE, [
    chain('way_out', 'type filter hook output priority filter; policy accept;', [
      'oifname "lo" accept',
      ...destinations(openings),
      'accept',
    ]),
    chain('refused', '', REFUSED),
    chain('way_in', 'type filter hook input priority filter; policy accept;', [
      'iifname "lo" accept',
      'ct state established,related accept',
      'drop',
    ]),
    ...loopbackChains(resolverLines(openings)),
  ]);
}

// Packets that leave a network from its loopback address are translated to an address of the network.
function loopbackChains(lines: string[]): string[] {
  if (!lines.length) return [];
  return [
    chain('from_loopback', 'type nat hook output priority -100; policy accept;', lines),
    chain('translated', 'type nat hook postrouting priority 100; policy accept;', [
      'oifname != "lo" ip saddr 127.0.0.0/8 masquerade',
    ]),
  ];
}

// Questions to a resolver that only the loopback interface of the host has.
function resolverLines({ loopbackResolver }: Openings): string[] {
  if (loopbackResolver === null) return [];
  return [`ip daddr 127.0.0.0/8 meta l4proto { tcp, udp } th dport 53 dnat ip to ${loopbackResolver}`];
}

export function withoutRules(table: string): string {
  return `table inet ${table} {}\ndelete table inet ${table}\n`;
}

function destinations(openings: Openings): string[] {
  const { allowed } = openings;
  return [
    'meta nfproto ipv6 goto refused',
    ...resolverRules(openings),
    ...(allowed.length ? [`ip daddr { ${allowed.join(', ')} } accept`] : []),
    `ip daddr { ${NOT_PUBLIC.join(', ')} } goto refused`,
  ];
}

function resolverRules({ resolvers }: Openings): string[] {
  const reached = resolvers.filter((one) => isIPv4(one) && !one.startsWith('127.'));
  if (!reached.length) return [];
  return [`ip daddr { ${reached.join(', ')} } meta l4proto { tcp, udp } th dport 53 accept`];
}
