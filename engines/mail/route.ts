// Mail routing: the smarthost, or the mail exchanges of the destination (RFC 5321 §5.1), which may require TLS
// (MTA-STS, RFC 8461).
import { isIP } from 'node:net';
import type { DnsQuestions } from '../../core/protocols/dns';
import { DriverError } from '../../core/driver';
import type { StsPolicy } from './mta_sts';
import type { Hop } from './transport';

export type Route =
  | { kind: 'hops'; hops: Hop[] }
  /** The destination accepts no mail, or does not exist. */
  | { kind: 'none'; response: string }
  | { kind: 'later'; response: string };

export interface DirectParts {
  dns: Pick<DnsQuestions, 'mx' | 'a' | 'aaaa'>;
  isAllowed(address: string): boolean;
  policyOf(domain: string): Promise<StsPolicy | null>;
  /** 25, except in tests. */
  port: number;
  ca: string | null;
}

const EXCHANGES_MAX = 10;
const ADDRESSES_MAX = 4;
const SMTP_PORT = 25;
const SUBMISSION_PORT = 587;
const SMTPS_PORT = 465;

/** `smtp://user:password@host:587`, `smtps://`. */
export function smarthostHop(url: string, ca: string | null): Hop {
  const { protocol, hostname, port, username, password } = new URL(url);
  const secure = protocol === 'smtps:';
  const auth = username ? { user: decodeURIComponent(username), pass: decodeURIComponent(password) } : null;
  const host = hostname.replace(/^\[|\]$/g, '');
  return {
    ...{ host, port: Number(port) || (secure ? SMTPS_PORT : auth ? SUBMISSION_PORT : SMTP_PORT), secure, auth, ca },
    servername: isIP(host) ? '' : host,
    // A password requires an authenticated connection; a relay on the same network may have no TLS at all.
    tls: auth ? 'required' : 'opportunistic',
  };
}

/** Servers of a destination in order of preference. */
export async function directRoute(domain: string, parts: DirectParts): Promise<Route> {
  try {
    const exchanges = await exchangesOf(domain, parts);
    if (exchanges === null)
      return { kind: 'none', response: `556 5.1.10 ${domain} takes no mail (null MX, RFC 7505).` };
    const policy = await parts.policyOf(domain);
    const allowed = policy?.mode === 'enforce' ? exchanges.filter((name) => policy.matches(name)) : exchanges;
    if (!allowed.length) return { kind: 'later', response: `No mail server of ${domain} is in its MTA-STS policy.` };
    const hops = await hopsOf(allowed, policy?.mode === 'enforce' ? 'required' : 'opportunistic', parts);
    if (hops.length) return { kind: 'hops', hops };
    return { kind: 'none', response: `550 5.1.2 ${domain} has no mail server that can be reached.` };
  } catch (error) {
    if (error instanceof DriverError) return { kind: 'later', response: error.message };
    throw error;
  }
}

/** Without MX records the domain itself is used (RFC 5321 §5.1). Null: a null MX, the domain accepts no mail. */
async function exchangesOf(domain: string, { dns }: DirectParts): Promise<string[] | null> {
  const records = await dns.mx(domain);
  if (!records.length) return [domain];
  const pairs = records.map((record) => record.split(' ') as [string, string?]);
  if (pairs.every(([, name]) => !name)) return null;
  // Exchanges of equal preference share the load.
  const shuffled = pairs.map(([preference, name]) => ({ preference: Number(preference), name, order: Math.random() }));
  shuffled.sort((a, b) => a.preference - b.preference || a.order - b.order);
  return shuffled.flatMap(({ name }) => name || []).slice(0, EXCHANGES_MAX);
}

async function hopsOf(names: readonly string[], tls: Hop['tls'], parts: DirectParts): Promise<Hop[]> {
  const found = await Promise.allSettled(
    names.map(async (name) => {
      const [a, aaaa] = await Promise.all([parts.dns.a(name), parts.dns.aaaa(name)]);
      const addresses = [...a, ...aaaa].filter((address) => parts.isAllowed(address)).slice(0, ADDRESSES_MAX);
      return addresses.map((host) => ({ host, servername: name }));
    }),
  );
  const { port, ca } = parts;
  const hops = found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
  // An exchange that cannot be resolved temporarily may be the one that accepts the mail.
  const failed = found.find((each) => each.status === 'rejected');
  if (!hops.length && failed) throw failed.reason;
  return hops.map((hop) => ({ ...hop, port, secure: false, tls, auth: null, ca }));
}
