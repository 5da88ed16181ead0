// Auto-deploy: which branch is watched for pushes. One row per application, made when it is first configured; the
// defaults stand here. jobs/deployments/auto_deploy.ts does the watching.
import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import type { AutoDeploy, UpdateAutoDeployInput } from '../../schema/types';
import { PLATFORM, recordEvent } from '../projects/activity';
import { Application } from '../applications/application';
import { isGit, resolveSource } from '../applications/application/remote';
import type { Source } from '../applications/application/source';
import type { Session } from '../../db/control_database';
import { queueDeployment } from './deployment/queue';
import { webhookOf } from '../integrations/git_integration/webhook';
import type { LoopRow } from '../../db/lease';
import { changeRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import type { Values } from '../../db/table';
import { requestedChanges } from '../base/requested_changes';
import { noteRowChange } from '../base/row_changes';

/** The row, as the loop has it. */
export interface AutoDeployRow extends LoopRow {
  enabled: boolean;
  branch: string | null;
  wait_for_checks: boolean;
  paths: string[];
  status_reason: string | null;
  last_checked_at: string | null;
  /** Head that was seen last, and of what (`watchedOf`); null before the first look. */
  last_seen_sha: string | null;
  watched: string | null;
  /** Looks in a row that failed. */
  failures: number;
  /** A head whose checks run, and since when. */
  awaited_sha: string | null;
  awaited_since: string | null;
  observed_generation: number;
}

interface AutoDeployView {
  document: AutoDeploy;
  /** The application's version, then what the last look found. */
  etag: string;
}

const COLUMNS = 'enabled, branch, wait_for_checks, paths, status_reason, last_checked_at, observed_generation';
const DEFAULTS = {
  enabled: false,
  branch: null,
  wait_for_checks: false,
  paths: [],
  status_reason: null,
  last_checked_at: null,
  observed_generation: 0,
};
type Configured = Pick<AutoDeployRow, keyof typeof DEFAULTS>;

const SELECT = named(`select ${COLUMNS} from auto_deploys where id = $1`);

/** The configuration of an application, defaults where it has none. */
export async function autoDeployOf(ctx: Context, application: Application): Promise<AutoDeployView> {
  const [row] = await ctx.sql.query<Configured>(SELECT, [application.id]);
  return viewOf(ctx, application, row ?? DEFAULTS);
}

const ADD = named('insert into auto_deploys (id) values ($1) on conflict (id) do nothing');
// A head that was seen before a pause says nothing about what to deploy after it.
const CONFIGURED = `last_seen_sha = case when enabled then last_seen_sha else $6 end,
  watched = case when enabled then watched else $7 end, enabled = $2, branch = $3,
  wait_for_checks = $4, paths = $5, failures = 0, status_reason = null, awaited_sha = null, awaited_since = null`;

/** The head of the branch when auto-deploy was switched on, and of what: pushes after it are deployed. */
export interface HeadAtStart {
  sha: string;
  watched: string;
}

/**
 * Probes the head of the remote, at most 25 s, where auto-deploy is enabled for an application without a running
 * version: a push before the first poll would be lost otherwise. Null where no probe is needed, or the remote does not
 * answer.
 */
export async function probeHeadAtStart(
  ctx: Context,
  applicationId: string,
  input: UpdateAutoDeployInput,
): Promise<HeadAtStart | null> {
  const application = input.enabled ? await Application.get(ctx, applicationId).catch(() => null) : null;
  const source = application?.source;
  if (!source || !isGit(source) || application.current_deployment_id) return null;
  const [row] = await ctx.sql.query<Configured>(SELECT, [application.id]);
  if (row?.enabled) return null;
  const branch = merged(row ?? DEFAULTS, input).branch ?? source.branch;
  const answer = await resolveSource(ctx, source, { branch });
  return answer.found ? { sha: answer.sha, watched: watchedSourceOf(source, branch) } : null;
}

/**
 * Merges a change into the configuration. The application, which must be locked, gets a new version.
 * @throws source_not_configured, validation_failed
 */
export async function changeAutoDeploy(
  ctx: Context,
  application: Application,
  input: UpdateAutoDeployInput,
  head: HeadAtStart | null,
): Promise<AutoDeployView> {
  const [row] = await ctx.sql.query<Configured>(SELECT, [application.id]);
  const changes = requestedChanges(input, row ?? DEFAULTS);
  // What was seen of the branch stays, and a commit that waits for its checks goes on waiting.
  if (!Object.keys(changes).length) return viewOf(ctx, await application.update(ctx, {}), row ?? DEFAULTS);
  const { enabled, branch, wait_for_checks, paths } = merged(row ?? DEFAULTS, changes);
  requireSource(application.source, changes);
  const changed = await application.update(ctx, { auto_deploy_enabled: enabled });
  await ctx.sql.query(ADD, [application.id]);
  const start = [head?.sha ?? null, head?.watched ?? null];
  const values = [application.id, enabled, branch, wait_for_checks, JSON.stringify(paths), ...start];
  await changeRows(ctx.sql, { table: 'auto_deploys', set: CONFIGURED, where: 'id = $1', values });
  const [saved] = await ctx.sql.query<Configured>(SELECT, [application.id]);
  const states = { before: stateOf(row ?? DEFAULTS), after: stateOf(saved as Configured) };
  noteRowChange(ctx, 'auto_deploy', application, states);
  return viewOf(ctx, changed, saved as Configured);
}

function stateOf({ enabled, branch, wait_for_checks, paths }: Omit<Configured, 'observed_generation'>): Values {
  return { enabled, branch, wait_for_checks, paths };
}

/** The configuration of an application, for a revert. */
export async function autoDeployState(ctx: Context, { id }: Values): Promise<Values | null> {
  const [row] = await ctx.sql.query<Configured>(SELECT, [id]);
  return stateOf(row ?? DEFAULTS);
}

function merged(
  row: Configured,
  input: UpdateAutoDeployInput,
): Pick<Configured, 'enabled' | 'branch' | 'wait_for_checks' | 'paths'> {
  return {
    enabled: input.enabled ?? row.enabled,
    branch: input.branch === undefined ? row.branch : input.branch,
    wait_for_checks: input.wait_for_checks ?? row.wait_for_checks,
    paths: input.paths ?? row.paths,
  };
}

function requireSource(source: Source | null, input: UpdateAutoDeployInput): void {
  if (input.enabled && source?.type !== 'git' && !isFollowable(source))
    throw problem(
      'source_not_configured',
      'Auto-deploy needs a Git source, or an image with a tag. Set the source of the application first.',
    );
  if (!input.wait_for_checks || source?.git_integration_id) return;
  const detail =
    'needs a source with a Git integration: without one, the platform cannot read the checks of a repository';
  throw validationFailed([{ field: 'wait_for_checks', code: 'depends_on', detail }]);
}

/** A digest never leads to anything else. */
function isFollowable(source: Source | null): boolean {
  return source?.type === 'image' && source.image !== null && !source.image.includes('@');
}

async function viewOf(
  ctx: Context,
  application: Application,
  { observed_generation, ...rest }: Configured,
): Promise<AutoDeployView> {
  return {
    document: { application_id: application.id, ...rest, ...(await webhookOf(ctx, application.source)) },
    etag: `"${application.version}-${observed_generation}"`,
  };
}

/** What the loop needs to know of the application. */
export interface WatchedApplication {
  id: string;
  project_id: string;
  source: Source | null;
}

const APPLICATION = named('select id, project_id, source from applications where id = $1 and deleted_at is null');

/** The application of a row; null where it has gone. */
export async function findWatchedApplication(sql: Session, id: string): Promise<WatchedApplication | null> {
  const [row] = await sql.query<WatchedApplication>(APPLICATION, [id]);
  return row ?? null;
}

/** Names what a head is of: with another repository or branch, a new head is no push. */
export function watchedSourceOf(source: Source, branch: string | null): string {
  if (source.image !== null) return source.image;
  const { repository_url, shared_repository_id, git_integration_id, repository_id } = source;
  return `${repository_url ?? shared_repository_id ?? `${git_integration_id}/${repository_id}`} ${branch ?? ''}`;
}

const DEPLOYED =
  named(`select d.commit_sha, d.image from applications a join deployments d on d.id = a.current_deployment_id
  where a.id = $1`);

/** The commit that the application runs; null where it runs none. */
export async function deployedCommit(sql: Session, applicationId: string): Promise<string | null> {
  const [row] = await sql.query<{ commit_sha: string | null }>(DEPLOYED, [applicationId]);
  return row?.commit_sha ?? null;
}

/** The digest of the image that the application runs; null where it runs none. */
export async function deployedDigest(sql: Session, applicationId: string): Promise<string | null> {
  const [row] = await sql.query<{ image: string | null }>(DEPLOYED, [applicationId]);
  return row?.image?.split('@')[1] ?? null;
}

const LOCK = named('select 1 from applications where id = $1 and deleted_at is null for no key update');
const NOTE_HEAD = named(
  `update auto_deploys set last_seen_sha = $3, watched = $4, awaited_sha = null, awaited_since = null
    where id = $1 and fence = $2 and enabled and branch is not distinct from $5 and wait_for_checks = $6
      and paths = $7::jsonb
    returning id`,
);
const REASON = named(`update auto_deploys set status_reason = $3, observed_generation = observed_generation + 1
  where id = $1 and fence = $2`);

/**
 * Says why a head is never deployed. Written beside the step: when a push comes meanwhile, the step's own word is void,
 * and the next one finds the head seen already.
 */
export async function noteReason(sql: Session, { id, fence }: AutoDeployRow, reason: string): Promise<void> {
  await sql.query(REASON, [id, fence, reason]);
}

const ALREADY = named(`select 1 from deployments where application_id = $1 and preview_id is null
  and coalesce(commit_sha, image) = $2
  and status in ('queued', 'building', 'deploying', 'active') and deleted_at is null limit 1`);

/** A commit, or what a tag of an image leads to: then `sha` is its digest. */
interface PushedVersion {
  branch: string | null;
  sha: string;
  image?: string;
}

/**
 * Stores a new head and queues its deployment, both or neither. Does nothing where the configuration has changed
 * meanwhile, and does not deploy a commit that has already been deployed.
 */
export function deployHead(
  sql: Session,
  row: AutoDeployRow,
  application: WatchedApplication,
  head: PushedVersion,
  watched: string,
): Promise<void> {
  return sql.transaction(async (session) => {
    // Before the row of auto-deploy, as requests do.
    const [held] = await session.query(LOCK, [application.id]);
    const [seen] = held
      ? await session.query(NOTE_HEAD, [
          row.id,
          row.fence,
          head.sha,
          watched,
          row.branch,
          row.wait_for_checks,
          JSON.stringify(row.paths),
        ])
      : [];
    if (!seen) return;
    const [already] = await session.query(ALREADY, [application.id, head.image ?? head.sha]);
    if (already) return;
    const { id, project_id } = application;
    const made = await queueDeployment(session, {
      application,
      source: application.source as Source,
      branch: head.branch,
      commit_sha: head.image === undefined ? head.sha : null,
      image: head.image,
      trigger: 'push',
      created_by: PLATFORM,
    });
    await recordEvent(session, 'deployments', { ...made, project_id, application_id: id } as { id: string }, 'created');
  });
}
