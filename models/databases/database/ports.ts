// Another port for a server or an endpoint whose port a foreign program uses.
import type { Config } from '../../../core/config';
import type { Sql } from '../../../core/context';
import type { SecretBox } from '../../../core/secrets';
import type { Session } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { restartForUsers } from '../database_attachment/restart';

/** Whose port it is. */
export interface PortOwner {
  kind: 'database' | 'replica' | 'endpoint';
  id: string;
  database_id: string;
}

const FREE = named(`select port from generate_series($1::int, $2::int) as port
  where not exists (select 1 from database_ports d where d.port = port.port) order by port`);
const MOVE = named('update database_ports set port = $2 where owner_id = $1');
const OWN = {
  database: named('update databases set port = $2 where id = $1'),
  replica: named('update database_replicas set port = $2 where id = $1'),
  endpoint: named('update database_endpoints set port = $2 where id = $1'),
};
// Endpoints without a port in database_ports share the port of the server.
const ENDPOINTS =
  named(`update database_endpoints e set port = $2 where e.database_id = $1 and e.replica_id is not distinct from $3
  and e.deleted_at is null and not exists (select 1 from database_ports p where p.owner_id = e.id)`);
const USERS = named('select distinct user_id from database_attachments where database_id = $1 order by 1');

/** Ports of DATABASE_PORTS that are not reserved. */
export async function freePorts(sql: Sql, [from, to]: Config['databasePorts']): Promise<number[]> {
  return (await sql.query<{ port: number }>(FREE, [from, to])).map(({ port }) => port);
}

/** In one transaction: the port, the addresses of endpoints, and the variables of applications, which are restarted. */
export async function movePort(
  { sql, secrets, config }: { sql: Session; secrets: SecretBox; config: Config },
  { kind, id, database_id }: PortOwner,
  port: number,
): Promise<void> {
  await sql.transaction(async (session) => {
    await session.query(MOVE, [id, port]);
    await session.query(OWN[kind], [id, port]);
    if (kind !== 'endpoint') await session.query(ENDPOINTS, [database_id, port, kind === 'replica' ? id : null]);
    const users = await session.query<{ user_id: string }>(USERS, [database_id]);
    await restartForUsers(
      { sql: session, secrets, config },
      database_id,
      users.map(({ user_id }) => user_id),
    );
  });
}
