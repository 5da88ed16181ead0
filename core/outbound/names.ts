// Names to addresses, through resolvers of our own: the system's look-up has four threads for the whole process, and a
// name server that does not answer would hold them all.
import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import { bareHost } from '../protocols/addresses';
import { OutboundError } from './trace';

export interface Names {
  /** Addresses of a host, IPv4 where there is one; never an empty list. @throws OutboundError */
  resolve(host: string): Promise<string[]>;
  /** All addresses, IPv4 first: for programs that are pinned to them and choose by themselves. @throws OutboundError */
  resolveAll(host: string): Promise<string[]>;
}

const TRIES = { timeout: 2_000, tries: 2 };
const NO_SUCH_NAME = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);

/** @param options.hostsFile names that the DNS does not know are looked for in the hosts file */
export function openNames(options: { resolvers: readonly string[]; hostsFile: boolean }): Names {
  const resolver = new Resolver(TRIES);
  if (options.resolvers.length) resolver.setServers([...options.resolvers]);
  const queryDns = async (name: string, families: 'first' | 'all'): Promise<string[]> => {
    const a = await answers(() => resolver.resolve4(name));
    if (a.length && families === 'first') return a;
    const aaaa = await answers(() => resolver.resolve6(name)).catch((error: unknown) => {
      if (a.length) return [];
      throw error;
    });
    if (a.length || aaaa.length || !options.hostsFile) return [...a, ...aaaa];
    return (await lookup(name, { all: true }).catch(() => [])).map(({ address }) => address);
  };
  const resolve = async (given: string, families: 'first' | 'all'): Promise<string[]> => {
    const name = bareHost(given);
    if (isIP(name)) return [name];
    const found = reserved(name) ?? (await queryDns(name, families));
    if (!found.length) throw new OutboundError('dns', `The DNS has no address for ${name}.`, false);
    return found;
  };
  return { resolve: (host) => resolve(host, 'first'), resolveAll: (host) => resolve(host, 'all') };
}

/** Names that never reach the DNS (RFC 6761). */
function reserved(name: string): string[] | null {
  if (name === 'localhost' || name.endsWith('.localhost')) return ['127.0.0.1'];
  return name === 'invalid' || name.endsWith('.invalid') ? [] : null;
}

async function answers(query: () => Promise<string[]>): Promise<string[]> {
  try {
    return await query();
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException;
    if (NO_SUCH_NAME.has(code)) return [];
    throw new OutboundError('dns', `The DNS servers gave no answer (${code}).`, true);
  }
}
