// The DNS records that a customer has to create for a custom domain, and their status.
import ipaddr from 'ipaddr.js';
import type { Config } from '../../../core/config';
import type { DnsInstruction, DomainType } from '../../../schema/types';
import { managedKey, type ManagedRecord, type ManagedRecords } from '../../dns/dns_record/managed';
import { baseOf } from './hostname';

/** What a domain has to point to and to prove. */
export interface Target {
  hostname: string;
  type: DomainType;
  verification_token: string;
  /** Of a CDN zone: a CNAME to its unguessable host name also proves ownership. */
  target_host?: string | null;
}

/** Where custom domains have to lead. Without addresses, those that `host` resolves to count. */
export interface Ingress {
  host: string;
  addresses: readonly string[];
}

/** What the DNS answered. `ingress`: the addresses of the ingress' name, where they were needed. */
export interface Findings {
  txt: string[];
  cname: string[];
  a: string[];
  aaaa: string[];
  acme: string[];
  ingress: string[];
  /** What the platform keeps in the project's own zones; absent where the project has no zone of the name. */
  zone?: ManagedRecords;
}

/** The findings before any lookup. */
export const NO_FINDINGS: Findings = { txt: [], cname: [], a: [], aaaa: [], acme: [], ingress: [] };

type RequiredRecord = Pick<DnsInstruction, 'purpose' | 'type' | 'name' | 'value'>;

export function ingressOf(config: Config, { target_host }: Pick<Target, 'target_host'> = {}): Ingress {
  return { host: target_host ?? config.ingressHost, addresses: config.ingressIps };
}

/** Name of the TXT record that proves ownership. */
export function ownershipName(hostname: string): string {
  return `_platform-verification.${baseOf(hostname)}`;
}

/** Name at which a certificate authority looks for the proof of a wildcard (RFC 8555 section 8.4). */
export function challengeName(hostname: string): string {
  return `_acme-challenge.${baseOf(hostname)}`;
}

/** The records that the platform makes where the project holds the zone of the name. */
export function managedRecords(target: Target, ingress: Ingress): ManagedRecord[] {
  // The record for a wildcard's challenge is created separately, while a certificate is ordered.
  const records = requiredRecords(target, ingress).filter(({ purpose }) => purpose !== 'certificate');
  const routes = new Set(records.filter(({ purpose }) => purpose === 'routing').map(({ value }) => value));
  return records.map(({ purpose, type, name, value }) => ({
    type,
    name,
    value,
    ...(purpose === 'routing' && {
      isDefeatedBy: (other) => ROUTING_TYPES.has(other.type) && !routes.has(other.value),
    }),
  }));
}

const ROUTING_TYPES = new Set(['A', 'AAAA', 'ALIAS', 'CNAME']);

/** Every record to create, with its status after the last check; `findings` null = never checked. */
export function instructionsFor(target: Target, ingress: Ingress, findings: Findings | null): DnsInstruction[] {
  const zone = findings?.zone;
  const records = requiredRecords(target, ingress).filter(({ purpose }) => !zone || purpose !== 'certificate');
  return records.map((wanted) => {
    const isKept = zone?.isServed === true && zone.present.includes(managedKey(wanted));
    if (isKept) return { ...wanted, priority: null, status: 'verified', observed_values: [wanted.value] };
    const observed_values = findings ? observedFor(wanted, ingress, findings) : [];
    const verified = findings !== null && isThere(wanted, target, ingress, findings);
    return {
      ...wanted,
      priority: null,
      status: verified ? 'verified' : observed_values.length ? 'failed' : 'pending',
      observed_values,
    };
  });
}

/** Visitors reach the platform: by a CNAME to the ingress, or because all addresses of the name are the ingress'. */
function isRouted(target: Target, ingress: Ingress, findings: Findings): boolean {
  if (target.type !== 'apex' && findings.cname.includes(ingress.host)) return true;
  if (isProvenByRoute(target)) return false;
  const observed = [...findings.a, ...findings.aaaa];
  return observed.length > 0 && strangers(observed, ingress, findings).length === 0;
}

export function isOwned(target: Target, findings: Findings): boolean {
  if (isProvenByRoute(target)) return findings.cname.includes(target.target_host ?? '');
  return findings.txt.includes(target.verification_token);
}

function isProvenByRoute({ type, target_host }: Target): boolean {
  return type === 'subdomain' && Boolean(target_host);
}

/** The records that are missing before the domain can be active, as a message for its owner; null if complete. */
export function missingOf(target: Target, ingress: Ingress, findings: Findings): string | null {
  if (findings.zone?.isServed) return null;
  const routed = isRouted(target, ingress, findings);
  const owned = isOwned(target, findings);
  if (routed && owned) return null;
  if (findings.zone?.conflicts.length) return findings.zone.conflicts.join(' ');
  const needed = instructionsFor(target, ingress, findings).filter(
    ({ purpose, status }) => status !== 'verified' && ((purpose === 'routing' && !routed) || purpose === 'ownership'),
  );
  if (!needed.length) return `${target.hostname} also leads to addresses that are not the platform's.`;
  return needed
    .map(
      ({ type, name, status }) =>
        `The ${type} record of ${name} ${status === 'pending' ? 'was not found' : 'has another value'}.`,
    )
    .join(' ');
}

function requiredRecords(target: Target, ingress: Ingress): RequiredRecord[] {
  const { hostname, type, verification_token } = target;
  const ownership: RequiredRecord = {
    purpose: 'ownership',
    type: 'TXT',
    name: ownershipName(hostname),
    value: verification_token,
  };
  if (type === 'apex') return [...apexRecords(hostname, ingress), ownership];
  const routing: RequiredRecord = { purpose: 'routing', type: 'CNAME', name: hostname, value: ingress.host };
  if (type === 'subdomain') return isProvenByRoute(target) ? [routing] : [routing, ownership];
  return [
    routing,
    { purpose: 'certificate', type: 'CNAME', name: challengeName(hostname), value: challengeTarget(target, ingress) },
    ownership,
  ];
}

// An apex can't have a CNAME (RFC 1034 section 3.6.2). Without known addresses the provider has to follow the name.
function apexRecords(name: string, ingress: Ingress): RequiredRecord[] {
  if (!ingress.addresses.length) return [{ purpose: 'routing', type: 'ALIAS', name, value: ingress.host }];
  return ingress.addresses.map((value) => ({
    purpose: 'routing',
    type: ipaddr.parse(value).kind() === 'ipv4' ? 'A' : 'AAAA',
    name,
    value,
  }));
}

function challengeTarget({ verification_token }: Target, ingress: Ingress): string {
  return `${verification_token}.acme.${ingress.host}`;
}

function observedFor({ purpose, type }: RequiredRecord, ingress: Ingress, findings: Findings): string[] {
  if (purpose === 'ownership') return findings.txt;
  // The wildcard record that routes answers for this name too, where it has none of its own.
  if (purpose === 'certificate') return findings.acme.filter((value) => value !== ingress.host);
  if (type === 'A') return findings.a;
  if (type === 'AAAA') return findings.aaaa;
  return findings.cname.length ? findings.cname : [...findings.a, ...findings.aaaa];
}

function isThere(wanted: RequiredRecord, target: Target, ingress: Ingress, findings: Findings): boolean {
  const observed = observedFor(wanted, ingress, findings);
  if (wanted.purpose !== 'routing') return observed.includes(wanted.value);
  if (wanted.type === 'CNAME' || wanted.type === 'ALIAS') return isRouted(target, ingress, findings);
  return (
    observed.map(canonical).includes(canonical(wanted.value)) && strangers(observed, ingress, findings).length === 0
  );
}

/** Addresses that are not the ingress': some visitors would go there. */
function strangers(observed: string[], ingress: Ingress, findings: Findings): string[] {
  const own = new Set((ingress.addresses.length ? ingress.addresses : findings.ingress).map(canonical));
  return observed.filter((address) => !own.has(canonical(address)));
}

function canonical(address: string): string {
  return ipaddr.parse(address).toString();
}
