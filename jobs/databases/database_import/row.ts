// The row of an import, as its job sees it.
import type { ImportReport } from '../../../drivers/database/imports/import';
import type { DatabaseImportMode, DatabaseImportPhase, DatabaseImportStatus } from '../../../schema/types';
import type { LoopRow } from '../../job';

export interface ImportRow extends LoopRow {
  database_id: string;
  status: DatabaseImportStatus;
  status_reason: string | null;
  mode: DatabaseImportMode;
  phase: DatabaseImportPhase | null;
  source_slot: string | null;
  finish_requested_at: string | null;
  make_source_read_only: boolean;
  sealed_source: string | null;
  exclude: string[];
  bytes_max: number;
  upload_expires_at: string | null;
  cancel_requested_at: string | null;
  finished_at: string | null;
  observed: ObservedImport | null;
}

/**
 * `refusal`: why it could not be finished when it was asked to the last time, and when that was. `failure`: why it
 * ends, before what is at the source is removed.
 */
export interface ObservedImport extends ImportReport {
  refusal?: { at: string; reason: string } | null;
  failure?: string;
}

export function importColumnsOf(report: ObservedImport): Record<string, unknown> {
  const { bytes_read, tables, not_taken_over } = report;
  return {
    ...{ bytes_read, tables, not_taken_over },
    // Recorded before it is made.
    ...(report.follow && { source_slot: report.follow.slot }),
    observed: report,
  };
}
