// What a finished run left: its unit or task, and the files of a release that only it used.
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import { pruneReleases } from '../../../models/deployments/release';
import { unusedArtifacts } from '../../../models/deployments/retention';
import { artifactOfDeployment } from '../../../models/runs/run/job_queries';
import { pruneReleaseImages } from '../../deployments/deployment/publish';
import { removeDirectory } from '../../deployments/deployment/row';
import { requireHost, settled, type JobContext, type Outcome } from '../../job';
import { runnerOf } from './runner';
import type { RunRow } from './row';

/** What a run printed can be attached to for this time after its end. */
const REPLAY_MS = 60_000;
const STOPPING_MS = 1_000;
const UNREACHABLE_MS = 3_000;

/** Removes what a finished run left, once nobody attaches to it any more. */
export async function removeLeft(row: RunRow, ctx: JobContext): Promise<Outcome> {
  const finished_at = row.finished_at ?? new Date().toISOString();
  const columns = { finished_at, variables: null };
  try {
    const runner = await runnerOf(row, ctx);
    const left = Date.parse(finished_at) + REPLAY_MS - Date.now();
    if (left > 0 && isReplayed(row) && (await runner.inspect(row, ctx))?.state === 'exited')
      return settled(columns, Math.min(left, REPLAY_MS));
    if (!(await runner.destroy(row, ctx))) return settled(columns, STOPPING_MS);
  } catch (error) {
    // A failure of this must not become that of the run.
    if (!(error instanceof DriverError)) throw error;
    ctx.log.warn({ err: error, run: row.id }, 'what a run left could not be removed; it is tried again');
    return settled(columns, UNREACHABLE_MS);
  }
  await pruneAfterRun(row, ctx);
  return settled(columns);
}

/** Nothing of a canceled deployment stays. */
function isReplayed({ trigger_type, status }: RunRow): boolean {
  return trigger_type !== 'release' || status !== 'canceled';
}

/** Removes the files and forgets the release of a finished run, unless others use them. */
async function pruneAfterRun(row: RunRow, ctx: JobContext): Promise<void> {
  const artifact = (await artifactOfDeployment(ctx.sql, row.deployment_id)) ?? row.deployment_id;
  for (const id of await unusedArtifacts(ctx.sql, [artifact]))
    await removeDirectory(path.join(requireHost(ctx).directories.releases, id));
  if (requireHost(ctx).tasks) await pruneReleaseImages(row.application_id, ctx);
  await pruneReleases(ctx.sql, row.application_id);
}
