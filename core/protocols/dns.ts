// Questions to the public DNS: does a customer's domain point at us, is the proof of ownership there?
import { Resolver } from 'node:dns/promises';
import { DriverError } from '../driver';

const answerWithinMs = 5_000;

// Two tries in the time of one answer: c-ares waits a little longer at the second one.
const tries = { timeout: 1_500, tries: 2 };

const noSuchRecord = new Set(['ENOTFOUND', 'ENODATA']);
const badQuestion = new Set(['EBADNAME', 'EFORMERR', 'ERR_INVALID_ARG_VALUE']);

/**
 * Names and addresses come in lower case without a trailing dot, sorted; texts as they are, the strings of a record
 * joined (RFC 7208 section 3.3). No such name and no such record: an empty list.
 * Throws DriverError: `transient` when the servers fail or do not answer in 5 s, `invalid` when it is no name.
 */
export interface DnsQuestions {
  txt(name: string): Promise<string[]>;
  cname(name: string): Promise<string[]>;
  a(name: string): Promise<string[]>;
  aaaa(name: string): Promise<string[]>;
  ns(name: string): Promise<string[]>;
  /** `10 mx.example.com`, in the order of preference; `0 ` is a null MX (RFC 7505). */
  mx(name: string): Promise<string[]>;
}

/** `resolvers` are addresses, with a port where it is not 53 (`[::1]:5353` for IPv6). None: those of the system. */
export function dnsQuestions(options: { resolvers: string[] }): DnsQuestions {
  const ask = (name: string, question: Question) => queryResolvers(options.resolvers, name, question);
  return {
    txt: (name) => ask(name, async (resolver) => (await resolver.resolveTxt(name)).map((strings) => strings.join(''))),
    cname: (name) => ask(name, async (resolver) => normalizeNames(await resolver.resolveCname(name))),
    a: (name) => ask(name, async (resolver) => normalizeNames(await resolver.resolve4(name))),
    aaaa: (name) => ask(name, async (resolver) => normalizeNames(await resolver.resolve6(name))),
    ns: (name) => ask(name, async (resolver) => normalizeNames(await resolver.resolveNs(name))),
    mx: async (name) =>
      (await ask(name, async (resolver) => exchangesOf(await resolver.resolveMx(name)))).sort(byNumber),
  };
}

type Question = (resolver: Resolver) => Promise<string[]>;

// A resolver per question: cancel() ends every question of its resolver.
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
