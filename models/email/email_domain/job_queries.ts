// What the job of a sending domain reads beside its own row.
import type { Sql } from '../../../core/context';
import { named } from '../../../db/statement';

const ELSEWHERE = named(
  `select 1 from email_domains where name = $1 and id <> $2 and status = 'verified' and deleted_at is null`,
);

export async function isVerifiedElsewhere(sql: Sql, { id, name }: { id: string; name: string }): Promise<boolean> {
  return (await sql.query(ELSEWHERE, [name, id])).length > 0;
}
