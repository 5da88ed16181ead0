// Kinds whose records the platform makes where the project holds the zone (models/dns/dns_record/managed.ts).
import type { Sql } from '../../../core/context';
import { wakeRows } from '../../../db/loop_rows';

interface OwnerTable {
  /** Has `dns` (automatic or manual), `project_id`, `deleted_at` and a loop. */
  table: string;
  /** Column with the name that its records are for. */
  name: string;
  /** SQL of the rows that a record of the user was in the way of. */
  hasConflict: string;
}

const OWNERS: OwnerTable[] = [
  { table: 'domains', name: 'hostname', hasConflict: `findings->'zone'->>'conflicts' <> '[]'` },
  { table: 'email_domains', name: 'name', hasConflict: `findings->'zone'->>'conflicts' <> '[]'` },
];

/** A zone has come, has gone, or is delegated otherwise: the resources of the project below its name look again. */
export async function wakeRecordOwners(sql: Sql, zone: { project_id: string; name: string }): Promise<void> {
  for (const owner of OWNERS) await wake(sql, owner, zone, 'true');
}

/** Retries managed records that were blocked by a conflict, after records of the zone have changed. */
export async function wakeBlockedOwners(sql: Sql, zone: { project_id: string; name: string }): Promise<void> {
  for (const owner of OWNERS) await wake(sql, owner, zone, owner.hasConflict);
}

async function wake(
  sql: Sql,
  { table, name }: OwnerTable,
  zone: { project_id: string; name: string },
  condition: string,
): Promise<void> {
  const where = `project_id = $1 and deleted_at is null and dns = 'automatic' and ${condition}
    and (${name} = $2 or right(${name}, length($2) + 1) = '.' || $2)`;
  await wakeRows(sql, { table, where, values: [zone.project_id, zone.name] });
}
