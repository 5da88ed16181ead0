import type { LoopRow } from '../../job';
import type { RunStatus, RunTriggerType } from '../../../schema/types';

export interface RunRow extends LoopRow {
  project_id: string;
  application_id: string;
  preview_id: string | null;
  /** That the command enters; null: it runs beside the instances. */
  instance_id: string | null;
  release_id: string;
  deployment_id: string;
  command: string;
  process_type: string;
  application_type: string;
  /** Sealed, see models/runs/run/variables.ts. */
  variables: string | null;
  timeout_seconds: number;
  tty: boolean;
  detached: boolean;
  status: RunStatus;
  trigger_type: RunTriggerType;
  trigger_id: string | null;
  cancel_requested_at: string | null;
  exceeded_limit: string | null;
  /** Recorded once the command has ended, before its output is stored. */
  exit_code: number | null;
  started_at: string | null;
  finished_at: string | null;
}

const UNFINISHED: ReadonlySet<RunStatus> = new Set(['queued', 'starting', 'running']);

export function isFinished({ status }: Pick<RunRow, 'status'>): boolean {
  return !UNFINISHED.has(status);
}
