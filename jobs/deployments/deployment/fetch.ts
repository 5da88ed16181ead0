// The source of a deployment: a commit, a preset or an upload becomes the files that are built.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { limits as platformLimits } from '../../../core/limits';
import { DriverError, asDriverErrors } from '../../../core/driver';
import { SourceError, type Commit } from '../../../drivers/source';
import { unpackUpload } from '../../../drivers/source/archive/process/processes';
import { isLocalChange } from '../../../models/deployments/source_upload/job_queries';
import { progressing, requireHost, type Outcome, type Values } from '../../job';
import { requireRemote } from '../../source_remote';
import { StepFailure, type StepContext } from '../../workflow';
import { filesHere } from './lost_files';
import { requireDiskRoom } from './disk_room';
import { artifactDirectory, cacheDirectory, removeDirectory, withoutUser, type DeploymentRow } from './row';
import { removeTask } from './task';

/** Retries of an unreachable repository: about one minute. */
const ATTEMPTS_MAX = 8;

/** @throws StepFailure where the source cannot be fetched, or a disk of the machine is nearly full */
export async function fetchSource(row: DeploymentRow, ctx: StepContext): Promise<Outcome> {
  await requireDiskRoom(ctx);
  // Of an attempt that another machine went on with.
  await removeTask(row, 'build', ctx);
  await removeDirectory(artifactDirectory(row, ctx));
  if (row.clear_cache) await removeDirectory(cacheDirectory(row, ctx));
  await makeCache(cacheDirectory(row, ctx));
  return progressing(0, { ...(await fetchFiles(row, ctx)), ...filesHere(ctx), observed: { fetched: true } });
}

// Its tenant passes through the directory around it, which stays ours.
async function makeCache(cache: string): Promise<void> {
  await asDriverErrors(async () => {
    await mkdir(path.dirname(cache), { recursive: true, mode: 0o711 });
    await mkdir(cache, { recursive: true, mode: 0o700 });
  });
}

/** @returns columns that identify the fetched source */
async function fetchFiles(row: DeploymentRow, ctx: StepContext): Promise<Values> {
  const { source } = requireHost(ctx);
  const { type, preset } = row.source;
  if (type === 'preset' && preset !== null) {
    await ctx.appendLog(`-----> Preset ${preset}`);
    await source.exportTemplate(preset, artifactDirectory(row, ctx), ctx);
    return {};
  }
  if (type === 'upload') return exportUpload(row, ctx);
  if (type !== 'git') throw new StepFailure('This platform cannot run images yet. Use a Git repository as the source.');
  const { sha, branch, message, author } = await fetchCommit(row, ctx);
  await ctx.appendLog(`-----> Commit ${sha.slice(0, 10)}${branch ? ` of ${branch}` : ''}: ${message}`);
  return {
    ...{ commit_sha: sha, commit_message: message, commit_author: author },
    ...(row.branch === null && { branch }),
  };
}

const sizeText = (bytes: number): string =>
  bytes < 100_000 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;

/** The files of an upload in the place of a repository's. */
async function exportUpload(row: DeploymentRow, ctx: StepContext): Promise<Values> {
  const { source_upload_id: id = '', sha256 = '', bytes = 0 } = row.source;
  await ctx.appendLog(`-----> Upload ${id} (${sizeText(bytes)}, SHA-256 ${sha256.slice(0, 12)}…)`);
  if (await isLocalChange(ctx.sql, row.application_id))
    await ctx.appendLog(
      'Local changes: this deployment is made of an upload and not of the source of the application.',
    );
  const file = await requireHost(ctx).uploads.find(id, sha256, ctx);
  if (file === null)
    throw new StepFailure('The archive of the upload is no longer kept. Upload the source again, and deploy that.');
  const limits = { bytes: ctx.config.sourceSizeMb * 2 ** 20, files: platformLimits.sourceFilesMax };
  const { folder } = await unpackUpload(file, artifactDirectory(row, ctx), limits, ctx);
  if (folder !== null)
    await ctx.appendLog(
      `All files are in the folder ${folder}. If the application begins there, set build.root_directory to it.`,
    );
  return {};
}

async function fetchCommit(row: DeploymentRow, ctx: StepContext): Promise<Commit> {
  const { source } = requireHost(ctx);
  const { branch, commit_sha: commit } = row;
  // For a pull request, the branch is a full ref.
  const wanted = branch?.startsWith('refs/') ? { ref: branch, commit } : { branch, commit };
  try {
    const remote = await requireRemote(ctx, row.source);
    if (row.attempts === 0) await ctx.appendLog(`-----> Fetching the source from ${withoutUser(remote.address)}`);
    const found = await source.fetch(row.application_id, remote, wanted, ctx);
    await source.export(row.application_id, remote, found.sha, artifactDirectory(row, ctx), ctx);
    return found;
  } catch (error) {
    if (!(error instanceof SourceError) || error.failure !== 'unreachable' || row.attempts >= ATTEMPTS_MAX) throw error;
    throw new DriverError('transient', error.message);
  }
}
