// Imports: the file of one is fetched where it is at an address, and loaded by the engine of the database.
import { DriverError, StillRunning, type DriverContext } from '../../core/driver';
import { Problem } from '../../core/errors';
import { toSentence } from '../../core/sentence';
import type { ImportReport, ImportSource } from '../../drivers/database/imports/import';
import { openImportFiles } from '../../drivers/database/imports/import_files';
import { releaseAllLeases } from '../../db/lease';
import { DatabaseImport } from '../../models/databases/database_import';
import { isImportCanceled, recordExtensions } from '../../models/databases/database_import/job_queries';
import { openImportSource } from '../../models/databases/database_import/source';
import { findDatabase } from '../../models/databases/database_backup/job_queries';
import { failed, gone, LeaseLost, progressing, settled, type Job, type JobContext, type Outcome } from '../job';
import { fetchImportSource } from './database_import/fetch_source';
import { reconcileFollower, removeSourceSlot } from './database_import/follow';
import { importColumnsOf, type ImportRow } from './database_import/row';
import { requireEngineDriver, type DatabaseRow } from './database/row';
import { desiredServer } from './database/spec';

const HOUR_MS = 3_600_000;
const WAIT_MS = 2_000;
const CANCEL_POLL_MS = 1_000;
const REMOVE_AGAIN_MS = 30_000;
const REMOVE_WITHIN_MS = 7 * 24 * HOUR_MS;
/** The database reaches a stable status by itself. */
const BUSY = new Set(['provisioning', 'updating', 'upgrading', 'restoring', 'restarting', 'starting']);

export const job: Job<ImportRow> = {
  table: DatabaseImport.table,
  host: true,
  states: DatabaseImport.states,
  stepMs: 24 * HOUR_MS,
  deadlineMs: HOUR_MS,
  prepare: (sql) => releaseAllLeases(sql, DatabaseImport.table),
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : reconcile(row, ctx)),
};

async function reconcile(row: ImportRow, ctx: JobContext): Promise<Outcome> {
  if (row.status === 'awaiting_upload') return awaitUpload(row, ctx);
  if (row.status !== 'pending' && row.status !== 'running') {
    await filesOf(ctx).remove(row.id);
    return row.source_slot === null ? settled() : retryRemoval(row, ctx);
  }
  const database = await findDatabase<DatabaseRow>(ctx.sql, row.database_id);
  if (!database || database.deleted_at) return end(row, 'failed', 'The database is being deleted.', ctx);
  const isEnding = isFollowing(row) && row.cancel_requested_at !== null;
  if (BUSY.has(database.status) && !isEnding) return progressing(WAIT_MS);
  if (row.status === 'pending' && row.cancel_requested_at) return end(row, 'canceled', row.status_reason, ctx);
  if (isFollowing(row)) return follow(database, row, ctx);
  if (database.status !== 'available') return waitForServer(row, ctx);
  if (row.status === 'pending') return progressing(0, { status: 'running', started_at: now(), phase: 'copying' });
  return importInto(database, row, ctx);
}

async function awaitUpload(row: ImportRow, ctx: JobContext): Promise<Outcome> {
  const leftMs = Date.parse(row.upload_expires_at ?? now()) + HOUR_MS - Date.now();
  // One that was begun within the hour may be on its way.
  if (leftMs > 0) return settled({}, leftMs);
  return end(row, 'failed', 'No file was sent to its address.', ctx);
}

async function importInto(database: DatabaseRow, row: ImportRow, ctx: JobContext): Promise<Outcome> {
  const stop = watchCancellation(row, ctx);
  const own: JobContext = { ...ctx, signal: AbortSignal.any([ctx.signal, stop.signal]) };
  try {
    const driver = requireEngineDriver(ctx, database);
    if (!driver.importData) return await end(row, 'failed', 'This host cannot import into this engine.', ctx);
    const desired = await desiredServer(database, { ...ctx, record: rejectRecord });
    const work = {
      id: row.id,
      source: () => sourceOf(row, own),
      excluded: row.exclude,
      follows: row.mode === 'follow',
      previous: row.observed,
      report: (report: ImportReport) => ctx.record(importColumnsOf(report)),
    };
    // One that is canceled before it began is only cleared.
    const report = await driver.importData(desired, work, own);
    await recordExtensions(ctx.sql, database.id, report.extensions);
    await filesOf(ctx).remove(row.id);
    if (row.mode === 'follow')
      return progressing(0, { ...importColumnsOf(report), driver: database.engine, phase: 'following' });
    return settled({
      ...{ driver: database.engine, ...importColumnsOf(report), sealed_source: null },
      ...{ status: 'completed', status_reason: null, finished_at: now(), phase: null },
    });
  } catch (error) {
    // A Problem is an outage of the platform's own database.
    const isOurs = error instanceof LeaseLost || error instanceof StillRunning || error instanceof Problem;
    if (ctx.signal.aborted || isOurs) throw error;
    if (stop.signal.aborted) return end(row, 'canceled', 'It was canceled. Nothing was imported.', ctx);
    const isKnown = error instanceof DriverError;
    ctx.log[isKnown ? 'warn' : 'error']({ err: error, import_id: row.id }, 'an import failed');
    return end(row, 'failed', isKnown ? toSentence(error.message) : 'The platform met an internal error.', ctx);
  } finally {
    stop.end();
  }
}

/** What was begun has to be taken back, or to be completed. */
async function waitForServer(row: ImportRow, ctx: JobContext): Promise<Outcome> {
  if (row.observed === null) return end(row, 'failed', 'The database is not running.', ctx);
  return progressing(WAIT_MS, { status_reason: 'The database is not running. The import goes on once it is.' });
}

function isFollowing({ mode, phase, status }: ImportRow): boolean {
  return mode === 'follow' && status === 'running' && (phase === 'following' || phase === 'finishing');
}

async function follow(database: DatabaseRow, row: ImportRow, ctx: JobContext): Promise<Outcome> {
  if (row.cancel_requested_at) return end(row, 'canceled', 'It was canceled. The data that were copied stay.', ctx);
  if (row.observed?.failure) return end(row, 'failed', row.observed.failure, ctx);
  try {
    const done = await reconcileFollower(database, row, ctx);
    if (done) return done;
    const left = await removeSourceSlot(row, ctx);
    const columns = {
      ...{ status: 'completed', status_reason: left && left.reason, finished_at: now(), phase: null },
      ...{ lag_bytes: 0, lag_seconds: 0 },
    };
    // The source may be switched off by then.
    if (left) return settled({ ...columns, source_slot: left.name }, REMOVE_AGAIN_MS);
    return settled({ ...columns, sealed_source: null, source_slot: null });
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason !== 'invalid' || ctx.signal.aborted) throw error;
    ctx.log.warn({ err: error, import_id: row.id }, 'an import failed');
    const failure = toSentence(error.message);
    // A step that comes again finds no slot, which is not the reason.
    if (row.observed) await ctx.record(importColumnsOf({ ...row.observed, failure }));
    return end(row, 'failed', failure, ctx);
  }
}

async function sourceOf(row: ImportRow, ctx: JobContext): Promise<ImportSource> {
  const files = filesOf(ctx);
  const file = await files.find(row.id);
  if (file !== null) return { file };
  if (row.sealed_source === null)
    throw new DriverError('invalid', 'The file of the import is not on this host any more. Import it again.');
  const url = openImportSource(ctx.secrets, { id: row.id, sealed_source: row.sealed_source });
  return fetchImportSource(url, { ...row, files }, ctx);
}

/** Its owner may cancel it at any time. */
function watchCancellation(row: ImportRow, ctx: JobContext): { signal: AbortSignal; end(): void } {
  const stop = new AbortController();
  const poll = async (): Promise<void> => {
    if (await isImportCanceled(ctx.sql, row.id).catch(() => false)) stop.abort();
  };
  const timer = setInterval(() => void poll(), CANCEL_POLL_MS);
  if (row.cancel_requested_at) stop.abort();
  return { signal: stop.signal, end: () => clearInterval(timer) };
}

async function end(
  row: ImportRow,
  status: 'failed' | 'canceled',
  given: string | null,
  ctx: JobContext,
): Promise<Outcome> {
  await filesOf(ctx).remove(row.id);
  const slot = row.mode === 'follow' ? await removeSourceSlot(row, ctx) : null;
  const reason = slot === null ? given : `${given ?? ''} ${slot.reason}`.trim();
  const columns = {
    ...{ finished_at: now(), phase: null, lag_bytes: null, lag_seconds: null },
    ...(slot === null ? { sealed_source: null, source_slot: null } : { source_slot: slot.name }),
  };
  const nextMs = slot && REMOVE_AGAIN_MS;
  return status === 'failed'
    ? failed(reason ?? 'The import failed.', columns, nextMs)
    : settled({ ...columns, status, status_reason: reason }, nextMs);
}

/** A slot keeps the log of the source, until its disk is full. */
async function retryRemoval(row: ImportRow, ctx: JobContext): Promise<Outcome> {
  if (row.sealed_source === null) return settled();
  const left = await removeSourceSlot(row, ctx);
  if (left === null) {
    const reason = row.status_reason?.replace(/ ?The replication slot [^]*$/, '') || null;
    return settled({ sealed_source: null, source_slot: null, status_reason: reason });
  }
  const isLate = Date.parse(row.finished_at ?? now()) + REMOVE_WITHIN_MS < Date.now();
  return isLate ? settled({ sealed_source: null }) : settled({}, REMOVE_AGAIN_MS);
}

async function tearDown(row: ImportRow, ctx: DriverContext & JobContext): Promise<Outcome> {
  await filesOf(ctx).remove(row.id);
  const left = row.source_slot !== null ? await removeSourceSlot(row, ctx) : null;
  if (left === null) return gone;
  // Its deletion is what starts the time.
  if (Date.parse(row.deleted_at ?? now()) + REMOVE_WITHIN_MS > Date.now()) return progressing(REMOVE_AGAIN_MS);
  ctx.log.warn({ import_id: row.id, slot: left.name }, 'a replication slot is left at the source of an import');
  return gone;
}

function filesOf({ config }: JobContext): ReturnType<typeof openImportFiles> {
  return openImportFiles(config.databaseDir);
}

// Columns of the database are written by its own job only.
function rejectRecord(): Promise<void> {
  return Promise.reject(new Error('the row of a database is not written here'));
}

function now(): string {
  return new Date().toISOString();
}
