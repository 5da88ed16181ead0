// The commands of an application's process types must be known before any process of a version is started.
import type { Planning } from '../../../models/deployments/deployment_plan';
import { DeploymentFailure, type StoredPlan } from './row';

/** @throws DeploymentFailure where a process type should run and has no command */
export function requireCommands(plan: StoredPlan, { processes }: Planning): void {
  const missing = processes.find(
    ({ type, command, instances }) => instances > 0 && command === null && plan.processes[type] === undefined,
  );
  if (!missing) return;
  const { type, instances } = missing;
  if (type === 'web' && plan.missing !== undefined)
    throw new DeploymentFailure(`${plan.missing} Or set the \`command\` of the process type web, or scale it to 0.`);
  const count = instances === 1 ? '1 instance' : `${instances} instances`;
  throw new DeploymentFailure(
    `The process type ${type} has no command, but should run ${count}. ` +
      'Add it to a Procfile, set its `command`, or scale it to 0.',
  );
}
