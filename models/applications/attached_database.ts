// What jobs of applications must know of their databases.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';
import type { DatabaseEndpointAccess } from '../../schema/types';

export interface AttachedDatabase {
  engine: string;
  env_prefix: string;
  access: DatabaseEndpointAccess;
  /** Name of its Service where its server is in the cluster; absent in releases from before there were such. */
  host?: string | null;
  port: number;
}

const ATTACHED = named(`select d.engine, a.env_prefix, e.access, e.host, e.port
  from database_attachments a
  join databases d on d.id = a.database_id join database_endpoints e on e.id = a.endpoint_id
  where a.application_id = $1 order by a.id`);

export function attachedDatabases(sql: Sql, applicationId: string): Promise<AttachedDatabase[]> {
  return sql.query<AttachedDatabase>(ATTACHED, [applicationId]);
}
