// Why an import has failed, without values of rows.
import type { DatabaseError } from 'pg';
import { DriverError, type DriverContext } from '../../../../core/driver';
import { cleanFailureText } from '../../../../core/log/failure_text';
import { toSentence } from '../../../../core/sentence';
import { requireGoing } from '../../imports/import';
import type { DumpStatement } from '../../imports/sql_reader';
import { isUnavailable } from '../session';

/** Of what a server says. */
export const REASON_CHARACTERS_MAX = 240;
const READ_ONLY = '25006';

class AtLine extends Error {
  constructor(
    readonly statement: DumpStatement,
    override readonly cause: unknown,
  ) {
    super('a statement failed');
  }
}

export function atStatement(statement: DumpStatement, cause: unknown): Error {
  return new AtLine(statement, cause);
}

/** With the line of the dump. @throws DriverError transient where the import was canceled, or its time is over */
export async function importFailureOf(
  error: unknown,
  whole: () => Promise<void>,
  ctx: DriverContext,
): Promise<unknown> {
  requireGoing(ctx);
  const cause = error instanceof AtLine ? error.cause : error;
  // A dump that was cut off, because its program failed: the program says more.
  if (cause instanceof DriverError && /incomplete/.test(cause.message)) await whole();
  if (!(error instanceof AtLine)) return connectionFailure(cause);
  const { statement } = error;
  if (cause instanceof DriverError)
    return new DriverError(cause.reason, `Line ${statement.line}: ${cause.message} ${NOTHING}`);
  if (isUnavailable(cause)) return connectionFailure(cause);
  const { code, message, where } = cause as DatabaseError & { where?: string };
  if (code === undefined) return cause;
  // `COPY places, line 7, column id: "x"`, without the value, which is of a row.
  const row = Number(/^COPY .*?, line (\d+)/.exec(where ?? '')?.[1] ?? 0);
  const reason = toSentence(cleanFailureText(withoutValues(message), REASON_CHARACTERS_MAX));
  const full = code === READ_ONLY ? ' The storage of the database is full, or writing is off.' : '';
  return Object.assign(
    new DriverError(
      'invalid',
      `Line ${statement.line + row}, at ${headOf(statement.text)}: ${reason}${full} ${NOTHING}`,
    ),
    { cause },
  );
}

/** Values are of rows. Names, and what is no SQL, stay. */
function withoutValues(message: string): string {
  return message.replace(/(: )"[^]*"$/, '$1"…"').replace(/\bvalue "[^"]*"/g, 'value "…"');
}

const NOTHING = 'Nothing was imported.';
/** What `pg_dump` writes into its head. */
export const DUMPED_FROM = /^--\s*Dumped from database version (\d+)/;

/** A newer server has statements that an older one does not know. */
export function withVersions(error: unknown, source: number | null, own: number): unknown {
  const { code = '' } = ((error as Error | undefined)?.cause ?? {}) as Partial<DatabaseError>;
  if (source === null || source <= own || !(error instanceof DriverError) || !/^(42|0A)/.test(code)) return error;
  const advice = 'Import into a database of that version.';
  const text = `${error.message} The source is PostgreSQL ${source}, and the database is ${own}. ${advice}`;
  return Object.assign(new DriverError(error.reason, text), { cause: error.cause });
}

function connectionFailure(error: unknown): unknown {
  if (!isUnavailable(error)) return error;
  const message = `The server of the database ended the connection of the import. ${NOTHING}`;
  return Object.assign(new DriverError('invalid', message), { cause: error });
}

/** What a statement is about, without values. */
export function headOf(text: string): string {
  const head = /^[^('=]*/.exec(text.replaceAll(/--[^\n]*\n/g, ' ').trim())?.[0] ?? '';
  return `\`${cleanFailureText(head, 80)}\``;
}
