// The build: its tools are installed on this host, and its commands run as a unit.
import { attachedDatabases } from '../../../models/applications/attached_database';
import { databaseTrust } from '../../databases/database/trust';
import { readStepFailure } from '../../../drivers/builder/command_failure';
import { readFailure } from '../../../drivers/builder/dockerfile/dockerfile_failure';
import { overrideVariables } from '../../../core/process/variables';
import type { UnitLimits } from '../../../drivers/runtime';
import { findPlanning } from '../../../models/deployments/deployment_plan';
import { progressing, requireHost, type JobContext, type Outcome } from '../../job';
import type { StepContext } from '../../workflow';
import { dockerfileVariables } from './base_images';
import { requirePlanning } from './plan';
import { artifactDirectory, cacheDirectory, requirePlan, type DeploymentRow, type StoredPlan } from './row';
import { runDeploymentTask, type Task } from './task';

const NODE_SHARE = 0.75;
/** The watch reports the exit of a unit; polling covers lost notifications. */
const POLL_MS = 500;
/** Limit against fork bombs. */
const PROCESSES_MAX = 1024;

export async function ensureTools(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  await requireHost(ctx).builder.ensureTools(requirePlan(row), ctx, ctx.appendLog);
  return progressing(0, { observed: { ...row.observed, equipped: true } });
}

export async function runBuild(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  const plan = requirePlan(row);
  if ((await runDeploymentTask(row, buildTask(row, plan, ctx), ctx)) === 'running') return progressing(POLL_MS);
  const observed = { ...row.observed, built: true };
  // Recorded before the unit is removed, which is the only other trace of a finished build.
  await ctx.record({ observed });
  if (plan.steps.length) await ctx.appendLog('The build succeeded.');
  return progressing(0, { observed });
}

function buildTask(row: DeploymentRow, plan: StoredPlan, ctx: StepContext): Task {
  const { builder } = requireHost(ctx);
  const place = { directory: artifactDirectory(row, ctx), cache: cacheDirectory(row, ctx) };
  return {
    step: 'build',
    variables: async () =>
      (await findPlanning(ctx.sql, row.application_id))?.variables(ctx.secrets, 'build', row.preview_id) ?? {},
    failure: (hide) => (plan.dockerfile ? readFailure(plan.dockerfile, hide) : readStepFailure(plan.steps, hide)),
    async spec() {
      const planning = await requirePlanning(row, ctx);
      const variables = await planning.variables(ctx.secrets, 'build', row.preview_id);
      const trust = await databaseTrust(await attachedDatabases(ctx.sql, row.application_id, row.preview_id), ctx);
      const { command, env, defaults } = await builder.task(plan, place, ctx);
      const forImages = plan.kind === 'dockerfile' ? await dockerfileVariables(row, variables, ctx) : {};
      return {
        command,
        directory: place.directory,
        root_directory: plan.root_directory ?? '.',
        mounts: [{ source: place.cache, target: place.cache }],
        env: {
          ...overrideVariables({ ...heapOfNode(ctx), ...defaults, ...plan.env, ...trust.env }, variables),
          ...planning.platformVariables(row),
          ...env,
          ...forImages,
        },
        readable: trust.readable,
        tenant: planning.tenant,
        ...(plan.kind === 'dockerfile' && { nested: true, user_range: place.cache }),
        network: planning.project_id,
        limits: buildLimits(ctx),
      };
    },
  };
}

/** V8 takes half of a limit for its heap, which is too little for large bundles. */
function heapOfNode({ config }: JobContext): Record<string, string> {
  return { NODE_OPTIONS: `--max-old-space-size=${Math.floor(config.buildMemoryMb * NODE_SHARE)}` };
}

function buildLimits(ctx: StepContext): UnitLimits {
  const { buildMemoryMb, buildOutputMb, buildDiskMb } = ctx.config;
  return {
    memory_mb: buildMemoryMb,
    cpus: null,
    processes: PROCESSES_MAX,
    time_ms: ctx.requireTimeLeft(),
    output_bytes: buildOutputMb * 2 ** 20,
    disk_mb: buildDiskMb,
  };
}
