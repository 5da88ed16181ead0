// Ports of the host that the kernel forwards into networks made by root (docs/decisions/0155). The nftables table of
// the host has two maps: `published` holds ports of 127.0.0.1, `forwarded` ports of public endpoints, which have two
// chains each: to_<port> translates (DNAT) a new connection, from_<port> checks each packet against allowed sources.
import { REFUSED, chain, setOf } from './rule_text';

/** `to`: address of the network. */
export interface ForwardRule {
  port: number;
  to: string;
  /** CIDRs of IPv4. */
  sources: readonly string[];
  /** Addresses of the host; null: all except those of the loopback interface. */
  addresses: readonly string[] | null;
}

/** `arrivals`: by which interfaces connections come that may be forwarded; empty: by all. */
interface ForwardPlace {
  interfaces: string;
  block: string;
  arrivals: readonly string[];
}

export type PublishedAddresses = ReadonlyMap<number, string>;

const PUBLISHED = 'published';
const FORWARDED = 'forwarded';
const SOURCES = 'forwarded_sources';
const OF_ENDPOINTS = 'ct status dnat ct original ip daddr != 127.0.0.0/8';
/** Chain that decides whether a packet of a public endpoint is accepted; the filters jump to it. */
const ENDPOINT_PACKETS = 'endpoint_packets';

/** Maps and chains of the table of the host. */
export function forwardObjects(
  { interfaces, block, arrivals }: ForwardPlace,
  forwards: readonly ForwardRule[],
  published: PublishedAddresses,
): string[] {
  const toHost = `fib daddr type local ip daddr != { ${block}, 127.0.0.0/8 } tcp dport vmap @${FORWARDED}`;
  const comesBy = setOf(arrivals.map((link) => `"${link}"`)).map((links) => `iifname ${links} `);
  return [
    ...forwards.flatMap((one) => [
      chain(`to_${one.port}`, '', [translation(one)]),
      chain(`from_${one.port}`, '', [allowance(one), ...REFUSED]),
    ]),
    map(PUBLISHED, 'inet_service : ipv4_addr', [...published].map(elementOf)),
    map(FORWARDED, 'inet_service : verdict', forwards.map(translated)),
    map(SOURCES, 'ipv4_addr . inet_service : verdict', forwards.map(allowed)),
    chain('arriving', 'type nat hook prerouting priority -100; policy accept;', [
      `iifname != "pl*" ${comesBy.join('')}${toHost}`,
    ]),
    chain('leaving', 'type nat hook output priority -100; policy accept;', [
      `ip daddr 127.0.0.1 dnat ip to tcp dport map @${PUBLISHED}`,
      toHost,
    ]),
    chain('from_loopback', 'type nat hook postrouting priority 100; policy accept;', [
      `ip saddr 127.0.0.0/8 oifname "${interfaces}" masquerade`,
    ]),
    // Connections of the host's programs; their output interface is not known yet.
    chain('to_endpoints', 'type filter hook output priority filter; policy accept;', [
      `ct direction original ${OF_ENDPOINTS} ip daddr . tcp dport vmap @${SOURCES}`,
    ]),
    chain(ENDPOINT_PACKETS, '', [
      'ct state related accept',
      `ct direction original ip daddr . tcp dport vmap @${SOURCES}`,
      `ct direction reply ip saddr . tcp sport vmap @${SOURCES}`,
      ...REFUSED,
    ]),
  ];
}

/** Rules for the forward chain. Connections out of networks may be translated by other programs. */
export function forwardFilter(interfaces: string): string[] {
  return [
    `oifname "${interfaces}" ct direction original ct status dnat goto ${ENDPOINT_PACKETS}`,
    `iifname "${interfaces}" ct direction reply ct status dnat goto ${ENDPOINT_PACKETS}`,
  ];
}

/** For the chain of what comes to the host from networks. */
export const answerFilter = `ct direction reply ${OF_ENDPOINTS} goto ${ENDPOINT_PACKETS}`;

/** Added to the rules of the host, or in place of what the port was; repeatable. */
export function withForward(table: string, one: ForwardRule): string {
  return [
    ...emptied(table, one.port),
    `add rule inet ${table} to_${one.port} ${translation(one)}`,
    `add rule inet ${table} from_${one.port} ${allowance(one)}`,
    ...REFUSED.map((rule) => `add rule inet ${table} from_${one.port} ${rule}`),
    `add element inet ${table} ${FORWARDED} { ${translated(one)} }`,
    `add element inet ${table} ${SOURCES} { ${allowed(one)} }`,
    '',
  ].join('\n');
}

/** Open connections are cut at their next packet. Repeatable. */
export function withoutForward(table: string, port: number): string {
  const refusals = REFUSED.map((rule) => `add rule inet ${table} from_${port} ${rule}`);
  return [...emptied(table, port), ...refusals, ''].join('\n');
}

/** Rules that replace all published ports. */
export function withPublished(table: string, published: PublishedAddresses): string {
  const elements = setOf([...published].map(elementOf)).map((all) => `add element inet ${table} ${PUBLISHED} ${all}`);
  return [`flush map inet ${table} ${PUBLISHED}`, ...elements, ''].join('\n');
}

function emptied(table: string, port: number): string[] {
  const chains = [`to_${port}`, `from_${port}`];
  return chains.flatMap((name) => [`add chain inet ${table} ${name}`, `flush chain inet ${table} ${name}`]);
}

function translation({ to, sources, addresses }: ForwardRule): string {
  const at = addresses === null ? [] : setOf(addresses).map((all) => `ip daddr ${all} `);
  return `ip saddr { ${sources.join(', ')} } ${at.join('')}dnat ip to ${to}`;
}

function allowance({ sources }: ForwardRule): string {
  return `ct original ip saddr { ${sources.join(', ')} } accept`;
}

function translated({ port }: ForwardRule): string {
  return `${port} : goto to_${port}`;
}

function allowed({ port, to }: ForwardRule): string {
  return `${to} . ${port} : goto from_${port}`;
}

function elementOf([port, address]: readonly [number, string]): string {
  return `${port} : ${address}`;
}

function map(name: string, type: string, elements: readonly string[]): string {
  return `  map ${name} { type ${type}; ${setOf(elements)
    .map((all) => `elements = ${all}; `)
    .join('')}}`;
}
