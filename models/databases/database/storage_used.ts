// How full the disks of databases are, as their jobs have last measured it.
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';
import { loaderOf } from '../../base/load';

const USED = named(`select id, (observed ->> 'storage_used_bytes')::float8 as bytes from databases where id = any($1)`);

/** Of the primary; null until it was measured. Those of one query are read together. */
export function storageUsedBytes(ctx: Context, databaseId: string): Promise<number | null> {
  const load = async (ids: readonly string[]): Promise<(number | null)[]> => {
    const rows = await ctx.sql.query<{ id: string; bytes: number | null }>(USED, [ids]);
    const bytesOf = new Map(rows.map(({ id, bytes }) => [id, bytes]));
    return ids.map((id) => bytesOf.get(id) ?? null);
  };
  return loaderOf(ctx, 'storage_used_bytes', load).load(databaseId);
}
