// The DNS records that a sending domain needs, and their status.
import type { Config } from '../../../core/config';
import { publishesKey, type DkimRecord } from '../../../core/protocols/dkim';
import { joinedText } from '../../../core/protocols/text_strings';
import type { DnsInstruction } from '../../../schema/types';
import type { ManagedRecord, ManagedRecords } from '../../dns/dns_record/managed';

/** What of a domain decides its records. */
export interface SendingName {
  name: string;
  return_path_subdomain: string;
  dkim_records: readonly DkimRecord[];
}

/** What the DNS answered. `dkim` by selector. */
export interface EmailFindings {
  spf: string[];
  return_path: string[];
  dmarc: string[];
  dkim: Record<string, string[]>;
  /** What stands in the zone of the project, where the platform keeps the records. */
  zone?: ManagedRecords;
}

/** The platform's mail settings that records of sending domains refer to. */
export interface MailHost {
  host: string;
  /** Mechanisms of SPF. */
  spf: string;
}

type NeededRecord = Pick<DnsInstruction, 'purpose' | 'type' | 'name' | 'value' | 'priority'> & {
  selector?: string;
};

const MX_PRIORITY = 10;

export function mailHostOf({ smtpHost, mailSpf }: Config): MailHost {
  return { host: smtpHost, spf: mailSpf };
}

/** Where bounces return. SPF is judged by this name, since it stands in the envelope (RFC 7208 §2.4). */
export function returnPathOf({ name, return_path_subdomain }: Pick<SendingName, 'name' | 'return_path_subdomain'>) {
  return `${return_path_subdomain}.${name}`;
}

export function dkimNameOf({ name }: Pick<SendingName, 'name'>, selector: string): string {
  return `${selector}._domainkey.${name}`;
}

/** Every record to create. */
function neededRecords(domain: SendingName, { host, spf }: MailHost): NeededRecord[] {
  const returnPath = returnPathOf(domain);
  const plain = { type: 'TXT', priority: null } as const;
  return [
    { ...plain, purpose: 'spf', name: returnPath, value: `v=spf1 ${spf} ~all` },
    ...domain.dkim_records.map(({ selector, value }) => {
      const name = dkimNameOf(domain, selector);
      return { ...plain, purpose: 'dkim' as const, name, value, selector };
    }),
    { purpose: 'return_path', type: 'MX', name: returnPath, value: host, priority: MX_PRIORITY },
    { ...plain, purpose: 'dmarc', name: `_dmarc.${domain.name}`, value: 'v=DMARC1; p=none' },
  ];
}

/** The records for a zone of the project. */
export function managedEmailRecords(domain: SendingName, mail: MailHost): ManagedRecord[] {
  return neededRecords(domain, mail).map(({ purpose, type, name, value, priority }) => ({
    type,
    name,
    value,
    priority,
    // A second policy would be an error of the whole, and mail of two exchanges would be lost to one of them.
    ...((purpose === 'spf' || purpose === 'dmarc') && { isDefeatedBy: (other) => isPolicy(purpose, other) }),
    ...(purpose === 'return_path' && { isDefeatedBy: (other) => other.type === 'MX' && other.value !== value }),
  }));
}

function isPolicy(purpose: 'spf' | 'dmarc', { type, value }: { type: string; value: string }): boolean {
  const policy = purpose === 'spf' ? /^"?v=spf1\b/i : /^"?v=DMARC1\b/i;
  return type === 'TXT' && policy.test(joinedText(value).toString());
}

/** What the DNS would say where the platform itself answers for all of the names. */
export function servedFindings(domain: SendingName, mail: MailHost, zone: ManagedRecords): EmailFindings {
  const found: EmailFindings = { spf: [], return_path: [], dmarc: [], dkim: {}, zone };
  for (const { purpose, value, priority, selector = '' } of neededRecords(domain, mail)) {
    if (purpose === 'dkim') found.dkim[selector] = [value];
    if (purpose === 'spf' || purpose === 'dmarc') found[purpose] = [value];
    if (purpose === 'return_path') found.return_path = [`${priority} ${value}`];
  }
  return found;
}

/** The same with what the last check found; `findings` null = never checked. */
export function emailInstructions(
  domain: SendingName,
  mail: MailHost,
  findings: EmailFindings | null,
): DnsInstruction[] {
  return neededRecords(domain, mail).map((needed) => {
    const observed_values = findings ? observedFor(needed, findings) : [];
    const verified = isThere(needed, mail, observed_values);
    const { purpose, type, name, value, priority } = needed;
    const status = verified ? 'verified' : observed_values.length ? 'failed' : 'pending';
    return { purpose, type, name, value, priority: priority ?? null, status, observed_values };
  });
}

/** The records that are missing before the domain can send, as a message for its owner; null if complete. */
export function missingRecords(domain: SendingName, mail: MailHost, findings: EmailFindings): string | null {
  const missing = neededRecords(domain, mail).filter(
    (needed) => isRequired(domain, needed) && !isThere(needed, mail, observedFor(needed, findings)),
  );
  if (!missing.length) return null;
  const { conflicts = [] } = findings.zone ?? {};
  if (conflicts.length) return conflicts.join(' ');
  return missing
    .map((needed) => {
      const what = observedFor(needed, findings).length ? 'has another value' : 'was not found';
      return `The ${needed.type} record of ${needed.name} ${what}.`;
    })
    .join(' ');
}

/** Whether the record of a key was found at the last check. */
export function isPublished({ selector, value }: DkimRecord, findings: EmailFindings | null): boolean {
  return (findings?.dkim[selector] ?? []).some((observed) => publishesKey(observed, value));
}

/** DMARC is advice, and so are Ed25519 and a key that does not sign yet. */
function isRequired({ dkim_records }: SendingName, { purpose, selector }: NeededRecord): boolean {
  if (purpose === 'dmarc') return false;
  if (purpose !== 'dkim') return true;
  const key = dkim_records.find((record) => record.selector === selector);
  return key?.algorithm === 'rsa' && key.role === 'current';
}

/** Other texts may stand at the name of the return path; only policies of SPF are of interest. */
function observedFor({ purpose, selector = '' }: NeededRecord, findings: EmailFindings): string[] {
  if (purpose === 'dkim') return findings.dkim[selector] ?? [];
  if (purpose === 'return_path') return findings.return_path;
  if (purpose === 'dmarc') return findings.dmarc.filter((text) => /^v=DMARC1\b/i.test(text));
  return findings.spf.filter((text) => /^v=spf1(?: |$)/i.test(text));
}

function isThere({ purpose, value }: NeededRecord, { host, spf }: MailHost, observed: readonly string[]): boolean {
  if (purpose === 'dkim') return observed.some((text) => publishesKey(text, value));
  if (purpose === 'dmarc') return observed.length === 1;
  if (purpose === 'return_path') return observed.length > 0 && observed.every((entry) => entry.split(' ')[1] === host);
  // Two policies are an error of the whole (RFC 7208 §4.5).
  if (observed.length !== 1) return false;
  const terms = (observed[0] ?? '').toLowerCase().split(/\s+/);
  return spf
    .toLowerCase()
    .split(/\s+/)
    .every((term) => terms.includes(term) || terms.includes(`+${term}`));
}
