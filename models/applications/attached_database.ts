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
  left join databases c on c.preview_id = $2 and c.preview_of = a.database_id and c.deleted_at is null
  join databases d on d.id = coalesce(c.id, a.database_id)
  join database_endpoints e on case when c.id is null then e.id = a.endpoint_id
    else e.database_id = c.id and e.is_default and e.deleted_at is null end
  where a.application_id = $1 order by a.id`);

/** In a preview, its copies are in the place of those that it has copies of. */
export function attachedDatabases(
  sql: Sql,
  applicationId: string,
  previewId: string | null = null,
): Promise<AttachedDatabase[]> {
  return sql.query<AttachedDatabase>(ATTACHED, [applicationId, previewId]);
}
