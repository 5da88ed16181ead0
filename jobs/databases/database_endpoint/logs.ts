// The logs of the listeners of endpoints: poolers and load balancers.
import type { Sql } from '../../../core/context';
import { levelOf } from '../../../core/log/log_level';
import { loggedEndpoints } from '../../../models/databases/database_endpoint/work';
import { appendDatabaseLines } from '../../../models/applications/log_line';
import type { LogSource } from '../../declarations';
import type { HostDrivers } from '../../job';

export async function endpointLogs(sql: Sql, { endpoints }: HostDrivers): Promise<LogSource[]> {
  const found = await loggedEndpoints(sql);
  return found.map(({ id, pooled, ...origin }): LogSource => {
    const driver = pooled ? endpoints.pool : endpoints.spread;
    return {
      // The name of the unit, so that the position stays as long as that.
      key: `${id}.server`,
      read: (position) => driver.readLog(id, position),
      append: (session, lines) =>
        appendDatabaseLines(
          session,
          lines.map((message) => ({ ...origin, source: 'pooler', level: levelOf(message), message })),
        ),
    };
  });
}
