// Units in isolated networks may reach only the databases in the network of their project. A set in the table of the
// host holds the pairs of addresses (docs/decisions/0155).
import { chain, portsBetween } from './rule_text';

/** The network at `from` may open connections to databases in the one at `to`. */
export interface Peer {
  from: string;
  to: string;
}

const PEERS = 'peers';

export function peerSet(peers: readonly Peer[]): string {
  const elements = peers.length ? `elements = { ${peers.map(pairOf).join(', ')} }; ` : '';
  return `  set ${PEERS} { type ipv4_addr . ipv4_addr; ${elements}}`;
}

function pairOf({ from, to }: Peer): string {
  return `${from} . ${to}`;
}

/** Added to the rules of the host; repeatable. Fails where there are none. */
export function withPeer(table: string, peer: Peer): string {
  return `add element inet ${table} ${PEERS} { ${pairOf(peer)} }\n`;
}

/** Repeatable too. */
export function withoutPeer(table: string, peer: Peer): string {
  return `${withPeer(table, peer)}delete element inet ${table} ${PEERS} { ${pairOf(peer)} }\n`;
}

/** Matches what goes to databases, and what comes back, which opens nothing. `databases`: first and last port. */
export function betweenPeers(databases: readonly [number, number]): string[] {
  const ports = portsBetween(databases);
  return [
    `ip saddr . ip daddr @${PEERS} tcp dport ${ports}`,
    `ip daddr . ip saddr @${PEERS} tcp sport ${ports} tcp flags & (syn | ack) != syn`,
  ];
}

/** Exempts this traffic from connection tracking on the host, so it needs no limit (docs/decisions/0155). */
export function untrackedChain(interfaces: string, databases: readonly [number, number]): string {
  const lines = betweenPeers(databases).map((packets) => `iifname "${interfaces}" ${packets} notrack`);
  return chain('untracked', 'type filter hook prerouting priority raw; policy accept;', lines);
}
