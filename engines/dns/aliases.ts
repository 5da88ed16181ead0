// Addresses of ALIAS targets: resolved with the resolvers of the host at the first query, cached, and refreshed in the
// background. While a target cannot be resolved, its last addresses stay in use.
import type { DnsQuestions } from '../../core/protocols/dns';
import type { AliasLookup } from './answer';
import { encodeAddress } from './wire/rdata';

const FRESH_MS = 60_000;
const KEPT_MS = 24 * 3_600_000;
const TARGETS_MAX = 10_000;

interface Entry {
  addresses: { a: Buffer[]; aaaa: Buffer[] } | null;
  /** In milliseconds of performance.now(). */
  readAt: number;
  reading: boolean;
}

/** @param questions sends queries to the resolvers */
export function openAliases(questions: Pick<DnsQuestions, 'a' | 'aaaa'>): AliasLookup {
  const entries = new Map<string, Entry>();
  const refresh = async (target: string, entry: Entry): Promise<void> => {
    entry.reading = true;
    try {
      const [a, aaaa] = await Promise.all([questions.a(target), questions.aaaa(target)]);
      entry.addresses = {
        a: a.map((address) => encodeAddress('A', address)),
        aaaa: aaaa.map((address) => encodeAddress('AAAA', address)),
      };
      entry.readAt = performance.now();
    } catch {
      if (performance.now() - entry.readAt > KEPT_MS) entry.addresses = null;
    } finally {
      entry.reading = false;
    }
  };
  return (target) => {
    const known = entries.get(target);
    const entry = known ?? { addresses: null, readAt: -Infinity, reading: false };
    if (!known) {
      if (entries.size >= TARGETS_MAX) entries.delete(entries.keys().next().value as string);
      entries.set(target, entry);
    }
    if (!entry.reading && performance.now() - entry.readAt > FRESH_MS) void refresh(target, entry);
    return entry.addresses;
  };
}
