// DNS checks of sending domains, and the status that results from their findings (docs/contract/resources.md §14.1).
import { setTimeout as sleep } from 'node:timers/promises';
import type { Probes } from '../../../core/context';
import type { DkimRecord } from '../../../core/protocols/dkim';
import { limits } from '../../../core/limits';
import {
  dkimNameOf,
  isPublished,
  missingRecords,
  returnPathOf,
  type EmailFindings,
  type MailHost,
  type SendingName,
} from './instructions';

/** What a check reads of a domain. Times are RFC 3339. */
export interface CheckedDomain extends SendingName {
  status: 'pending' | 'verified' | 'failed';
  status_reason: string | null;
  findings: EmailFindings | null;
  last_checked_at: string | null;
  verified_at: string | null;
  pending_since: string;
  missing_since: string | null;
}

/** What a check writes. */
type DomainVerdict = Pick<
  CheckedDomain,
  'status' | 'status_reason' | 'findings' | 'last_checked_at' | 'verified_at' | 'missing_since'
>;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const GIVE_UP_MS = limits.domainVerificationHours * HOUR_MS;
const STORED_VALUES = 20;
const STORED_CHARACTERS = 1024;

/**
 * Looks up the records of a domain, 5 s at most. Changes nothing.
 * @returns null where the DNS gives no answer
 */
export async function lookUpEmailRecords(dns: Probes['dns'], domain: SendingName): Promise<EmailFindings | null> {
  const late = new AbortController();
  const noAnswer = sleep(limits.probeTimeoutMs, null, { signal: late.signal }).catch(() => null);
  try {
    return await Promise.race([queryRecords(dns, domain), noAnswer]);
  } catch (error) {
    if ((error as Error).name === 'DriverError') return null;
    throw error;
  } finally {
    late.abort();
  }
}

/**
 * What becomes of a domain after a check: found = verified; missing for 72 hours = failed; else as it was.
 * @param findings null where the DNS gave no answer: that proves nothing
 */
export function evaluateEmailDomain(
  domain: CheckedDomain,
  findings: EmailFindings | null,
  mail: MailHost,
  now: Date,
): DomainVerdict {
  if (!findings) return unanswered(domain, now);
  const at = now.toISOString();
  const status_reason = missingRecords(domain, mail, findings);
  const seen = { findings, status_reason, last_checked_at: at };
  if (status_reason === null) {
    const verified_at = domain.status === 'verified' ? domain.verified_at : at;
    return { ...seen, status: 'verified', missing_since: null, verified_at };
  }
  const missing_since = domain.status === 'verified' ? (domain.missing_since ?? at) : domain.missing_since;
  const since = domain.status === 'pending' ? domain.pending_since : missing_since;
  const failed = domain.status === 'failed' || isOver(since ?? domain.pending_since, now);
  return { ...seen, status: failed ? 'failed' : domain.status, missing_since, verified_at: domain.verified_at };
}

/** Milliseconds until the next periodic check, up to a tenth more. */
export function nextEmailCheckMs(
  domain: Pick<CheckedDomain, 'status' | 'pending_since' | 'missing_since' | 'dkim_records'>,
  now: Date,
): number {
  return Math.round(intervalMs(domain, now) * (1 + Math.random() / 10));
}

function intervalMs(
  { status, pending_since, missing_since, dkim_records }: Parameters<typeof nextEmailCheckMs>[0],
  now: Date,
): number {
  if (status === 'pending') return now.getTime() - Date.parse(pending_since) < HOUR_MS ? MINUTE_MS : 10 * MINUTE_MS;
  const isRotating = dkim_records.some(({ role }) => role === 'next');
  return isRotating || (status === 'verified' && missing_since) ? 10 * MINUTE_MS : HOUR_MS;
}

/** Ends a rotation once the record of the new key was found: it signs from now on, and the old one goes. */
export function rotatedRecords(records: readonly DkimRecord[], findings: EmailFindings | null): DkimRecord[] | null {
  const next = records.find(({ role, algorithm }) => role === 'next' && algorithm === 'rsa');
  if (!next || !isPublished(next, findings)) return null;
  return records.filter(({ role }) => role === 'next').map((record) => ({ ...record, role: 'current' }));
}

function isOver(since: string, now: Date): boolean {
  return now.getTime() - Date.parse(since) >= GIVE_UP_MS;
}

function unanswered(domain: CheckedDomain, now: Date): DomainVerdict {
  const { status, status_reason, findings, last_checked_at, verified_at, missing_since, pending_since } = domain;
  const last = { status, status_reason, findings, last_checked_at, verified_at, missing_since };
  if (status !== 'pending' || !isOver(pending_since, now)) return last;
  return { ...last, status: 'failed', status_reason: status_reason ?? 'The DNS gave no answer about the domain.' };
}

async function queryRecords(dns: Probes['dns'], domain: SendingName): Promise<EmailFindings> {
  const returnPath = returnPathOf(domain);
  const selectors = domain.dkim_records.map(({ selector }) => selector);
  const [spf, return_path, dmarc, ...keys] = await Promise.all([
    dns.txt(returnPath),
    dns.mx(returnPath),
    dns.txt(`_dmarc.${domain.name}`),
    ...selectors.map((selector) => dns.txt(dkimNameOf(domain, selector))),
  ]);
  const dkim = Object.fromEntries(selectors.map((selector, index) => [selector, stored(keys[index] ?? [])]));
  return { spf: stored(spf), return_path: stored(return_path), dmarc: stored(dmarc), dkim };
}

// DNS data are untrusted: PostgreSQL rejects NUL, and terminals interpret control characters.
function stored(values: string[]): string[] {
  return values
    .slice(0, STORED_VALUES)
    .map((value) => value.slice(0, STORED_CHARACTERS).replace(/\p{Cc}|\p{Surrogate}/gu, '\ufffd'));
}
