import type { Sql } from '../../core/context';
import { named } from '../statement';

const OWN = named('select 1 from database_ports p join database_endpoints e on e.id = p.owner_id and e.port = p.port where p.owner_id = $1');

/** Whether something else than a server has to listen for the endpoint. */
export async function hasOwnPort(sql: Sql, endpointId: string): Promise<boolean> {
  return (await sql.query(OWN, [endpointId])).length > 0;
}
