// The database servers of this host, for the agents that copy their logs.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

export interface LoggedServer {
  server_id: string;
  engine: string;
  on_cluster: boolean;
  project_id: string;
  database_id: string;
  /** null: the server of the database itself. */
  replica_id: string | null;
}

// One that is being promoted is the server of its new database already.
const SERVERS =
  named(`select server_id, engine, on_cluster, project_id, id as database_id, null as replica_id from databases
    where deleted_at is null and driver is not null
  union all select r.server_id, d.engine, d.on_cluster, r.project_id, r.database_id, r.id from database_replicas r
    join databases d on d.id = r.database_id
    where r.deleted_at is null and r.driver is not null and r.status <> 'promoting'`);

const WITHOUT_ROW = named(`select id from unnest($1::text[]) as known (id)
  where not exists (select 1 from databases d where d.server_id = known.id)`);

/** Those of the ids of servers that no database has, not even one in tear-down. */
export async function serversWithoutRow(sql: Sql, ids: readonly string[]): Promise<string[]> {
  return (await sql.query<{ id: string }>(WITHOUT_ROW, [ids])).map(({ id }) => id);
}

export function loggedServers(sql: Sql): Promise<LoggedServer[]> {
  return sql.query<LoggedServer>(SERVERS, []);
}
