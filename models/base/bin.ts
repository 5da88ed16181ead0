// The bin: how a deleted resource is kept for a time. A kind is added to it by `static bin` (docs/decisions/0230); what
// people do with the bin is models/bin/bin_entry.ts.
import type { Context, Sql } from '../../core/context';
import { mintId, timeOfId } from '../../core/ids';
import type { Config } from '../../core/config';
import { limits } from '../../core/limits';
import type { FormatName } from '../../core/formats/formats';
import { named } from '../../db/statement';
import type { Values } from '../../db/table';
import type { Resource } from './resource';

/** A row that is removed for good. */
export interface DeletedRow {
  id: string;
  project_id: string;
}

/** What a purge has: a request, or the periodic task that empties the bin. */
export type PurgeContext = Pick<Context, 'sql' | 'config'>;

/** How a kind is kept in the bin, stated as `static bin` of its class. */
export interface Bin<R extends Resource = Resource> {
  /** Format of a new name that a restore may give; null where the name cannot change. */
  nameFormat: FormatName | null;
  /** Charged while it is kept: storage. */
  isCharged?: true;
  /** Whether its data lie on the disk of this installation, so that a purge makes room there. */
  isOnDisk?(config: Config): boolean;
  /**
   * Removes for good what hangs on a deleted row, in the transaction of the purge; the rows of `along` and the row
   * itself follow. Where nothing is kept (`RETENTION_OF_DELETED_DAYS` is 0) it is called by the deletion.
   */
  purge?(ctx: PurgeContext, row: DeletedRow, along: readonly string[]): Promise<void>;
  /**
   * Checks and writes what the resource needs beside its row, which is there again, and brings back what went along.
   * @param memo as the deletion gave it
   * @returns notes: sentences about what could not be restored
   */
  restore?(ctx: Context, resource: R, memo: Values, along: readonly string[]): Promise<string[]>;
}

/** What a resource leaves behind in its entry. */
export interface Kept {
  /** Ids of rows of other kinds that go with it. Each has a column `deleted_at`, which the caller sets. */
  along?: readonly string[];
  /** What `restore` needs. */
  memo?: Values;
  /** Since when there is something to lose, where that is longer than the resource itself. */
  since?: string;
}

/** Whoever has a key can delete and purge. What is no try of the moment waits, until somebody has missed it. */
const HOURS = `make_interval(hours => ${limits.lossWaitHours})`;
const KEEP = named(`insert into deleted_resources
    (id, created_at, updated_at, project_id, resource_type, resource_id, name, kept_until, along, memo, purge_from)
  values ($1, $2, $2, $3, $4, $5, $6, $2::timestamptz + $7 * interval '1 day', $8, $9,
    case when $10::timestamptz < now() - ${HOURS} then $2::timestamptz + ${HOURS} else $2 end)`);

/** Whether deleted resources are kept at all. */
export function hasBin({ retentionOfDeletedDays }: Pick<Config, 'retentionOfDeletedDays'>): boolean {
  return retentionOfDeletedDays > 0;
}

/** Puts a resource that is being deleted into the bin. */
export async function keepInBin(
  ctx: Context,
  resource_type: string,
  resource: Resource,
  { along = [], memo = {}, since = resource.created_at }: Kept,
): Promise<void> {
  const id = mintId('del');
  // A project is in no other one.
  const { name = null, project_id = resource.id } = resource as { name?: string | null; project_id?: string };
  await ctx.sql.query(KEEP, [
    ...[id, timeOfId(id).toISOString(), project_id, resource_type, resource.id, name],
    ...[ctx.config.retentionOfDeletedDays, along, JSON.stringify(memo), since],
  ]);
}

/** SQL: whether the bin has the row `row` (an alias or a table), itself or with another resource. */
export const isKept = (row: string): string =>
  `exists (select from deleted_resources kept where kept.resource_id = ${row}.id or kept.along @> array[${row}.id])`;

/** What became of a row that was deleted when it was read. */
export type DeletedState = 'in_bin' | 'restored' | 'purged';

/**
 * In one snapshot: a row that is deleted and not in the bin never comes back, while what a claim has read may be a
 * moment old.
 */
export async function deletedState(sql: Sql, table: string, id: string): Promise<DeletedState> {
  const text = `select r.deleted_at is null as restored, ${isKept('r')} as kept from ${table} r where r.id = $1`;
  const [found] = await sql.query<{ restored: boolean; kept: boolean }>(named(text), [id]);
  if (found?.restored) return 'restored';
  return found?.kept ? 'in_bin' : 'purged';
}
