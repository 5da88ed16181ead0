// The records of a custom domain in the zones of its own project.
import type { Sql } from '../../core/context';
import type { DnsMode } from '../../schema/types';
import { ensureManagedRecords, type ManagedRecords } from '../dns_record/managed';
import { managedRecords, NO_FINDINGS, type Findings, type Ingress, type Target } from './instructions';

interface Owner extends Target {
  id: string;
  project_id: string;
  dns: DnsMode;
}

/** In a transaction. @returns null where the user keeps the records, or the project holds no zone of the name */
export async function ensureDomainRecords(sql: Sql, domain: Owner, ingress: Ingress): Promise<ManagedRecords | null> {
  if (domain.dns === 'manual') return null;
  const owner = { type: 'domain', id: domain.id, project_id: domain.project_id };
  return ensureManagedRecords(sql, owner, managedRecords(domain, ingress));
}

/** What was found in the DNS, with what the platform keeps; `found` null = nothing was asked, or nobody answered. */
export function withZone(found: Findings | null, zone: ManagedRecords): Findings {
  return { ...(found ?? NO_FINDINGS), zone };
}
