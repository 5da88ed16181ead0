// The log of an instance of CloudNativePG: a JSON object for each line, of its manager and, in `record`, of PostgreSQL.
import type { LogChunk } from '../../../runtime';

type Line = LogChunk['lines'][number];

/**
 * What PostgreSQL said, as its log in a pod is (`log_line_prefix` of drivers/database/postgresql/pods/program.ts);
 * other lines as they are.
 */
export function serverLines(line: Line): Line[] {
  const entry = objectOf(line.text);
  if (entry === null) return [line];
  const record = entry.record as Record<string, unknown> | undefined;
  if (entry.logger !== 'postgres' || record === undefined) return [];
  const word = (name: string): string => String(record[name] ?? '');
  const prefix = `${word('log_time')} [${word('process_id')}] ${word('user_name')}@${word('database_name')}`;
  const message = [word('message'), word('detail')].filter(Boolean).join(' ').replaceAll('\n', ' ');
  return [{ ...line, text: `${prefix} ${word('sql_state_code')} ${word('error_severity')}:  ${message}` }];
}

function objectOf(text: string): Record<string, unknown> | null {
  if (!text.startsWith('{')) return null;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
