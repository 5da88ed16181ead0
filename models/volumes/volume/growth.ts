// Volumes that wait to grow until nothing uses them: their host cannot grow a mounted file system.
import type { Sql } from '../../../core/context';
import { makeRowsDue } from '../../../db/loop_rows';
import { named } from '../../../db/statement';

const WAITING = `application_id = $1 and deleted_at is null and status = 'in_use' and status_reason is not null
  and (observed ->> 'size_gb')::int < size_gb`;
const FIND = named(`select id from volumes where ${WAITING}`);

/** Whether a volume of the application waits to grow. */
export async function hasVolumesToGrow(sql: Sql, applicationId: string): Promise<boolean> {
  return (await sql.query(FIND, [applicationId])).length > 0;
}

/** Nothing uses them any more: they are looked at soon. */
export async function growVolumes(sql: Sql, applicationId: string): Promise<void> {
  await makeRowsDue(sql, { table: 'volumes', where: WAITING, values: [applicationId] });
}
