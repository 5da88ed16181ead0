// Domains of customers that have become names of the platform since: its ingress serves the platform there.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const OUTRANKED = named(
  'select hostname, project_id from domains where hostname = any($1) and deleted_at is null order by hostname',
);

/** @param hostnames of the platform */
export function outrankedDomains(
  sql: Sql,
  hostnames: readonly string[],
): Promise<{ hostname: string; project_id: string }[]> {
  return sql.query(OUTRANKED, [hostnames]);
}
