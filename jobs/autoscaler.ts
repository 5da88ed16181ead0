// The autoscaler: one look at all process types that have bounds. It runs as a task of jobs/schedule.ts; instances are
// started and stopped by the job of their application.
import { autoscale } from '../models/autoscaler';
import type { JobContext, Values } from './job';

export { POLL_MS as LOOK_MS } from '../models/process/autoscale';

/** One look. Answers what to keep for the operator. */
export async function runAutoscalerTask(ctx: JobContext): Promise<{ more: boolean; report: Values }> {
  const { checked, changed } = await autoscale(ctx.sql);
  for (const change of changed) ctx.log.info(change, 'autoscaled a process type');
  return { more: false, report: { checked, changed: changed.length } };
}
