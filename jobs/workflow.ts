// Long work as a declared list of steps. A kind lists its steps by name; `runWorkflow` runs the first one that is not
// done, and does around each what all of them need: the time left, cancellation, the log line, the failure sentence.
import { DriverError, isEngineAway, type DriverErrorReason } from '../core/driver';
import type { LogLevel } from '../core/log/log_line';
import { toSentence } from '../core/sentence';
import { runSteps, type DeclaredStep } from '../core/steps';
import { hasWaited, waitingReason } from './failure_policy';
import { progressing, settled, type JobContext, type LoopRow, type Outcome } from './job';

export interface WorkflowStep<Row extends LoopRow> extends DeclaredStep<Row, JobContext> {
  /** Continues `The host cannot`, in the reason of a failure. */
  readonly task: string;
  /** Attempts of the row after which a transient failure is final. Default: until the deadline of the job. */
  readonly attemptsMax?: number;
  /** The step says itself what became of work that took too long, or it must not be stopped half-way. */
  readonly ownTimeLimit?: true;
  /** From the row alone, which may have been written by an earlier release of the platform. */
  isDone(row: Row, ctx: JobContext): boolean;
  /**
   * May be called at any time again, also after a crash within it. `progressing` with columns by which `isDone` becomes
   * true ends the step; `done` ends it without any, and the next step begins at once: it is asked again each time.
   */
  run(row: Row, ctx: StepContext): Promise<Outcome | 'done'>;
}

/** `signal` and `deadline` end with the time of the whole work too, and `signal` when the work is canceled. */
export interface StepContext extends JobContext {
  /** A line in the log that users read. */
  appendLog(message: string, level?: LogLevel): Promise<void>;
  /** Milliseconds that the work may still take. @throws StepFailure when there are none */
  requireTimeLeft(): number;
}

export interface Workflow<Row extends LoopRow, Step extends WorkflowStep<Row> = WorkflowStep<Row>> {
  readonly steps: readonly Step[];
  /** For all of the work; absent where its engine ends what takes too long. `leftMs` is negative when it is over. */
  time?: { leftMs(row: Row, ctx: JobContext): number; overReason(ctx: JobContext): string };
  /** Begins a wait for an engine that is away, which does not count as time, and ends it before the next attempt. */
  wait?: { begin(row: Row, ctx: JobContext): Promise<void>; end(row: Row, ctx: JobContext): Promise<void> };
  /** A sentence for users: what to do when a step was given up after its last attempt. */
  retryAdvice?: string;
  /** Absent where a cancellation is a part of the steps. */
  isCanceled?(row: Row, ctx: JobContext): Promise<boolean>;
  /** What is due before the step; null where that is nothing. */
  enter?(step: Step, row: Row, ctx: StepContext): Promise<Outcome | null>;
  /** Absent where users see no log of the work. */
  appendLog?(row: Row, step: Step, message: string, level: LogLevel, ctx: JobContext): Promise<void>;
  /** The message of an error whose sentence needs no other around it; null of any other error. */
  finalReason(error: unknown): string | null;
  /** After the reason was logged. */
  fail(reason: string, row: Row): Outcome;
}

/** The work has failed; the message is a sentence for users. */
export class StepFailure extends Error {
  override readonly name = 'StepFailure';
}

const POLL_MS = 1_000;
const RESUMED = 'It answers again.';
/** Errors of drivers that another attempt does not mend. */
const FINAL: ReadonlySet<DriverErrorReason> = new Set(['invalid', 'unsupported', 'conflict', 'capacity']);

/** One call of the loop: the first step that is not done. @throws what is to be tried again, and bugs */
export async function runWorkflow<Row extends LoopRow, Step extends WorkflowStep<Row>>(
  workflow: Workflow<Row, Step>,
  row: Row,
  ctx: JobContext,
): Promise<Outcome> {
  const run = (step: Step): Promise<Outcome | 'done'> => runWorkflowStep(workflow, step, row, ctx);
  return (await runSteps(workflow.steps, row, ctx, run)) ?? settled();
}

async function runWorkflowStep<Row extends LoopRow, Step extends WorkflowStep<Row>>(
  workflow: Workflow<Row, Step>,
  step: Step,
  row: Row,
  ctx: JobContext,
): Promise<Outcome | 'done'> {
  const isCanceled = async (): Promise<boolean> => (await workflow.isCanceled?.(row, ctx).catch(() => false)) ?? false;
  const stop = new AbortController();
  const poll = workflow.isCanceled
    ? setInterval(() => void isCanceled().then((canceled) => canceled && stop.abort()), POLL_MS)
    : undefined;
  await workflow.wait?.end(row, ctx);
  const time = step.ownTimeLimit ? undefined : workflow.time;
  const leftMs = time?.leftMs(row, ctx) ?? null;
  const timer = leftMs === null ? undefined : setTimeout(() => stop.abort(), Math.max(0, leftMs));
  try {
    const inner = stepContext(workflow, step, row, ctx, { stop, leftMs });
    if (leftMs !== null) inner.requireTimeLeft();
    const result = (await workflow.enter?.(step, row, inner)) ?? (await step.run(row, inner));
    if (hasWaited(row)) await inner.appendLog(RESUMED);
    return result;
  } catch (error) {
    if (ctx.signal.aborted) throw error;
    if (await isCanceled()) return progressing(0);
    if (isEngineAway(error)) await waitForEngine(workflow, step, row, error, ctx);
    const isOver = time !== undefined && time.leftMs(row, ctx) <= 0;
    const reason = isOver ? time.overReason(ctx) : failureReason(workflow, step, row, error);
    if (reason === null) throw error;
    if (error instanceof DriverError) ctx.log.warn({ err: error, step: step.name }, 'a step failed');
    await workflow.appendLog?.(row, step, reason, 'error', ctx);
    return workflow.fail(reason, row);
  } finally {
    clearInterval(poll);
    clearTimeout(timer);
  }
}

/** @throws the error, which the loop tries again */
async function waitForEngine<Row extends LoopRow, Step extends WorkflowStep<Row>>(
  workflow: Workflow<Row, Step>,
  step: Step,
  row: Row,
  error: DriverError,
  ctx: JobContext,
): Promise<never> {
  if (!hasWaited(row)) await workflow.appendLog?.(row, step, waitingReason(error), 'warning', ctx);
  await workflow.wait?.begin(row, ctx);
  throw error;
}

function stepContext<Row extends LoopRow, Step extends WorkflowStep<Row>>(
  workflow: Workflow<Row, Step>,
  step: Step,
  row: Row,
  ctx: JobContext,
  { stop, leftMs }: { stop: AbortController; leftMs: number | null },
): StepContext {
  return {
    ...ctx,
    log: ctx.log.child({ step: step.name }),
    signal: AbortSignal.any([ctx.signal, stop.signal]),
    deadline: leftMs === null ? ctx.deadline : Math.min(ctx.deadline, Date.now() + leftMs),
    appendLog: async (message, level = 'info') => workflow.appendLog?.(row, step, message, level, ctx),
    requireTimeLeft() {
      const left = workflow.time?.leftMs(row, ctx) ?? Infinity;
      if (left > 0) return left;
      throw new StepFailure(workflow.time?.overReason(ctx) ?? '');
    },
  };
}

/** Why the work can't go on, for users; null for errors to be retried, and for bugs of the platform. */
function failureReason<Row extends LoopRow, Step extends WorkflowStep<Row>>(
  { finalReason, retryAdvice = '' }: Workflow<Row, Step>,
  { task, attemptsMax = Infinity }: Step,
  { attempts }: Row,
  error: unknown,
): string | null {
  if (error instanceof StepFailure) return error.message;
  const own = finalReason(error);
  if (own !== null || !(error instanceof DriverError)) return own;
  if (FINAL.has(error.reason)) return `The host cannot ${task}. ${toSentence(error.message)}`;
  return error.reason === 'transient' && attempts >= attemptsMax ? `${error.message} ${retryAdvice}`.trimEnd() : null;
}
