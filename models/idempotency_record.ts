// Stored answers of Idempotency-Key, sealed, in the transaction of their effect.
import type { Context } from '../core/context';
import { limits } from '../core/limits';
import { named } from '../db/statement';
import { sealedColumns } from './base/sealed_columns';

interface StoredResponse {
  status: number;
  body: string;
  headers: Record<string, string>;
}

const LOCK = named(`select pg_try_advisory_xact_lock(hashtextextended('idempotency ' || $1, 0)) as locked`);
const FIND = named(
  `select fingerprint, answer from idempotency_records where scope = $1
    and created_at > now() - make_interval(hours => $2)`,
);
const SAVE = named(`insert into idempotency_records (scope, fingerprint, status, answer) values ($1, $2, $3, $4)
  on conflict (scope) do update set fingerprint = excluded.fingerprint, status = excluded.status,
    answer = excluded.answer, created_at = now()`);

export const idempotencyRecords = {
  /** Holds the scope until the end of the transaction; false while another request holds it. */
  async lock(ctx: Context, scope: string): Promise<boolean> {
    const [row] = await ctx.sql.query<{ locked: boolean }>(LOCK, [scope]);
    return row?.locked === true;
  },

  /** The answer of the last 24 hours. */
  async find(ctx: Context, scope: string): Promise<{ fingerprint: string; answer: StoredResponse } | null> {
    const [row] = await ctx.sql.query<{ fingerprint: string; answer: string }>(FIND, [
      scope,
      limits.idempotencyTtlHours,
    ]);
    if (!row) return null;
    return {
      fingerprint: row.fingerprint,
      answer: JSON.parse(
        ctx.secrets.open(row.answer, sealedColumns.idempotentAnswer.contextOf(scope)),
      ) as StoredResponse,
    };
  },

  async save(ctx: Context, scope: string, fingerprint: string, answer: StoredResponse): Promise<void> {
    const sealed = ctx.secrets.seal(JSON.stringify(answer), sealedColumns.idempotentAnswer.contextOf(scope));
    await ctx.sql.query(SAVE, [scope, fingerprint, answer.status, sealed]);
  },
};
