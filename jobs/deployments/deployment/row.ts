// Shared by the steps of a deployment: its row, its directories on the host, its log messages, and its time.
import path from 'node:path';
import type { PulledImage } from '../../../core/protocols/image_settings';
import type { LogLevel, LogStep } from '../../../core/log/log_line';
import type { BuildPlan } from '../../../drivers/builder';
import { removeTree } from '../../../core/process/remove_tree';
import type { DeployedSource } from '../../../models/applications/application/source';
import type { PromotedFrom } from '../../../models/deployments/deployment/queue';
import { appendLogLines } from '../../../models/applications/log_line';
import { type JobContext, type LoopRow, requireHost } from '../../job';
import type { DeploymentStatus } from '../../../schema/types';

export interface DeploymentRow extends LoopRow {
  project_id: string;
  application_id: string;
  preview_id: string | null;
  number: number;
  status: DeploymentStatus;
  branch: string | null;
  commit_sha: string | null;
  commit_message: string | null;
  image: string | null;
  clear_cache: boolean;
  trigger: string;
  source: DeployedSource;
  promoted_from: PromotedFrom | null;
  plan: StoredPlan | null;
  artifact_id: string | null;
  artifact_kept: boolean;
  /** Which data directory has its files (`HostDrivers.directoryId`); null before there are any. */
  files_on: string | null;
  /** Where its instances run; decided with its release. */
  on_cluster: boolean;
  release_id: string | null;
  started_at: string | null;
  finished_at: string | null;
  /** Those that have begun, in their order. */
  steps: { name: string; started_at: string }[];
  /** What its steps have reached, see steps.ts. */
  observed: Progress | null;
}

/**
 * With the root directory that it was built in, or the image that it is. `found_port`:
 * models/applications/instance_work.ts writes it.
 */
export type StoredPlan = BuildPlan & { root_directory?: string; image?: PulledImage; found_port?: number };

export interface Progress {
  fetched?: boolean;
  /** The programs of the plan are on this host. */
  equipped?: boolean;
  /** The last logged warning about instances that are not healthy yet. */
  warning?: string;
  built?: boolean;
  /** The release whose image is in the registry of the platform. */
  published?: string;
  released?: boolean;
  /** Since when it waits for an engine that is away, and how long it has waited before. */
  waiting_since?: string;
  waited_ms?: number;
}

/** Records when a step began. The first attempt counts. */
export async function recordStep(row: DeploymentRow, name: string, ctx: JobContext): Promise<void> {
  if (row.steps.some((step) => step.name === name)) return;
  row.steps = [...row.steps, { name, started_at: new Date().toISOString() }];
  await ctx.record({ steps: row.steps });
}

/** What a step before has left. @throws Error where it was left out */
export function requirePlan({ id, plan }: DeploymentRow): StoredPlan {
  if (!plan) throw new Error(`the deployment ${id} has no plan`);
  return plan;
}

/** The same. */
export function requireReleaseId({ id, release_id }: DeploymentRow): string {
  if (release_id === null) throw new Error(`the deployment ${id} has no release`);
  return release_id;
}

/** The files that the deployment runs. */
export function artifactDirectory(row: Pick<DeploymentRow, 'id' | 'artifact_id'>, ctx: JobContext): string {
  return path.join(requireHost(ctx).directories.releases, row.artifact_id ?? row.id);
}

/**
 * Previews have a separate build cache: files that they leave there must not get into the application. Each pull
 * request has its own cache, since its code may be a stranger's.
 */
export function cacheDirectory(
  row: Pick<DeploymentRow, 'application_id' | 'preview_id' | 'branch'>,
  ctx: JobContext,
): string {
  const { application_id, preview_id, branch } = row;
  const name = preview_id === null ? 'application' : branch?.startsWith('refs/') ? preview_id : 'previews';
  return path.join(requireHost(ctx).directories.caches, application_id, name);
}

export function taskUnitId(row: DeploymentRow, step: 'build' | 'release'): string {
  return `${row.id}.${step}`;
}

/** Programs of the tenant may still write in the directory: all builds of an application share one cache. */
export function removeDirectory(directory: string): Promise<void> {
  return removeTree(directory);
}

/** A line of the platform in the log of the deployment. */
export function appendDeploymentLog(
  row: DeploymentRow,
  ctx: JobContext,
  step: LogStep,
  message: string,
  level: LogLevel = 'info',
): Promise<void> {
  const { project_id, application_id, preview_id, id } = row;
  return appendLogLines(ctx.sql, [
    { project_id, application_id, preview_id, deployment_id: id, source: 'system', step, level, message },
  ]);
}

/** Milliseconds that the deployment may still take; negative where it has taken too long. */
export function timeLeftMs({ started_at, observed }: DeploymentRow, ctx: JobContext): number {
  const startedAt = started_at === null ? Date.now() : Date.parse(started_at);
  return startedAt + ctx.config.buildTimeoutSeconds * 1000 + (observed?.waited_ms ?? 0) - Date.now();
}

export async function beginWait(row: DeploymentRow, ctx: JobContext): Promise<void> {
  if (row.observed?.waiting_since !== undefined) return;
  row.observed = { ...row.observed, waiting_since: new Date().toISOString() };
  await ctx.record({ observed: row.observed });
}

export async function endWait(row: DeploymentRow, ctx: JobContext): Promise<void> {
  const { waiting_since, waited_ms = 0, ...rest } = row.observed ?? {};
  if (waiting_since === undefined) return;
  row.observed = { ...rest, waited_ms: waited_ms + Date.now() - Date.parse(waiting_since) };
  await ctx.record({ observed: row.observed });
}

/** `90 seconds`, `30 minutes`. */
export function formatDuration(seconds: number): string {
  const [count, unit] = seconds >= 120 && seconds % 60 === 0 ? [seconds / 60, 'minute'] : [seconds, 'second'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}

/** The user info of a URL may hold credentials, which must not appear in logs or labels. */
export function withoutUser(address: string): string {
  return address.replace(/^([a-z+]+:\/\/)[^/@]*@/i, '$1');
}
