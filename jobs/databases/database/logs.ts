// The logs of database servers, including replicas.
import type { Sql } from '../../../core/context';
import { levelOf } from '../../../core/log/log_level';
import type { EngineId } from '../../../drivers/database';
import { parseLogLine } from '../../../drivers/database/postgresql/log';
import { loggedServers, type LoggedServer } from '../../../models/databases/database/servers';
import { appendDatabaseLines, type DatabaseLineInput } from '../../../models/applications/log_line';
import type { LogSource } from '../../declarations';
import type { HostDrivers } from '../../job';

export async function databaseLogs(sql: Sql, { databases, clusterDatabases }: HostDrivers): Promise<LogSource[]> {
  return (await loggedServers(sql)).flatMap((server): LogSource[] => {
    const driver = (server.on_cluster ? clusterDatabases : databases).get(server.engine as EngineId);
    if (!driver) return [];
    return [
      {
        key: `${server.server_id}.log`,
        read: (position) => driver.readLog(server.server_id, position),
        append: (session, lines) =>
          appendDatabaseLines(
            session,
            lines.map((text) => serverLine(server, text)),
          ),
      },
    ];
  });
}

function serverLine({ engine, project_id, database_id, replica_id }: LoggedServer, text: string): DatabaseLineInput {
  const origin = { project_id, database_id, replica_id };
  if (engine !== 'postgresql') return { ...origin, source: 'server', level: levelOf(text), message: text };
  const { at, source, severity, message } = parseLogLine(text);
  const level = source === 'slow_query' ? 'warning' : levelOf(`${severity ?? 'LOG'}: ${message}`);
  return { ...origin, source, level, message, ...(at !== null && { at: new Date(at) }) };
}
