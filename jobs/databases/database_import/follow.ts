// Imports that follow their source: their follower works in the background, and is looked at here.
import { DriverError } from '../../../core/driver';
import { OutboundError } from '../../../core/outbound/trace';
import { toSentence } from '../../../core/sentence';
import type { SourceServer } from '../../../drivers/database/imports/import';
import { findSourceSlot } from '../../../models/databases/database_import/job_queries';
import { openImportSource } from '../../../models/databases/database_import/source';
import { findDatabase } from '../../../models/databases/database_backup/job_queries';
import { progressing, requireHost, type JobContext, type Outcome } from '../../job';
import { requireEngineDriver, type DatabaseRow } from '../database/row';
import { desiredServer } from '../database/spec';
import { sourceServerOf } from './fetch_source';
import { importColumnsOf, type ImportRow } from './row';

const LOOK_MS = 1_000;
const AWAY = 'The database is not running. The import goes on once it is.';

const LEFT = (slot: string): string =>
  `The replication slot ${slot} could not be removed at the source, which keeps its log until it is. The platform ` +
  'tries again for a week; cancel the import to try now, or remove it there with pg_drop_replication_slot.';

/** null: all is here, and what was made at the source can go. @throws DriverError invalid where it cannot go on */
export async function reconcileFollower(
  database: DatabaseRow,
  row: ImportRow,
  ctx: JobContext,
): Promise<Outcome | null> {
  const { observed } = row;
  if (observed?.is_complete) return null;
  if (database.status !== 'available') return progressing(LOOK_MS, { status_reason: AWAY });
  const driver = requireEngineDriver(ctx, database);
  const follow = observed?.follow;
  if (!driver.followSource || !observed || !follow?.start)
    throw new DriverError('invalid', 'The position of the copied data is not known. Import again.');
  const desired = await desiredServer(database, { ...ctx, record: rejectRecord });
  const at = row.finish_requested_at && new Date(row.finish_requested_at).toISOString();
  const isAsked = at !== null && observed.refusal?.at !== at;
  const seen = await driver.followSource(desired, {
    ...{ id: row.id, slot: follow.slot, start: follow.start, excluded: row.exclude, report: observed },
    ...{ source: sourceOf(row, ctx), finish: isAsked ? { read_only: row.make_source_read_only, at } : null },
  });
  const isRefused = isAsked && seen.finish_refusal !== null;
  const refusal = isRefused ? { at, reason: seen.finish_refusal! } : isAsked ? null : (observed.refusal ?? null);
  const report = { ...observed, ...seen.report, follow, is_complete: seen.is_complete, refusal };
  const columns = { ...importColumnsOf(report), lag_bytes: seen.lag_bytes, lag_seconds: seen.lag_seconds };
  // Recorded before the slot is removed: without it nobody would know that nothing is missing.
  if (seen.is_complete) {
    await ctx.record(columns);
    row.observed = report;
    return null;
  }
  const phase = isAsked && !isRefused ? 'finishing' : 'following';
  return progressing(LOOK_MS, {
    ...columns,
    // A request may have come meanwhile.
    ...(phase !== row.phase && { phase }),
    status_reason: seen.reason ?? refusal?.reason ?? null,
  });
}

/** Ends the follower, and removes what is at the source. @returns what is left there, and why; null: nothing */
export async function removeSourceSlot(
  row: ImportRow,
  ctx: JobContext,
): Promise<{ name: string; reason: string } | null> {
  // The step that fails may have made it.
  const slot = await findSourceSlot(ctx.sql, row.id);
  if (slot === null || row.sealed_source === null) return null;
  const driver = requireHost(ctx).databases.get('postgresql');
  if (!driver?.endFollowing) return { name: slot, reason: LEFT(slot) };
  const database = await findDatabase<DatabaseRow>(ctx.sql, row.database_id);
  const isThere = database && database.deleted_at === null && database.status === 'available';
  const desired = isThere ? await desiredServer(database, { ...ctx, record: rejectRecord }) : null;
  const isTakenBack = row.observed?.is_complete !== true && row.make_source_read_only;
  try {
    const source = sourceOf(row, ctx);
    await driver.endFollowing(desired, { ...{ id: row.id, slot, source }, makeWritable: isTakenBack });
    return null;
  } catch (error) {
    if (!(error instanceof DriverError)) throw error;
    return { name: slot, reason: `${LEFT(slot)} ${toSentence(error.message)}` };
  }
}

function sourceOf(row: ImportRow, ctx: JobContext): () => Promise<SourceServer> {
  const { secrets } = ctx;
  const { id, sealed_source } = row;
  return () => {
    if (sealed_source === null) throw new DriverError('invalid', 'The address of the source is not known any more.');
    return sourceServerOf(openImportSource(secrets, { id, sealed_source }), ctx).catch((error: Error) => {
      throw error instanceof OutboundError ? new DriverError('transient', error.message) : error;
    });
  };
}

// Columns of the database are written by its own job only.
function rejectRecord(): Promise<void> {
  return Promise.reject(new Error('the row of a database is not written here'));
}
