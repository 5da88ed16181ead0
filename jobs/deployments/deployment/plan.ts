// What the source is, how it is built, and what it runs.
import type { Sql } from '../../../core/context';
import { DriverError } from '../../../core/driver';
import { addProcessTypes } from '../../../models/deployments/deployment_work';
import { findPlanning, type Planning } from '../../../models/deployments/deployment_plan';
import { progressing, requireHost, type Outcome } from '../../job';
import { StepFailure, type StepContext } from '../../workflow';
import { artifactDirectory, type DeploymentRow, type StoredPlan } from './row';

export async function planBuild(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  const planning = await requirePlanning(row, ctx);
  const plan = await detect(row, planning, ctx);
  await addProcessTypes(ctx.sql, row, Object.keys(plan.processes));
  if (plan.kind !== 'dockerfile') requireCommands(plan, planning);
  await ctx.appendLog(`-----> ${plan.summary}`);
  for (const reason of plan.reasons ?? []) await ctx.appendLog(reason);
  for (const note of plan.notes ?? []) await ctx.appendLog(note, 'warning');
  return progressing(0, { plan });
}

async function detect(
  row: DeploymentRow,
  { name, settings, processes }: Planning,
  ctx: StepContext,
): Promise<StoredPlan> {
  const { builder, facts } = requireHost(ctx);
  const { builder: kind, root_directory, dockerfile_path, dockerfile_target } = settings.build;
  const { build_command = null, output_directory = null } = settings.build;
  const requested = {
    ...{ builder: kind, root_directory, dockerfile_path, dockerfile_target, build_command, output_directory },
    application_name: name,
    commands: Object.fromEntries(processes.flatMap(({ type, command }) => (command === null ? [] : [[type, command]]))),
  };
  const plan = await builder.detect(artifactDirectory(row, ctx), requested, await facts(), ctx);
  return { ...plan, root_directory };
}

/** What the deployment needs to know of its application. @throws DriverError `transient` where that is gone */
export async function requirePlanning(row: DeploymentRow, { sql }: { sql: Sql }): Promise<Planning> {
  const planning = await findPlanning(sql, row.application_id);
  if (!planning) throw new DriverError('transient', 'The application was deleted.');
  return planning;
}

/**
 * The commands of process types must be known before any process of a version is started.
 * @throws StepFailure where a process type should run and has no command
 */
export function requireCommands(plan: StoredPlan, { processes }: Planning): void {
  const missing = processes.find(
    ({ type, command, instances }) => instances > 0 && command === null && plan.processes[type] === undefined,
  );
  if (!missing) return;
  const { type, instances } = missing;
  if (type === 'web' && plan.missing !== undefined)
    throw new StepFailure(`${plan.missing} Or set the \`command\` of the process type web, or scale it to 0.`);
  const count = instances === 1 ? '1 instance' : `${instances} instances`;
  throw new StepFailure(
    `The process type ${type} has no command, but should run ${count}. ` +
      'Add it to a Procfile, set its `command`, or scale it to 0.',
  );
}
