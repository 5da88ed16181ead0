// Packet-filter rules of other programs on this host: each of their chains may drop packets that ours accept.
import { readFile } from 'node:fs/promises';
import { run } from '../../core/process/command';
import type { DriverContext } from '../../core/driver';

interface Chain {
  family: string;
  table: string;
  name: string;
  hook?: string;
  policy?: string;
}

const OWN_TABLE = /^platform_[0-9a-f]{6}$/;

/** The forward or input chain that drops packets by default; null: none that nft(8) lists. */
export async function closedChain(ctx: DriverContext): Promise<string | null> {
  const chains = await run('nft', ['-j', 'list', 'chains'], ctx).catch(() => '{"nftables":[]}');
  const older = await run('iptables-legacy', ['-S'], ctx).catch(() => '');
  return closedIn(chains) ?? ((await hasOlderTables()) ? closedOlder(older) : null);
}

/** Finds a chain that drops by its policy, or by a final reject rule, as in firewalld. */
export function closedIn(chains: string): string | null {
  const { nftables } = JSON.parse(chains) as { nftables: { chain?: Chain }[] };
  const found = nftables
    .flatMap(({ chain }) => chain ?? [])
    .filter(({ family, table }) => ['ip', 'inet'].includes(family) && !OWN_TABLE.test(table))
    .find(
      ({ table, hook, policy }) =>
        (hook === 'forward' || hook === 'input') && (policy === 'drop' || table === 'firewalld'),
    );
  return found ? `${found.family} ${found.table} ${found.name}` : null;
}

/** Finds a closed chain in the output of iptables-legacy. */
export function closedOlder(rules: string): string | null {
  const [, name] = /^-P (FORWARD|INPUT) DROP$/m.exec(rules) ?? [];
  return name ? `iptables ${name}` : null;
}

async function hasOlderTables(): Promise<boolean> {
  return (await readFile('/proc/net/ip_tables_names', 'utf8').catch(() => '')).includes('filter');
}
