// DNS records of a custom domain in zones of the same project.
import type { Sql } from '../../../core/context';
import type { DnsMode } from '../../../schema/types';
import { named } from '../../../db/statement';
import { ensureManagedRecords, removeManagedRecords, type ManagedRecords } from '../../dns/dns_record/managed';
import { baseOf } from './hostname';
import { managedRecords, NO_FINDINGS, type Findings, type Ingress, type Target } from './instructions';

interface Owner extends Target {
  id: string;
  project_id: string;
  dns: DnsMode;
}

/** In a transaction. @returns null where the user keeps the records, or the project holds no zone of the name */
export async function ensureDomainRecords(sql: Sql, domain: Owner, ingress: Ingress): Promise<ManagedRecords | null> {
  if (domain.dns === 'manual') return null;
  const owner = { type: ownerTypeOf(domain), id: domain.id, project_id: domain.project_id };
  return ensureManagedRecords(sql, owner, managedRecords(domain, ingress));
}

/** Which kind of resource keeps the records. */
export function ownerTypeOf({ target_host }: Pick<Target, 'target_host'>): 'domain' | 'cdn_domain' {
  return target_host ? 'cdn_domain' : 'domain';
}

/** Findings of a lookup merged with managed records; `found` null = no lookup, or no answer. */
export function withZone(found: Findings | null, zone: ManagedRecords): Findings {
  return { ...(found ?? NO_FINDINGS), zone };
}

/** Everything that was made for a domain, challenges of its certificate included. */
export async function removeDomainRecords(sql: Sql, domain: Pick<Owner, 'id' | 'target_host'>): Promise<void> {
  await removeManagedRecords(sql, { type: ownerTypeOf(domain), id: domain.id });
  await removeDnsChallenge(sql, domain.id);
}

// Apart from the records of the domain itself, which are there all the time.
const CHALLENGE_OWNER = 'certificate';
const CHALLENGE_TTL_S = 60;

interface Challenge {
  name: string;
  value: string;
}

/** In a transaction. @returns null where the user keeps the records, or the project holds no zone of the name */
export async function publishDnsChallenge(
  sql: Sql,
  domain: Pick<Owner, 'id' | 'project_id' | 'dns'>,
  { name, value }: Challenge,
): Promise<ManagedRecords | null> {
  if (domain.dns === 'manual') return null;
  const owner = { type: CHALLENGE_OWNER, id: domain.id, project_id: domain.project_id };
  return ensureManagedRecords(sql, owner, [{ type: 'TXT', name, value, ttl: CHALLENGE_TTL_S }]);
}

export async function removeDnsChallenge(sql: Sql, domainId: string): Promise<void> {
  await removeManagedRecords(sql, { type: CHALLENGE_OWNER, id: domainId });
}

const HELD = named(
  `select 1 from dns_zones where project_id = $1 and name = any($2) and status = 'active' and deleted_at is null
   limit 1`,
);

/** Whether a challenge of the name can be answered: the project holds a zone of it, and may write there. */
export async function canAnswerChallenge(
  sql: Sql,
  { project_id, dns }: Pick<Owner, 'project_id' | 'dns'>,
  hostname: string,
): Promise<boolean> {
  return dns === 'automatic' && (await sql.query(HELD, [project_id, zoneNamesOf(hostname)])).length > 0;
}

const NEAREST = named(`select project_id from dns_zones where name = any($1) and status = 'active'
  and deleted_at is null order by length(name) desc limit 1`);

/**
 * The project whose zone answers for the platform's own wildcard: the nearest one that the parent zone really delegates
 * to, by its label (docs/decisions/0223). A zone that is only claimed gets no challenge. null: there is none.
 */
export async function findZoneProject(sql: Sql, hostname: string): Promise<string | null> {
  const [row] = await sql.query<{ project_id: string }>(NEAREST, [zoneNamesOf(hostname)]);
  return row?.project_id ?? null;
}

function zoneNamesOf(hostname: string): string[] {
  const labels = baseOf(hostname).split('.');
  return labels.map((_, index) => labels.slice(index).join('.'));
}

const UNSERVED = named(`select 1 from dns_zones z join dns_records r on r.dns_zone_id = z.id
  where r.managed_by->>'id' = $1 and r.managed_by->>'type' = $2 and z.deleted_at is null
    and (z.observed->>'serial')::bigint is distinct from z.serial limit 1`);

/** Whether the name server serves the current challenge. */
export async function isDnsChallengeServed(sql: Sql, domainId: string): Promise<boolean> {
  return (await sql.query(UNSERVED, [domainId, CHALLENGE_OWNER])).length === 0;
}
