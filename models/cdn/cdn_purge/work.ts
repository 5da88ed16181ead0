// What the loop reads and writes of purges: which caches have done them.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const NODES = named('select node from cdn_purge_nodes where cdn_purge_id = $1');
const RECORD = named(
  'insert into cdn_purge_nodes (cdn_purge_id, node) values ($1, $2) on conflict (cdn_purge_id, node) do nothing',
);

/** Names of the caches that have done the purge. */
export async function purgedNodes(sql: Sql, purgeId: string): Promise<Set<string>> {
  const rows = await sql.query<{ node: string }>(NODES, [purgeId]);
  return new Set(rows.map(({ node }) => node));
}

export async function recordPurgedNode(sql: Sql, purgeId: string, node: string): Promise<void> {
  await sql.query(RECORD, [purgeId, node]);
}
