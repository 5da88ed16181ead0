// DNS checks of custom domains, and the status that results from their findings.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Probes } from '../../../core/context';
import { limits } from '../../../core/limits';
import { challengeName, missingOf, ownershipName, type Findings, type Ingress, type Target } from './instructions';
import type { DomainStatus } from '../../../schema/types';

/** What a check reads of a domain. Times are RFC 3339. */
export interface Checked extends Target {
  status: DomainStatus;
  status_reason: string | null;
  findings: Findings | null;
  last_checked_at: string | null;
  verified_at: string | null;
  /** Since when an active domain lacks its records. */
  missing_since: string | null;
  created_at: string;
}

/** What a check writes. */
export type Verdict = Pick<
  Checked,
  'status' | 'status_reason' | 'findings' | 'last_checked_at' | 'verified_at' | 'missing_since'
>;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const GIVE_UP_MS = limits.domainVerificationHours * HOUR_MS;

/**
 * Looks up the records of a domain, 5 s at most. Changes nothing.
 * @returns null where the DNS gives no answer
 */
export async function probeDns(dns: Probes['dns'], target: Target, ingress: Ingress): Promise<Findings | null> {
  const late = new AbortController();
  const noAnswer = sleep(limits.probeTimeoutMs, null, { signal: late.signal }).catch(() => null);
  try {
    return await Promise.race([probeTarget(dns, target, ingress), noAnswer]);
  } catch (error) {
    if ((error as Error).name === 'DriverError') return null;
    throw error;
  } finally {
    late.abort();
  }
}

/**
 * The status of a domain after a check: found = active; missing for 72 hours = failed; else unchanged.
 * @param findings null where the DNS gave no answer: this proves nothing, so an active domain stays active
 * @param taken another project has proven the name, and keeps it until it loses the records or removes the domain
 */
export function evaluateDomain(
  domain: Checked,
  findings: Findings | null,
  ingress: Ingress,
  now: Date,
  taken: boolean,
): Verdict {
  if (!findings) return unanswered(domain, now);
  const at = now.toISOString();
  const status_reason = missingOf(domain, ingress, findings) ?? (taken ? takenReason(domain) : null);
  const seen = { findings, status_reason, last_checked_at: at };
  if (status_reason === null)
    return {
      ...seen,
      status: 'active',
      missing_since: null,
      verified_at: domain.status === 'active' ? domain.verified_at : at,
    };
  const missing_since = domain.status === 'active' ? (domain.missing_since ?? at) : domain.missing_since;
  const failed = isOver(missing_since ?? domain.created_at, now);
  return { ...seen, status: failed ? 'failed' : domain.status, missing_since, verified_at: domain.verified_at };
}

export function takenReason({ hostname }: Pick<Checked, 'hostname'>): string {
  return `Another project has proven that ${hostname} is its own. Its domain must be removed there first.`;
}

/**
 * Milliseconds until the next periodic check. Owners of a fresh domain wait for it, so it is looked at often.
 * Up to a tenth more, so that domains added together do not come together for ever.
 */
export function nextCheckMs(domain: Pick<Checked, 'status' | 'created_at' | 'missing_since'>, now: Date): number {
  return Math.round(interval(domain, now) * (1 + Math.random() / 10));
}

function interval(
  { status, created_at, missing_since }: Pick<Checked, 'status' | 'created_at' | 'missing_since'>,
  now: Date,
): number {
  if (status === 'pending') return now.getTime() - Date.parse(created_at) < HOUR_MS ? MINUTE_MS : 10 * MINUTE_MS;
  if (status === 'active' && missing_since) return 10 * MINUTE_MS;
  return HOUR_MS;
}

function isOver(since: string, now: Date): boolean {
  return now.getTime() - Date.parse(since) >= GIVE_UP_MS;
}

function unanswered(
  { status, status_reason, findings, last_checked_at, verified_at, missing_since, created_at }: Checked,
  now: Date,
): Verdict {
  const last = { status, status_reason, findings, last_checked_at, verified_at, missing_since };
  if (status !== 'pending' || !isOver(created_at, now)) return last;
  return { ...last, status: 'failed', status_reason: status_reason ?? 'The DNS gave no answer about the domain.' };
}

const NONE: string[] = [];

// Addresses are resolved only where no CNAME settles it: these resolvers may not know the ingress' own name.
async function probeTarget(dns: Probes['dns'], target: Target, ingress: Ingress): Promise<Findings> {
  const { hostname, type } = target;
  const [txt, cname, acme] = await Promise.all([
    dns.txt(ownershipName(hostname)),
    type === 'apex' ? NONE : dns.cname(hostname),
    type === 'wildcard' ? dns.cname(challengeName(hostname)) : NONE,
  ]);
  const found: Findings = { txt: stored(txt), cname: stored(cname), acme: stored(acme), a: [], aaaa: [], ingress: [] };
  if (cname.includes(ingress.host)) return found;
  const [a, aaaa] = await addressesOf(dns, hostname);
  if (ingress.addresses.length || !(a.length + aaaa.length)) return { ...found, a, aaaa };
  return { ...found, a, aaaa, ingress: (await addressesOf(dns, ingress.host)).flat() };
}

function addressesOf(dns: Probes['dns'], name: string): Promise<[string[], string[]]> {
  return Promise.all([dns.a(name), dns.aaaa(name)]);
}

const STORED_VALUES = 50;
const STORED_CHARACTERS = 512;

// DNS data are untrusted: PostgreSQL rejects NUL, and terminals interpret control characters.
function stored(values: string[]): string[] {
  return values
    .slice(0, STORED_VALUES)
    .map((value) => value.slice(0, STORED_CHARACTERS).replace(/\p{Cc}|\p{Surrogate}/gu, '\ufffd'));
}
