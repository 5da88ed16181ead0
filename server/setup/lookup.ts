// What the public DNS says of a name: at several resolvers, and at the servers of its zone.
import { isIP, SocketAddress } from 'node:net';
import { Resolver } from 'node:dns/promises';
import { dnsQuestions } from '../../core/protocols/dns';

/** Cloudflare, Google and Quad9. */
export const PUBLIC_RESOLVERS = ['1.1.1.1', '8.8.8.8', '9.9.9.9'];

const CAA_TRIES = { timeout: 1_500, tries: 2 };
const AUTHORITATIVE_SERVERS_MAX = 4;

/** Addresses of a name, sorted; null where a resolver gave no answer. */
export type Answer = readonly string[] | null;

export interface CaaRecord {
  tag: string;
  value: string;
}

/** One answer for each resolver. */
export function addressesAt(resolvers: readonly string[], name: string): Promise<Answer[]> {
  return Promise.all(
    resolvers.map(async (resolver) => {
      const questions = dnsQuestions({ resolvers: [resolver] });
      try {
        const [a, aaaa] = await Promise.all([questions.a(name), questions.aaaa(name)]);
        return [...a, ...aaaa.map(canonicalAddress)].sort();
      } catch {
        return null;
      }
    }),
  );
}

/** What the servers of its zone say, which no cache delays; null where none of them answers. */
export async function authoritativeAddresses(resolvers: readonly string[], name: string): Promise<Answer> {
  const servers = await authoritativeServers(resolvers, name);
  const answers = await addressesAt(servers.slice(0, AUTHORITATIVE_SERVERS_MAX), name);
  return answers.find((answer) => answer !== null) ?? null;
}

async function authoritativeServers(resolvers: readonly string[], name: string): Promise<string[]> {
  const questions = dnsQuestions({ resolvers: [...resolvers] });
  for (const zone of ancestorsOf(name)) {
    const servers = await questions.ns(zone).catch(() => []);
    if (!servers.length) continue;
    const addresses = await Promise.all(servers.map((server) => questions.a(server).catch(() => [])));
    return addresses.flat();
  }
  return [];
}

/** The CAA records that count for a name: those of the nearest name above that has some (RFC 8659 section 3). */
export async function caaRecords(
  resolvers: readonly string[],
  name: string,
): Promise<{ at: string; records: CaaRecord[] }> {
  for (const at of ancestorsOf(name.replace(/^\*\./, ''))) {
    const records = await caaAt(resolvers, at);
    if (records.length) return { at, records };
  }
  return { at: name, records: [] };
}

async function caaAt(resolvers: readonly string[], name: string): Promise<CaaRecord[]> {
  const resolver = new Resolver(CAA_TRIES);
  resolver.setServers(resolvers);
  const found = await resolver.resolveCaa(name).catch(() => []);
  return found.flatMap((record) =>
    Object.entries(record)
      .filter(([tag]) => tag !== 'critical' && tag !== 'type')
      .map(([tag, value]) => ({ tag, value: String(value) })),
  );
}

/** `a.b.example.com`, `b.example.com`, `example.com`. */
function ancestorsOf(name: string): string[] {
  const labels = name.split('.');
  return labels.slice(0, -1).map((_, index) => labels.slice(index).join('.'));
}

/** One spelling for each address. @returns the text itself where it is no address */
export function canonicalAddress(text: string): string {
  return isIP(text) === 6 ? new SocketAddress({ address: text, family: 'ipv6' }).address : text;
}
