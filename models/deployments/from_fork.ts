// Previews of code from a fork, whose author may have no access to the repository.
import type { Sql } from '../../core/context';
import { named } from '../../db/statement';

const FIND = named('select from_fork from previews where id = $1');

/** Whether a preview shows a pull request from a fork. It gets no variables of the application. */
export async function isFromFork(sql: Sql, previewId: string | null): Promise<boolean> {
  if (previewId === null) return false;
  const [row] = await sql.query<{ from_fork: boolean }>(FIND, [previewId]);
  return row?.from_fork ?? true;
}
