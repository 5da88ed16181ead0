// Copies what servers of databases, and what listens before them, say into their log. Lines and position are written in one transaction, as those of
// applications (shipper.ts): the files of the servers are the buffer.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../core/log';
import { levelOf } from '../core/log_line';
import { parseLogLine } from '../drivers/database/postgresql/log';
import type { EngineDriver, EngineId } from '../drivers/database';
import type { EndpointDrivers } from '../drivers/endpoint';
import type { LogChunk } from '../drivers/runtime';
import type { ControlDatabase } from '../db/control_database';
import { loggedEndpoints } from '../models/database_endpoint/work';
import { appendDatabaseLines, type DatabaseLineInput } from '../models/log_line';
import { logPositions, moveLogPositions } from '../models/log_position';
import { loggedServers, type LoggedServer } from '../models/database/servers';

export interface DatabaseShipperParts {
  database: ControlDatabase;
  engines: ReadonlyMap<EngineId, EngineDriver>;
  endpoints: EndpointDrivers;
  log: Logger;
}

/** One log: where it is read, and what its lines become. */
interface Source {
  key: string;
  read(position: string | null): Promise<LogChunk>;
  line(text: string): DatabaseLineInput;
}

const POLL_MS = 2_000;
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
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
}

async function round(parts: DatabaseShipperParts, signal: AbortSignal): Promise<void> {
  const sources = [...(await serversOf(parts)), ...(await endpointsOf(parts))];
  if (!sources.length) return;
  const positions = await logPositions(
    parts.database,
    sources.map(({ key }) => key),
  );
  for (let start = 0; start < sources.length && !signal.aborted; start += ABREAST) {
    await Promise.all(
      sources
        .slice(start, start + ABREAST)
        .map((source) => copy(parts, source, positions.get(source.key) ?? null, signal)),
    );
  }
}

async function serversOf({ database, engines }: DatabaseShipperParts): Promise<Source[]> {
  const servers = await loggedServers(database);
  return servers.flatMap((server) => {
    const driver = engines.get(server.engine as EngineId);
    if (!driver) return [];
    return [
      {
        key: `${server.server_id}.log`,
        read: (position) => driver.readLog(server.server_id, position),
        line: (text) => serverLine(server, text),
      } satisfies Source,
    ];
  });
}

// The key is the name of the unit, so that the position stays as long as that.
async function endpointsOf({ database, endpoints }: DatabaseShipperParts): Promise<Source[]> {
  const found = await loggedEndpoints(database);
  return found.map(({ id, pooled, ...place }) => {
    const driver = pooled ? endpoints.pool : endpoints.spread;
    return {
      key: `${id}.server`,
      read: (position) => driver.readLog(id, position),
      line: (text) => ({ ...place, source: 'pooler', level: levelOf(text), message: text }),
    };
  });
}

async function copy(
  { database, log }: DatabaseShipperParts,
  { key, read, line }: Source,
  from: string | null,
  signal: AbortSignal,
): Promise<void> {
  for (let position = from; !signal.aborted;) {
    const chunk = await read(position).catch((error: unknown) => void log.debug({ err: error, unit: key }, 'no log'));
    if (!chunk || chunk.position === (position ?? '')) return;
    const { lines, position: to, more } = chunk;
    const before = position;
    await database.transaction(async (sql) => {
      await moveLogPositions(sql, [{ unit_id: key, from: before, to }]);
      await appendDatabaseLines(
        sql,
        lines.map(({ text }) => line(text)),
      );
    });
    if (!more) return;
    position = to;
  }
}

function serverLine({ engine, project_id, database_id, replica_id }: LoggedServer, text: string): DatabaseLineInput {
  const place = { project_id, database_id, replica_id };
  if (engine !== 'postgresql') return { ...place, source: 'server', level: levelOf(text), message: text };
  const { at, source, severity, message } = parseLogLine(text);
  const level = source === 'slow_query' ? 'warning' : levelOf(`${severity ?? 'LOG'}: ${message}`);
  return { ...place, source, level, message, ...(at !== null && { at: new Date(at) }) };
}
