// Makes a project what its file says, by the operations that everybody calls: a plan is the same, in a transaction that
// is rolled back (docs/decisions/0253). What exists is compared again after each step, since a new application brings
// process types of its own.
import { Problem } from '../../core/errors';
import { STACK_KINDS, stackKind, type StackKind } from './kinds';
import { refused, refuseStep, type StackChange, type StackRun, type Step } from './run';
import { deletions, upserts } from './steps';

const SAVE = { name: 'stack_save', text: 'savepoint stack' };
const BACK = { name: 'stack_back', text: 'rollback to savepoint stack' };

/** Runs all steps. @throws stack_refused, unless it is a plan */
export async function reconcileProject(run: StackRun): Promise<void> {
  const [children, tops] = [true, false].map((isChild) => STACK_KINDS.filter((kind) => kind.isChild === isChild));
  // Names of domains, variables and mount paths are free before others take them.
  if (run.prune)
    for (const kind of [...(children as StackKind[])].reverse()) await runSteps(run, await deletions(run, kind));
  for (const kind of STACK_KINDS) await runSteps(run, await upserts(run, kind));
  // The last, so that domains and volumes could move. Applications first, which hold the others.
  const holders = (tops as StackKind[]).filter(({ type }) => type !== 'application');
  if (run.prune)
    for (const kind of [stackKind('application'), ...holders]) await runSteps(run, await deletions(run, kind));
}

/**
 * Asks the outside world for the steps that need it, before the transaction.
 * @returns answers by the place of the step
 */
export async function probeStack(run: StackRun): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  const steps = await upserts(run, stackKind('application'));
  if (run.prune) steps.push(...(await deletions(run, stackKind('bucket'))));
  for (const { change, calls } of steps) {
    for (const call of calls) {
      const answer = await run.calls.probe(run.ctx, call).catch(asRefusal);
      if (answer !== undefined) found.set(placeOf(change), answer);
    }
  }
  return found;
}

function asRefusal(error: unknown): unknown {
  if (error instanceof Problem) return error;
  throw error;
}

const placeOf = ({ type, name, operation_id }: StackChange): string => `${operation_id} ${type} ${name}`;

async function runSteps(run: StackRun, steps: readonly Step[]): Promise<void> {
  for (const step of steps) await runStep(run, step);
}

async function runStep(run: StackRun, { change, calls, entry }: Step): Promise<void> {
  run.changes.push(change);
  try {
    if (run.isPlan) await run.ctx.sql.query(SAVE, []);
    const probed = run.probed.get(placeOf(change));
    if (probed instanceof Problem) throw probed;
    for (const call of calls) {
      const made = await run.calls.perform(run.ctx, call, probed);
      const id = (made as { id?: unknown } | null)?.id;
      if (typeof id === 'string' && !run.isPlan) change.resource_id = id;
    }
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    if (run.isPlan) await run.ctx.sql.query(BACK, []);
    run.changes.pop();
    refuseStep(run, change, entry, error);
    if (!run.isPlan) throw refused(run);
  }
}
