// The row of an instance, and functions shared by its phases.
import type { LogLevel } from '../../../core/log/log_line';
import type { Handle, StopOptions } from '../../../drivers/runtime';
import type { Launch } from '../../../models/applications/instance_work';
import { appendLogLines } from '../../../models/applications/log_line';
import type { JobContext, LoopRow } from '../../job';
import type { InstanceStatus } from '../../../schema/types';

export interface InstanceRow extends LoopRow {
  project_id: string;
  application_id: string;
  preview_id: string | null;
  process_type: string;
  deployment_id: string;
  status: InstanceStatus;
  restart_count: number;
  started_at: string | null;
  port: number | null;
  handle: Handle | null;
  /** Of a cluster: the pod that the row follows. */
  pod_uid: string | null;
  /** RFC 3339. */
  exits: string[];
  misses: number;
  /** Why a deployment should not count on it: it started, but was not healthy in time, or could not be started. */
  observed: { fault?: 'health' | 'start' } | null;
}

/** An instance that is not healthy gets a short grace period. */
const GRACE_MS = 5_000;

/** Stop options of an instance that will be restarted. */
export function restartStop({ settings }: Pick<Launch, 'settings'>): StopOptions {
  const grace_ms = Math.min(GRACE_MS, settings.run.shutdown_grace_seconds * 1000);
  return { grace_ms, signal: stopSignalOf(settings) };
}

/** STOPSIGNAL of an image; its name was checked when the image was read. */
export function stopSignalOf({ image }: Launch['settings']): NodeJS.Signals {
  return (image?.stop_signal ?? 'SIGTERM') as NodeJS.Signals;
}

/** The process type that receives requests, and so the only one with network health checks. */
export const WEB = 'web';

/** A line of the platform in the log of the application. */
export function appendInstanceLog(
  row: InstanceRow,
  ctx: JobContext,
  message: string,
  level: LogLevel = 'info',
): Promise<void> {
  const { project_id, application_id, preview_id, deployment_id, process_type, id } = row;
  const place = { project_id, application_id, preview_id, process_type, deployment_id, instance_id: id };
  return appendLogLines(ctx.sql, [{ ...place, source: 'system', level, message: `${process_type}: ${message}` }]);
}

/** Whether the instance has a network health check. */
export function hasHealthCheck(row: InstanceRow, { settings }: Launch): boolean {
  return row.process_type === WEB && settings.health_check.type !== 'none';
}
