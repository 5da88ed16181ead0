// DNS records of a sending domain in zones of the same project.
import type { Sql } from '../../../core/context';
import type { DnsMode } from '../../../schema/types';
import { ensureManagedRecords, type ManagedRecords } from '../../dns/dns_record/managed';
import {
  managedEmailRecords,
  servedFindings,
  type EmailFindings,
  type MailHost,
  type SendingName,
} from './instructions';

interface Owner extends SendingName {
  id: string;
  project_id: string;
  dns: DnsMode;
}

/** In a transaction. @returns null where the user keeps the records, or the project holds no zone of the name */
export async function ensureEmailRecords(sql: Sql, domain: Owner, mail: MailHost): Promise<ManagedRecords | null> {
  if (domain.dns === 'manual') return null;
  const owner = { type: 'email_domain', id: domain.id, project_id: domain.project_id };
  return ensureManagedRecords(sql, owner, managedEmailRecords(domain, mail));
}

/** Findings of a lookup merged with the records of the zone; null without an answer. */
export function withEmailZone(
  found: EmailFindings | null,
  zone: ManagedRecords | null,
  domain: SendingName,
  mail: MailHost,
): EmailFindings | null {
  if (zone?.isServed) return servedFindings(domain, mail, zone);
  return found && zone ? { ...found, zone } : found;
}
