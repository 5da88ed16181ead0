// Unexpected exits of database servers: each is reported once, and lengthens the back-off before the next start.
import { appendDatabaseLines, type DatabaseLineInput } from '../../../models/applications/log_line';
import { appendExit, restartDelayMs } from '../../restart_backoff';
import { progressing, type JobContext, type Outcome } from '../../job';
import type { ExitHistory } from './row';

/** `observed`: of the row, where the ends are remembered. `reason`: a sentence for users. */
interface ServerExit {
  observed: ExitHistory | null;
  reason: string;
  line: Omit<DatabaseLineInput, 'level' | 'message'>;
}

/** The outcome while the back-off runs; null: the server may be started now. */
export async function backoffAfterExit(
  { observed, reason, line }: ServerExit,
  ctx: JobContext,
): Promise<Outcome | null> {
  const exits = observed?.down ? (observed.exits ?? []) : appendExit(observed?.exits ?? [], new Date());
  const waitMs = restartDelayMs({ exits, status: 'starting' });
  if (!observed?.down) {
    await appendDatabaseLines(ctx.sql, [{ ...line, level: 'error', message: reason }]);
    return progressing(waitMs, { observed: { ...observed, exits, down: true }, status_reason: reason });
  }
  if (waitMs > 0) return progressing(waitMs);
  // The exit is handled: a later exit is a new one.
  await ctx.record({ observed: { ...observed, down: false } });
  return null;
}
