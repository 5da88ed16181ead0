// MTA-STS policies (RFC 8461): whether a destination requires TLS, and its permitted servers.
import type { DnsQuestions } from '../../core/protocols/dns';
import type { Outbound } from '../../core/outbound';
import { guarded } from '../../core/outbound/client';

export interface StsPolicy {
  mode: 'enforce' | 'testing' | 'none';
  matches(exchange: string): boolean;
}

interface Known {
  id: string;
  policy: StsPolicy;
  until: number;
}

const POLICY_BYTES_MAX = 64 * 1024;
const HTTPS_PORT = 443;
const FETCH_MS = 10_000;
const AGE_SECONDS_MAX = 31_557_600;
const DOMAINS_MAX = 10_000;
/** The DNS record is read again after this time: a new id means a new policy. */
const RECHECK_MS = 10 * 60_000;

/** Looks up and caches policies for their lifetime. @param parts `port`: 443, except in tests */
export function stsPolicies(parts: { dns: Pick<DnsQuestions, 'txt'>; outbound: Outbound; port?: number }) {
  const known = new Map<string, Known & { lookedAt: number }>();
  const absent = new Map<string, number>();
  return async (domain: string): Promise<StsPolicy | null> => {
    const now = Date.now();
    const last = known.get(domain);
    if (last && now < last.until && now - last.lookedAt < RECHECK_MS) return last.policy;
    if (!last && now - (absent.get(domain) ?? 0) < RECHECK_MS) return null;
    if (known.size + absent.size > DOMAINS_MAX) [known, absent].forEach((map) => map.clear());
    const id = await idOf(parts.dns, domain);
    if (id !== null && last?.id === id) return (known.set(domain, { ...last, lookedAt: now }), last.policy);
    const fetched = id === null ? null : await fetchPolicy(parts.outbound, domain, parts.port ?? HTTPS_PORT);
    if (fetched && id !== null) {
      known.set(domain, { id, policy: fetched, until: now + fetched.seconds * 1000, lookedAt: now });
      return fetched;
    }
    // A cached policy stays valid until its max_age, even while it cannot be fetched (RFC 8461 §5.1).
    if (last && now < last.until) return last.policy;
    absent.set(domain, now);
    return null;
  };
}

async function idOf(dns: Pick<DnsQuestions, 'txt'>, domain: string): Promise<string | null> {
  const texts = await dns.txt(`_mta-sts.${domain}`).catch(() => []);
  const found = texts.filter((text) => /^v=STSv1;/.test(text));
  return found.length === 1 ? (/;\s*id=([A-Za-z0-9]{1,32})\s*(?:;|$)/.exec(found[0] as string)?.[1] ?? null) : null;
}

async function fetchPolicy(
  outbound: Outbound,
  domain: string,
  port: number,
): Promise<(StsPolicy & { seconds: number }) | null> {
  const url = new URL(`https://mta-sts.${domain}:${port}/.well-known/mta-sts.txt`);
  const request = { url, method: 'GET', headers: [], bodyBytesMax: POLICY_BYTES_MAX };
  try {
    const { status, body } = await guarded(outbound, request, FETCH_MS);
    return status === 200 ? parsePolicy(body.toString('utf8')) : null;
  } catch {
    return null;
  }
}

/** Null for an invalid policy. */
export function parsePolicy(text: string): (StsPolicy & { seconds: number }) | null {
  const pairs = text.split(/\r?\n/).flatMap((line) => {
    const match = /^([A-Za-z0-9_.-]{1,32})[ \t]*:[ \t]*(.*?)[ \t]*$/.exec(line);
    return match ? [[match[1], match[2]] as [string, string]] : [];
  });
  const valueOf = (name: string): string | undefined => pairs.find(([key]) => key === name)?.[1];
  const mode = valueOf('mode');
  const seconds = Number(/^\d{1,10}$/.exec(valueOf('max_age') ?? '')?.[0] ?? NaN);
  if (valueOf('version') !== 'STSv1' || Number.isNaN(seconds)) return null;
  if (mode !== 'enforce' && mode !== 'testing' && mode !== 'none') return null;
  const patterns = pairs.filter(([key]) => key === 'mx').map(([, value]) => value.toLowerCase());
  const matches = (name: string): boolean => patterns.some((pattern) => fits(pattern, name.toLowerCase()));
  return { mode, matches, seconds: Math.min(seconds, AGE_SECONDS_MAX) };
}

/** A star matches one label (RFC 8461 §4.1). */
function fits(pattern: string, name: string): boolean {
  if (!pattern.startsWith('*.')) return pattern === name;
  return name.slice(name.indexOf('.') + 1) === pattern.slice(2);
}
