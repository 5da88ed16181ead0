// Long work as a declared list of steps: which of them comes next is read from what is there, so the work goes on after
// a crash. Jobs keep what is there in a row (jobs/workflow.ts), replacements of data on the disk
// (drivers/hosted_server/replacement.ts).

export interface DeclaredStep<Subject, Context> {
  readonly name: string;
  /** A step that may be run again harmlessly, and has nothing to be known by, is never done. */
  isDone(subject: Subject, ctx: Context): boolean | Promise<boolean>;
}

/**
 * Runs the first step that is not done, and those after it as long as each is `done` at once.
 * @returns what a step has answered instead; null when there was no such step
 */
export async function runSteps<Subject, Context, Step extends DeclaredStep<Subject, Context>, Result>(
  steps: readonly Step[],
  subject: Subject,
  ctx: Context,
  runStep: (step: Step) => Promise<Result | 'done'>,
): Promise<Result | null> {
  for (const step of steps) {
    if (await step.isDone(subject, ctx)) continue;
    const result = await runStep(step);
    if (result !== 'done') return result;
  }
  return null;
}
