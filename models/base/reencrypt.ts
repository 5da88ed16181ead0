// After a rotation of the secret key: encrypts again what older keys have encrypted.
import type { Sql } from '../../core/context';
import type { SecretBox } from '../../core/secrets';
import { named } from '../../db/statement';
import { sealedColumns, type SealedColumn } from './sealed_columns';

export interface Reencrypted {
  /** `users.totp_secret`. */
  place: string;
  reencrypted: number;
  /** Values that were left as they were, since no key opens them. */
  unreadable: number;
}

/** Rows that one statement looks at. */
const PAGE_SIZE = 500;

/**
 * Encrypts all values of all sealed columns with the current key. Each value is written by itself, unless it has
 * changed since it was read: the service may run meanwhile, and what was interrupted continues when it is called again.
 * @returns the columns that had values under other keys
 */
export async function reencryptColumns(sql: Sql, secrets: SecretBox): Promise<Reencrypted[]> {
  const found: Reencrypted[] = [];
  for (const column of Object.values<SealedColumn>(sealedColumns))
    for (const table of column.tables) found.push(await reencryptColumn(sql, secrets, table, column));
  return found.filter(({ reencrypted, unreadable }) => reencrypted + unreadable > 0);
}

async function reencryptColumn(
  sql: Sql,
  secrets: SecretBox,
  table: string,
  { column, key, contextOf }: SealedColumn,
): Promise<Reencrypted> {
  const columns = key.join(', ');
  const parameters = (first: number): string => key.map((_, i) => `$${first + i}`).join(', ');
  // The beginning of a long value is read without the rest of it.
  const page = named(`select array[${columns}]::text[] as key,
      case when left(${column}, length($1)) <> $1 then ${column} end as sealed
    from (select ${columns}, ${column} from ${table} where (${columns}) > (${parameters(2)})
      order by ${columns} limit ${PAGE_SIZE}) page order by ${columns}`);
  const write = named(`update ${table} set ${column} = $1 where ${column} = $2 and (${columns}) = (${parameters(3)})
    returning true as written`);
  const result: Reencrypted = { place: `${table}.${column}`, reencrypted: 0, unreadable: 0 };
  let after = key.map(() => '');
  for (;;) {
    const rows = await sql.query<{ key: string[]; sealed: string | null }>(page, [secrets.prefix, ...after]);
    for (const row of rows) {
      if (row.sealed === null) continue;
      const plain = openedOrNull(secrets, row.sealed, contextOf(...row.key));
      if (plain === null) result.unreadable += 1;
      else {
        const values = [secrets.seal(plain, contextOf(...row.key)), row.sealed, ...row.key];
        result.reencrypted += (await sql.query(write, values)).length;
      }
    }
    if (rows.length < PAGE_SIZE) return result;
    after = (rows.at(-1) as { key: string[] }).key;
  }
}

function openedOrNull(secrets: SecretBox, sealed: string, context: string): string | null {
  try {
    return secrets.open(sealed, context);
  } catch {
    return null;
  }
}
