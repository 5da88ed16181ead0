// The activity of the installation as text, a batch at a time: the download of the dashboard, and `platform audit`.
import type { Sql } from '../../core/context';
import { BYTE_ORDER_MARK, csvLine } from '../../core/formats/csv';
import {
  exportedEntry,
  readInstallationActivity,
  type ActivityFilter,
  type ExportFormat,
} from '../../models/projects/installation_activity';

const COLUMNS = [
  ...['time', 'id', 'action', 'outcome', 'actor_type', 'actor_id', 'actor_name', 'key_id', 'account_id'],
  ...['project_id', 'project_name', 'resource_type', 'resource_id', 'resource_name', 'changed_fields', 'request_id'],
];

export async function* exportActivity(
  sql: Pick<Sql, 'query'>,
  { format, filter }: { format: ExportFormat; filter: ActivityFilter },
): AsyncGenerator<string> {
  if (format === 'csv') yield BYTE_ORDER_MARK + csvLine(COLUMNS);
  for await (const rows of readInstallationActivity(sql, filter)) {
    const entries = rows.map(exportedEntry);
    yield entries.map((entry) => (format === 'csv' ? asCsv(entry) : `${JSON.stringify(entry)}\n`)).join('');
  }
}

function asCsv(entry: ReturnType<typeof exportedEntry>): string {
  return csvLine(
    COLUMNS.map((column) => {
      const value = entry[column];
      return Array.isArray(value) ? value.join(' ') : (value ?? null);
    }),
  );
}
