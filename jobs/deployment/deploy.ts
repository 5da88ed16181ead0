// deploying: a release is made, its command runs, its instances come up beside the old ones, and requests are switched.
import { stat } from 'node:fs/promises';
import type { Sql } from '../../core/context';
import { DriverError } from '../../drivers/driver';
import { activate, keepRelease, tellOfMove } from '../../models/deployment_work';
import { planningOf } from '../../models/deployment_plan';
import { commandOf, type ReleaseCommand } from '../../models/release_command';
import { createRelease } from '../../models/release';
import { addInstances, presentOf, wantsOfRelease, type Present, type Want } from '../../models/stack';
import { LeaseLost, progressing, settled, type JobContext, type Outcome } from '../job';
import { leadBeforehand, leadElsewhere } from '../application/stack';
import { mountsOf } from '../instance/mounts';
import { DeploymentFailure, filesOf, appendDeploymentLog, timeLeft, type DeploymentRow } from './row';
import { endTask, runTask, type Task } from './task';

const POLL_MS = 500;
/** Instances tell when they have changed; this is in case nobody heard it. */
const INSURANCE_MS = 1_000;
/** An instance that has ended this often is not going to stay. */
const EXITS_MAX = 2;

export async function deploy(row: DeploymentRow, ctx: JobContext): Promise<Outcome> {
  timeLeft(row, ctx);
  if (row.release_id === null) return progressing(0, { release_id: await makeRelease(row, ctx) });
  if (!row.observed?.released) return release(row, row.release_id, ctx);
  const wants = await wantsOfRelease(ctx.sql, row.release_id, row.preview_id);
  const candidates = (await presentOf(ctx.sql, row)).filter(
    ({ release_id, status }) => release_id === row.release_id && status !== 'stopping',
  );
  if (await addMissing(row, wants, candidates, ctx)) return progressing(INSURANCE_MS);
  requireHealthy(candidates);
  if (candidates.some(({ status }) => status !== 'running')) return progressing(INSURANCE_MS);
  return switchOver(row, row.release_id, ctx);
}

async function makeRelease(row: DeploymentRow, ctx: JobContext): Promise<string> {
  if (!(await stat(filesOf(row, ctx)).catch(() => null)))
    throw new DeploymentFailure('The files of this version are no longer kept. Deploy its commit again.');
  const { application_id, preview_id } = row;
  return ctx.sql.transaction(async (session) => {
    const id = await createRelease(session, ctx.secrets, { application_id, preview_id, deployment_id: row.id });
    if (!(await keepRelease(session, row, id))) throw new LeaseLost();
    return id;
  });
}

/** The release command, where there is one, runs once before anything else of the version. */
async function release(row: DeploymentRow, releaseId: string, ctx: JobContext): Promise<Outcome> {
  const found = await commandOf(ctx.sql, ctx.secrets, releaseId, row.plan?.release_command ?? null);
  if (found && !row.observed?.releasing) {
    await appendDeploymentLog(row, ctx, 'release', `-----> Running the release command`);
    await ctx.record({ observed: { ...row.observed, releasing: true } });
  }
  if (found && (await runTask(row, releaseTask(row, found, ctx), ctx)) === 'running')
    return progressing(POLL_MS, { observed: { ...row.observed, releasing: true } });
  await ctx.record({ observed: { ...row.observed, released: true } });
  if (found) await endTask(row, 'release', ctx);
  await appendDeploymentLog(row, ctx, 'deploy', '-----> Starting the new version');
  return progressing(0, { observed: { ...row.observed, released: true } });
}

function releaseTask(row: DeploymentRow, found: ReleaseCommand, ctx: JobContext): Task {
  return {
    step: 'release',
    name: 'The release command',
    async spec() {
      const planning = await planningOf(ctx.sql, row.application_id);
      if (!planning) throw new DriverError('transient', 'the application has gone');
      return {
        command: found.command,
        directory: filesOf(row, ctx),
        root_directory: found.root_directory,
        mounts: row.preview_id === null ? await mountsOf(ctx.sql, row.application_id) : [],
        env: { ...found.variables, ...planning.platformVariables(row) },
        tenant: planning.tenant,
        limits: {
          memory_mb: found.memory_mb,
          cpus: found.cpus,
          processes: 256,
          time_ms: timeLeft(row, ctx),
          output_bytes: ctx.config.buildOutputMb * 2 ** 20,
          disk_mb: ctx.config.buildDiskMb,
        },
      };
    },
  };
}

async function addMissing(row: DeploymentRow, wants: Want[], candidates: Present[], ctx: JobContext): Promise<boolean> {
  let added = 0;
  for (const want of wants) {
    const missing = want.instances - candidates.filter(({ process_id }) => process_id === want.process_id).length;
    if (missing > 0) await addInstances(ctx.sql, row, want, missing);
    added += Math.max(0, missing);
  }
  return added > 0;
}

function requireHealthy(candidates: Present[]): void {
  const lost = candidates.find(
    ({ status, exits, observed }) => status === 'crashed' || exits >= EXITS_MAX || observed?.fault !== undefined,
  );
  if (!lost) return;
  throw new DeploymentFailure(
    `The new version does not stay up, so it was not put into service. Process type ${lost.process_type}: ${lost.status_reason ?? 'it ends again and again.'}`,
  );
}

async function switchOver(row: DeploymentRow, releaseId: string, ctx: JobContext): Promise<Outcome> {
  let ended = (): void => undefined;
  const lead = async (sql: Sql): Promise<void> => {
    ended = await leadBeforehand(row.application_id, ctx, sql);
  };
  const switched = await activate(ctx.sql, row, releaseId, lead).finally(() => ended());
  if (!switched) throw new DriverError('transient', 'the deployment was changed');
  await leadElsewhere(row.application_id, ctx);
  await appendDeploymentLog(row, ctx, 'deploy', `Deployment ${row.number} is active.`);
  await tellOfMove(ctx.sql, row);
  ctx.log.info({ application: row.application_id }, 'deployed');
  // Once more, to let go of what is too much.
  return settled({ observed: null }, 0);
}
