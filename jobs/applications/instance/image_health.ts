// The health of an instance as the HEALTHCHECK of its image has it. The checks themselves run in its sandbox.
import type { ImageHealthCheck } from '../../../core/protocols/image_settings';
import type { Handle, HealthReport } from '../../../drivers/runtime';
import { type JobContext, requireHost } from '../../job';

/** A busy host may be late. */
const LATE_MS = 60_000;
/** A result is only read here. */
const READ_EVERY_SECONDS_MAX = 10;

interface ImageHealth {
  /** Failure reason for users; null: healthy. */
  failure: string | null;
  /** The check has failed as often as the image allows. */
  isOver: boolean;
}

export async function findImageHealth(check: ImageHealthCheck, handle: Handle, ctx: JobContext): Promise<ImageHealth> {
  const report = await requireHost(ctx).runtime.health(handle);
  if (report === null) return { failure: 'has not finished its first health check', isOver: false };
  const allowedMs = (check.interval_seconds + check.timeout_seconds) * 1000 + LATE_MS;
  if (report.age_ms > allowedMs)
    return { failure: `has not finished a health check for ${Math.round(report.age_ms / 1000)} seconds`, isOver: true };
  return { failure: failureOf(check, report), isOver: report.misses >= check.retries };
}

function failureOf({ timeout_seconds }: ImageHealthCheck, { code, output }: HealthReport): string | null {
  if (code === 0) return null;
  if (code === 137) return `did not finish its health check within ${timeout_seconds} seconds`;
  return `ended its health check with exit code ${code}${output === '' ? '' : `: ${output}`}`;
}

/** Maximum time of an instance until its first successful check. */
export function allowedSecondsOf(check: ImageHealthCheck): number {
  const { start_period_seconds: startPeriod, interval_seconds: interval, timeout_seconds, retries } = check;
  return Math.max(startPeriod, interval) + retries * (interval + timeout_seconds);
}

export function readIntervalMs({ interval_seconds }: ImageHealthCheck): number {
  return Math.min(interval_seconds, READ_EVERY_SECONDS_MAX) * 1000;
}
