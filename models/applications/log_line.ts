// Lines of logs: how they are written. How they are read: models/applications/log_line/page.ts.
import type { Sql } from '../../core/context';
import {
  cleanMessage,
  type DatabaseLogSource,
  type LogLevel,
  type LogSource,
  type LogStep,
} from '../../core/log/log_line';
import { ensureDays, oldestObservation } from '../observers/observation_day';
import { named } from '../../db/statement';

export interface LogLineInput {
  /** Default: now. */
  at?: Date;
  project_id: string;
  application_id: string;
  preview_id?: string | null;
  deployment_id?: string | null;
  instance_id?: string | null;
  /** Of a line of a run: without a `step` it stands in its log alone, and not in the application's. */
  run_id?: string | null;
  process_type?: string | null;
  source: LogSource;
  /** Of a line that belongs to a deployment: such lines stand in its log, others in the application's. */
  step?: LogStep | null;
  /** Default: info. */
  level?: LogLevel;
  message: string;
}

/** A line of the server of a database, or of one of its replicas. */
export interface DatabaseLineInput {
  /** Default: now. */
  at?: Date;
  project_id: string;
  database_id: string;
  /** null: the database itself wrote it. */
  replica_id: string | null;
  source: DatabaseLogSource;
  /** Default: info. */
  level?: LogLevel;
  message: string;
}

/** Lines of one statement: short enough that encoding them keeps no request waiting. */
const BATCH = 1_000;
const FUTURE_MS = 60_000;

const INSERT =
  named(`insert into log_lines (at, resource_id, project_id, application_id, preview_id, deployment_id, instance_id,
    process_type, source, step, level, message)
  select * from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])`);
const NOTIFY = named(`select pg_notify('logs', id) from unnest($1::text[]) as id`);

/**
 * Writes lines in their order and notifies followers of the applications at commit (channel `logs`, each application's
 * id once per call). NUL and everything beyond 16 KiB are cut from messages; lines older than the longest retention are
 * dropped. Never pass a value of a variable: the platform's own lines hold no secrets.
 */
export async function appendLogLines(sql: Sql, lines: readonly LogLineInput[]): Promise<void> {
  await append(
    sql,
    lines.map(({ run_id, ...line }) => ({
      ...line,
      resource_id: (line.step ? null : run_id) ?? line.preview_id ?? line.application_id,
      followed: line.application_id,
    })),
  );
}

/** As appendLogLines, for lines of databases; followers are notified with the id of the database. */
export async function appendDatabaseLines(sql: Sql, lines: readonly DatabaseLineInput[]): Promise<void> {
  await append(
    sql,
    lines.map(({ database_id, replica_id, ...line }) => ({
      ...line,
      resource_id: replica_id ?? database_id,
      followed: database_id,
    })),
  );
}

type Line = Omit<LogLineInput, 'application_id' | 'run_id' | 'source'> & {
  application_id?: string;
  source: LogSource | DatabaseLogSource;
  /** Whose log it stands in. */
  resource_id: string;
  /** The id that followers of the log listen for. */
  followed: string;
};

async function append(sql: Sql, lines: readonly Line[]): Promise<void> {
  const timed = stamped(lines);
  if (!timed.length) return;
  await ensureDays(
    sql,
    timed.map(({ at }) => at),
  );
  for (let start = 0; start < timed.length; start += BATCH)
    await sql.query(INSERT, columnsOf(timed.slice(start, start + BATCH)));
  await sql.query(NOTIFY, [[...new Set(timed.map(({ followed }) => followed))]]);
}

type Timed = Line & { at: Date };

/**
 * Lines with a time that is missing or far ahead get the present time; lines beyond retention are dropped. Neither may
 * create a partition.
 */
function stamped(lines: readonly Line[]): Timed[] {
  const now = Date.now();
  const oldest = oldestObservation(now).getTime();
  const result: Timed[] = [];
  for (const line of lines) {
    const at = line.at && line.at.getTime() < now + FUTURE_MS ? line.at : new Date(now);
    if (at.getTime() >= oldest) result.push({ ...line, at });
  }
  return result;
}

function columnsOf(lines: readonly Timed[]): unknown[] {
  return [
    lines.map(({ at }) => at.toISOString()),
    lines.map(({ resource_id }) => resource_id),
    lines.map(({ project_id }) => project_id),
    lines.map(({ application_id }) => application_id ?? null),
    lines.map(({ preview_id }) => preview_id ?? null),
    lines.map(({ deployment_id }) => deployment_id ?? null),
    lines.map(({ instance_id }) => instance_id ?? null),
    lines.map(({ process_type }) => process_type ?? null),
    lines.map(({ source }) => source),
    lines.map(({ step }) => step ?? null),
    lines.map(({ level }) => level ?? 'info'),
    lines.map(({ message }) => cleanMessage(message)),
  ];
}
