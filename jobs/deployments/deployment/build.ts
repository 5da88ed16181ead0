// building: the source is fetched, looked at, and built where there is something to build.
import { databaseTrust } from '../../databases/database/trust';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { limits as platformLimits } from '../../../core/limits';
import { hasBuild } from '../../../drivers/builder';
import { readStepFailure } from '../../../drivers/builder/command_failure';
import { readFailure } from '../../../drivers/builder/dockerfile/dockerfile_failure';
import { DriverError, asDriverErrors } from '../../../core/driver';
import { overrideVariables } from '../../../core/process/variables';
import type { UnitLimits } from '../../../drivers/runtime';
import { SourceError, type Commit } from '../../../drivers/source';
import { unpackUpload } from '../../../drivers/source/archive/process/processes';
import { addProcessTypes, wakeStackAndQueue } from '../../../models/deployments/deployment_work';
import { isLocalChange } from '../../../models/deployments/source_upload/work';
import { findPlanning, type Planning } from '../../../models/deployments/deployment_plan';
import { progressing, type JobContext, type Outcome, requireHost } from '../../job';
import { requireRemote } from '../../source_remote';
import {
  cacheDirectory,
  DeploymentFailure,
  artifactDirectory,
  removeDirectory,
  appendDeploymentLog,
  requireTimeLeft,
  abortWhenCanceled,
  type DeploymentRow,
  type StoredPlan,
  withoutUser,
} from './row';
import { dockerfileVariables } from './base_images';
import { takeBuiltImage } from './built_image';
import { requireCommands } from './commands';
import { removeTask, runDeploymentTask, type Task } from './task';

/** The watch reports the exit of a unit; polling covers lost notifications. */
const NODE_SHARE = 0.75;
const POLL_MS = 500;
/** Retries of an unreachable repository: about one minute. */
const ATTEMPTS_MAX = 8;
/** Limit against fork bombs. */
const PROCESSES_MAX = 1024;

export async function buildDeployment(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  const isBuilding = row.observed?.equipped && !row.observed.built;
  // If a running command takes too long, its task reports the time-out with more detail.
  if (!isBuilding) requireTimeLeft(row, ctx);
  if (!row.observed?.fetched || !row.plan) return prepare(row, ctx);
  if (!row.observed.equipped) {
    await ensureTools(row, row.plan, ctx);
    return progressing(0, { observed: { ...row.observed, equipped: true } });
  }
  if (!row.observed.built && hasBuild(row.plan)) {
    if ((await runDeploymentTask(row, buildTask(row, row.plan, ctx), ctx)) === 'running') return progressing(POLL_MS);
    // Recorded before the unit is removed, which is the only other trace of a finished build.
    await ctx.record({ observed: { ...row.observed, built: true } });
    if (row.plan.steps.length) await appendDeploymentLog(row, ctx, 'build', 'The build succeeded.');
  }
  await removeTask(row, 'build', ctx);
  if (row.plan.kind === 'dockerfile' && !row.plan.image) return takeBuiltImage(row, row.plan, ctx);
  await wakeStackAndQueue(ctx.sql, row);
  return progressing(0, { status: 'deploying', observed: { ...row.observed, built: true } });
}

async function prepare(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  const planning = await findPlanning(ctx.sql, row.application_id);
  if (!planning) throw new DriverError('transient', 'The application was deleted.');
  await removeDirectory(artifactDirectory(row, ctx));
  if (row.clear_cache) await removeDirectory(cacheDirectory(row, ctx));
  await makeCache(cacheDirectory(row, ctx));
  const commit = await fetchFiles(row, ctx);
  const plan = await detect(row, planning, ctx);
  await addProcessTypes(ctx.sql, row, Object.keys(plan.processes));
  if (plan.kind !== 'dockerfile') requireCommands(plan, planning);
  await appendDeploymentLog(row, ctx, 'build', `-----> ${plan.summary}`);
  for (const reason of plan.reasons ?? []) await appendDeploymentLog(row, ctx, 'build', reason);
  for (const note of plan.notes ?? []) await appendDeploymentLog(row, ctx, 'build', note, 'warning');
  return progressing(0, { ...commit, plan, observed: { fetched: true } });
}

// Its tenant passes through the directory around it, which stays ours.
async function makeCache(cache: string): Promise<void> {
  await asDriverErrors(async () => {
    await mkdir(path.dirname(cache), { recursive: true, mode: 0o711 });
    await mkdir(cache, { recursive: true, mode: 0o700 });
  });
}

/** @returns columns that identify the fetched source */
async function fetchFiles(row: DeploymentRow, ctx: JobContext): Promise<object> {
  const { source } = requireHost(ctx);
  const { type, preset } = row.source;
  if (type === 'preset' && preset !== null) {
    await appendDeploymentLog(row, ctx, 'build', `-----> Preset ${preset}`);
    await abortWhenCanceled(row, ctx, (inner) => source.exportTemplate(preset, artifactDirectory(row, ctx), inner));
    return {};
  }
  if (type === 'upload') return exportUpload(row, ctx);
  if (type !== 'git')
    throw new DeploymentFailure('This platform cannot run images yet. Use a Git repository as the source.');
  const commit = await fetchCommit(row, ctx);
  await appendDeploymentLog(
    row,
    ctx,
    'build',
    `-----> Commit ${commit.sha.slice(0, 10)}${commit.branch ? ` of ${commit.branch}` : ''}: ${commit.message}`,
  );
  return {
    commit_sha: commit.sha,
    commit_message: commit.message,
    commit_author: commit.author,
    ...(row.branch === null && { branch: commit.branch }),
  };
}

/** The files of an upload in the place of a repository's. */
async function exportUpload(row: DeploymentRow, ctx: JobContext): Promise<object> {
  const { source_upload_id: id = '', sha256 = '', bytes = 0 } = row.source;
  const say = (message: string): Promise<void> => appendDeploymentLog(row, ctx, 'build', message);
  await say(`-----> Upload ${id} (${(bytes / 1e6).toFixed(1)} MB, SHA-256 ${sha256.slice(0, 12)}…)`);
  if (await isLocalChange(ctx.sql, row.application_id))
    await say('Local changes: this deployment is made of an upload and not of the source of the application.');
  const file = await requireHost(ctx).uploads.find(id, sha256);
  if (file === null)
    throw new DeploymentFailure(
      'The archive of the upload is no longer on the host that builds. Upload the source again, and deploy that.',
    );
  const limits = { bytes: ctx.config.sourceSizeMb * 2 ** 20, files: platformLimits.sourceFilesMax };
  const { folder } = await abortWhenCanceled(row, ctx, (inner) =>
    unpackUpload(file, artifactDirectory(row, ctx), limits, inner),
  );
  if (folder !== null)
    await say(
      `All files are in the folder ${folder}. If the application begins there, set build.root_directory to it.`,
    );
  return {};
}

async function fetchCommit(row: DeploymentRow, ctx: JobContext): Promise<Commit> {
  const { source } = requireHost(ctx);
  const { branch, commit_sha: commit } = row;
  // For a pull request, the branch is a full ref.
  const wanted = branch?.startsWith('refs/') ? { ref: branch, commit } : { branch, commit };
  try {
    const remote = await requireRemote(ctx, row.source);
    if (row.attempts === 0)
      await appendDeploymentLog(row, ctx, 'build', `-----> Fetching the source from ${withoutUser(remote.address)}`);
    const found = await abortWhenCanceled(row, ctx, (inner) => source.fetch(row.application_id, remote, wanted, inner));
    await abortWhenCanceled(row, ctx, (inner) =>
      source.export(row.application_id, remote, found.sha, artifactDirectory(row, ctx), inner),
    );
    return found;
  } catch (error) {
    if (!(error instanceof SourceError) || error.failure !== 'unreachable' || row.attempts >= ATTEMPTS_MAX) throw error;
    throw new DriverError('transient', error.message);
  }
}

async function ensureTools(row: DeploymentRow, plan: StoredPlan, ctx: JobContext): Promise<void> {
  const { builder } = requireHost(ctx);
  const log = (sentence: string): Promise<void> => appendDeploymentLog(row, ctx, 'build', sentence);
  await withLimitedRetries(row, () => abortWhenCanceled(row, ctx, (inner) => builder.ensureTools(plan, inner, log)));
}

/** Retries when the npm registry is unreachable, but not until the deadline of the deployment. */
async function withLimitedRetries<T>(row: DeploymentRow, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason !== 'transient' || row.attempts < ATTEMPTS_MAX) throw error;
    throw new DeploymentFailure(`${error.message} Deploy again later.`);
  }
}

async function detect(
  row: DeploymentRow,
  { name, settings, processes }: Planning,
  ctx: JobContext,
): Promise<StoredPlan> {
  const { builder, facts } = requireHost(ctx);
  const { builder: kind, root_directory, dockerfile_path, dockerfile_target } = settings.build;
  const { build_command = null, output_directory = null } = settings.build;
  const found = await facts();
  const requested = {
    ...{ builder: kind, root_directory, dockerfile_path, dockerfile_target, build_command, output_directory },
    application_name: name,
    commands: Object.fromEntries(processes.flatMap(({ type, command }) => (command === null ? [] : [[type, command]]))),
  };
  const plan = await withLimitedRetries(row, () =>
    abortWhenCanceled(row, ctx, (inner) => builder.detect(artifactDirectory(row, ctx), requested, found, inner)),
  );
  return { ...plan, root_directory };
}

function buildTask(row: DeploymentRow, plan: StoredPlan, ctx: JobContext): Task {
  const { builder } = requireHost(ctx);
  const place = { directory: artifactDirectory(row, ctx), cache: cacheDirectory(row, ctx) };
  return {
    step: 'build',
    variables: async () =>
      (await findPlanning(ctx.sql, row.application_id))?.variables(ctx.secrets, 'build', row.preview_id) ?? {},
    failure: (hide) => (plan.dockerfile ? readFailure(plan.dockerfile, hide) : readStepFailure(plan.steps, hide)),
    async spec() {
      const planning = await findPlanning(ctx.sql, row.application_id);
      if (!planning) throw new DriverError('transient', 'The application was deleted.');
      const variables = await planning.variables(ctx.secrets, 'build', row.preview_id);
      const trust = await databaseTrust(row.application_id, ctx);
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
        limits: buildLimits(row, ctx),
      };
    },
  };
}

/** V8 takes half of a limit for its heap, which is too little for large bundles. */
function heapOfNode({ config }: JobContext): Record<string, string> {
  return { NODE_OPTIONS: `--max-old-space-size=${Math.floor(config.buildMemoryMb * NODE_SHARE)}` };
}

function buildLimits(row: DeploymentRow, ctx: JobContext): UnitLimits {
  const { buildMemoryMb, buildOutputMb, buildDiskMb } = ctx.config;
  return {
    memory_mb: buildMemoryMb,
    cpus: null,
    processes: PROCESSES_MAX,
    time_ms: requireTimeLeft(row, ctx),
    output_bytes: buildOutputMb * 2 ** 20,
    disk_mb: buildDiskMb,
  };
}
