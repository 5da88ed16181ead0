// Copies what servers of databases say into their log. Lines and position are written in one transaction, as those of
// applications (shipper.ts): the files of the servers are the buffer.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../core/log';
import { levelOf } from '../core/log_line';
import { parseLogLine } from '../drivers/database/postgresql/log';
import type { EngineDriver, EngineId } from '../drivers/database';
import type { LogChunk } from '../drivers/runtime';
import type { Database } from '../models/database';
import { appendDatabaseLines, type DatabaseLineInput } from '../models/log_line';
import { logPositions, moveLogPositions } from '../models/log_position';
import { loggedServers, type LoggedServer } from '../models/managed_database/servers';

export interface DatabaseShipperParts {
  database: Database;
  engines: ReadonlyMap<EngineId, EngineDriver>;
  log: Logger;
}

const LOOK_MS = 2_000;
const ABREAST = 16;

/** Starts copying in the background. One process for each host. */
export function startDatabaseShipper(parts: DatabaseShipperParts): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const ended = run(parts, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

async function run(parts: DatabaseShipperParts, signal: AbortSignal): Promise<void> {
  let away = false;
  while (!signal.aborted) {
    try {
      await round(parts, signal);
      away = false;
    } catch (error) {
      if (!away) parts.log.warn({ err: error }, 'the logs of databases could not be copied; they stay in their files');
      away = true;
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
  }
}

async function round(parts: DatabaseShipperParts, signal: AbortSignal): Promise<void> {
  const servers = (await loggedServers(parts.database)).filter(({ engine }) => parts.engines.has(engine as EngineId));
  if (!servers.length) return;
  const positions = await logPositions(parts.database, servers.map(keyOf));
  for (let start = 0; start < servers.length && !signal.aborted; start += ABREAST) {
    await Promise.all(servers.slice(start, start + ABREAST).map((server) => copy(parts, server, positions.get(keyOf(server)) ?? null, signal)));
  }
}

async function copy({ database, engines, log }: DatabaseShipperParts, server: LoggedServer, from: string | null, signal: AbortSignal): Promise<void> {
  const driver = engines.get(server.engine as EngineId) as EngineDriver;
  for (let position = from; !signal.aborted; ) {
    const chunk = await driver.readLog(server.server_id, position).catch((error: unknown) => void log.debug({ err: error, server: server.server_id }, 'no log'));
    if (!chunk || chunk.position === (position ?? '')) return;
    const { lines, position: to, more } = chunk;
    const before = position;
    await database.transaction(async (sql) => {
      await moveLogPositions(sql, [{ unit_id: keyOf(server), from: before, to }]);
      await appendDatabaseLines(sql, lines.map((line) => lineOf(server, line)));
    });
    if (!more) return;
    position = to;
  }
}

function lineOf({ engine, project_id, database_id, replica_id }: LoggedServer, { text }: LogChunk['lines'][number]): DatabaseLineInput {
  const place = { project_id, database_id, replica_id };
  if (engine !== 'postgresql') return { ...place, source: 'server', level: levelOf(text), message: text };
  const { at, source, severity, message } = parseLogLine(text);
  const level = source === 'slow_query' ? 'warning' : levelOf(`${severity ?? 'LOG'}: ${message}`);
  return { ...place, source, level, message, ...(at !== null && { at: new Date(at) }) };
}

function keyOf({ server_id }: LoggedServer): string {
  return `${server_id}.log`;
}
