// Which applications are being deployed, while no deployment begins.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

const WITHIN = named(`select set_config('lock_timeout', '5s', true)`);
const LOCK = named('lock table deployments in share mode');
const BUSY = named(
  `select distinct application_id from deployments where status in ('queued', 'building', 'deploying')`,
);

/** In a transaction: until its end no deployment is made or goes on. Ids of applications. */
export async function applicationsBeingDeployed(sql: Pick<Sql, 'query'>): Promise<Set<string>> {
  await sql.query(WITHIN, []);
  await sql.query(LOCK, []);
  const rows = await sql.query<{ application_id: string }>(BUSY, []);
  return new Set(rows.map(({ application_id }) => application_id));
}
