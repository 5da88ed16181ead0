// Queries to the public DNS, to verify the domains of customers and their ownership.
import { Resolver } from 'node:dns/promises';
import { DriverError } from '../driver';

const answerWithinMs = 5_000;

// Two attempts within the timeout: c-ares waits slightly longer in the second one.
const tries = { timeout: 1_500, tries: 2 };

const noSuchRecord = new Set(['ENOTFOUND', 'ENODATA']);
const badQuestion = new Set(['EBADNAME', 'EFORMERR', 'ERR_INVALID_ARG_VALUE']);

/**
 * Names and addresses are in lower case without a trailing dot, sorted; texts are unmodified, with the strings of a
 * record joined (RFC 7208 section 3.3). A missing name or record type: an empty list. Throws DriverError: `transient`
 * when the servers fail or do not respond within 5 s, `invalid` for an invalid name.
 */
export interface DnsQuestions {
  txt(name: string): Promise<string[]>;
  cname(name: string): Promise<string[]>;
  a(name: string): Promise<string[]>;
  aaaa(name: string): Promise<string[]>;
  ns(name: string): Promise<string[]>;
  /** `10 mx.example.com`, in order of preference; `0 ` is a null MX (RFC 7505). */
  mx(name: string): Promise<string[]>;
}

/** `resolvers` are addresses, with a port where it is not 53 (`[::1]:5353` for IPv6). Empty: those of the system. */
export function dnsQuestions(options: { resolvers: string[] }): DnsQuestions {
  const query = (name: string, question: Question) => queryResolvers(options.resolvers, name, question);
  return {
    txt: (name) =>
      query(name, async (resolver) => (await resolver.resolveTxt(name)).map((strings) => strings.join(''))),
    cname: (name) => query(name, async (resolver) => normalizeNames(await resolver.resolveCname(name))),
    a: (name) => query(name, async (resolver) => normalizeNames(await resolver.resolve4(name))),
    aaaa: (name) => query(name, async (resolver) => normalizeNames(await resolver.resolve6(name))),
    ns: (name) => query(name, async (resolver) => normalizeNames(await resolver.resolveNs(name))),
    mx: async (name) =>
      (await query(name, async (resolver) => exchangesOf(await resolver.resolveMx(name)))).sort(byNumber),
  };
}

type Question = (resolver: Resolver) => Promise<string[]>;

// A resolver per query: cancel() aborts all queries of its resolver.
async function queryResolvers(servers: string[], name: string, question: Question): Promise<string[]> {
  const resolver = new Resolver(tries);
  if (servers.length > 0) resolver.setServers(servers);
  const timer = setTimeout(() => resolver.cancel(), answerWithinMs);
  try {
    return (await question(resolver)).sort();
  } catch (error) {
    return throwDnsError(name, error);
  } finally {
    clearTimeout(timer);
  }
}

function throwDnsError(name: string, error: unknown): string[] {
  const code = (error as NodeJS.ErrnoException).code ?? 'unknown';
  if (noSuchRecord.has(code)) return [];
  if (badQuestion.has(code)) throw new DriverError('invalid', `${name} is not a valid DNS name.`);
  throw new DriverError('transient', `The DNS servers did not answer about ${name} (${code}).`);
}

function exchangesOf(records: { priority: number; exchange: string }[]): string[] {
  return records.map(({ priority, exchange }) => `${priority} ${exchange.toLowerCase().replace(/\.$/, '')}`);
}

function byNumber(a: string, b: string): number {
  return parseInt(a, 10) - parseInt(b, 10);
}

function normalizeNames(names: string[]): string[] {
  return names.map((name) => name.toLowerCase().replace(/\.$/, ''));
}
