// Authentication for mail submission: relay zones, by id and password.
import { timingSafeEqual } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import type { Sql } from '../../../core/context';
import { isId } from '../../../core/ids';
import { sha256 } from '../../../core/accounts/tokens';
import { quick } from '../../../db/statement';

export interface SendingZone {
  id: string;
  project_id: string;
  password_hash: string;
  status: 'active' | 'disabled' | 'suspended';
  status_reason: string | null;
  allowed_sources: string[];
  /** Verified ones. */
  domains: { id: string; name: string }[];
}

const ZONES = quick(`select z.id, z.project_id, z.password_hash, z.status, z.status_reason, z.allowed_sources,
    coalesce((select jsonb_agg(jsonb_build_object('id', d.id, 'name', d.name)) from email_domains d
      where d.id = any(z.email_domain_ids) and d.status = 'verified' and d.deleted_at is null
        and d.project_id = z.project_id), '[]') as domains
  from email_relay_zones z where z.id = any($1) and z.deleted_at is null`);

/** In the order of the ids; null where there is no such zone. */
export async function findSendingZones(sql: Sql, ids: readonly string[]): Promise<(SendingZone | null)[]> {
  const requested = [...new Set(ids)].filter((id) => isId('erz', id));
  const found = requested.length ? await sql.query<SendingZone>(ZONES, [requested]) : [];
  const byId = new Map(found.map((zone) => [zone.id, zone]));
  return ids.map((id) => byId.get(id) ?? null);
}

export function hasPassword(zone: SendingZone, password: string): boolean {
  return timingSafeEqual(Buffer.from(zone.password_hash), Buffer.from(sha256(password)));
}

/** Whether a zone takes mail from an address; without a list it does from any. */
export function allowsSource({ allowed_sources }: SendingZone, address: string): boolean {
  if (!allowed_sources.length) return true;
  if (!ipaddr.isValid(address)) return false;
  const source = ipaddr.process(address);
  return allowed_sources.some((network) => {
    const [base, bits] = ipaddr.parseCIDR(network);
    return base.kind() === source.kind() && source.match([base, bits] as [ipaddr.IPv4, number]);
  });
}

const SIGNING = quick(`select id from email_domains where name = $1 and status = 'verified' and deleted_at is null`);

/** The verified sending domain of a name, whose keys sign mail of the platform itself; null where there is none. */
export async function findSigningDomain(sql: Sql, name: string): Promise<{ id: string } | null> {
  const [found] = await sql.query<{ id: string }>(SIGNING, [name]);
  return found ?? null;
}
