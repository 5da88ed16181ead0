// Databases of a preview that stand in the place of those of its application (models/databases/preview_copy.ts).
import type { Sql } from '../../core/context';
import type { SecretBox } from '../../core/secrets';
import { sealedColumns } from '../base/sealed_columns';
import { named } from '../../db/statement';

const COPIES = named('select copies from previews where id = $1');
const VARIABLES = named('select database_variables as sealed from previews where id = $1');

/** `waiting`: they are made, or looked at again. `notes`: for the log of the deployment. */
export interface PreviewCopies {
  state: 'waiting' | 'ready' | 'failed';
  reason?: string;
  notes?: { level: 'info' | 'warning'; text: string }[];
}

/** What became of them; null: the preview shares the databases of the application, or is none. */
export async function copiesOfPreview(sql: Sql, previewId: string | null): Promise<PreviewCopies | null> {
  if (previewId === null) return null;
  const [row] = await sql.query<{ copies: PreviewCopies | null }>(COPIES, [previewId]);
  return row?.copies ?? null;
}

/** Variables that lead to them, in place of those of the application. */
export async function variablesOfPreview(
  sql: Sql,
  secrets: SecretBox,
  previewId: string | null,
): Promise<Record<string, string>> {
  if (previewId === null) return {};
  const [row] = await sql.query<{ sealed: string | null }>(VARIABLES, [previewId]);
  if (!row?.sealed) return {};
  const text = secrets.open(row.sealed, sealedColumns.previewVariables.contextOf(previewId));
  return JSON.parse(text) as Record<string, string>;
}
