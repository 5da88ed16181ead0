// What the job of a pull request reads and writes.
import type { Config } from '../../core/config';
import { pullRequestRef, type GitPullRequest } from '../../core/protocols/git_provider';
import { mintId, timeOfId } from '../../core/ids';
import type { Session } from '../../db/control_database';
import type { LoopRow } from '../../db/lease';
import { changeRows, tearDownRows, wakeRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import { PLATFORM, recordEvent } from '../projects/activity';
import type { Application } from '../applications/application';
import { wantDefaultCertificate } from '../base/default_certificate';
import { defaultUrl } from '../applications/application/url';
import { queueDeployment } from '../deployments/deployment/queue';
import { Preview } from './preview';
import { copiesOf } from './preview/copies';
import { expiryOf } from './preview/expiry';
import { freeHostname } from './preview/hostname';

export interface PullRequestRow extends LoopRow {
  project_id: string;
  application_id: string;
  git_repository_id: string;
  number: number;
  events: number;
  read_events: number;
  state: string | null;
  commit_sha: string | null;
  from_fork: boolean;
  reported: string | null;
  comment_id: string | null;
  comment: string | null;
  failures: number;
}

export interface PullRequestContext {
  application: Application;
  git_integration_id: string;
  repository_id: string;
  full_name: string;
  provider: string;
  auto_create: boolean;
}

const CONTEXT =
  named(`select to_jsonb(a) as application, r.git_integration_id, r.repository_id, r.full_name, g.provider,
    coalesce((a.settings -> 'previews' ->> 'auto_create')::boolean, false) as auto_create
  from applications a join git_repositories r on r.id = $2 and r.deleted_at is null
    join git_integrations g on g.id = r.git_integration_id
  where a.id = $1 and a.deleted_at is null and a.source ->> 'git_integration_id' = r.git_integration_id
    and a.source ->> 'repository_id' = r.repository_id`);

/** null where the application has gone, or is built from another repository now. */
export async function findPullRequestContext(sql: Session, row: PullRequestRow): Promise<PullRequestContext | null> {
  return (await sql.query<PullRequestContext>(CONTEXT, [row.application_id, row.git_repository_id]))[0] ?? null;
}

export interface PullRequestPreview {
  id: string;
  hostname: string;
  status: Preview['status'];
  status_reason: string | null;
  /** Of its newest deployment. */
  commit_sha: string | null;
}

const PREVIEW = named(`select p.id, p.hostname, p.status, p.status_reason, (select d.commit_sha from deployments d
    where d.preview_id = p.id order by d.number desc limit 1) as commit_sha
  from previews p where p.application_id = $1 and p.pull_request_number = $2 and p.deleted_at is null`);

export async function findPreview(
  sql: Session,
  { application_id, number }: PullRequestRow,
): Promise<PullRequestPreview | null> {
  return (await sql.query<PullRequestPreview>(PREVIEW, [application_id, number]))[0] ?? null;
}

const LOCK = named('select id, project_id from applications where id = $1 and deleted_at is null for no key update');
const LOCK_PROJECT = named('select 1 from projects where id = $1 and deleted_at is null for update');
const COUNT = named('select count(*)::int as used from previews where project_id = $1 and deleted_at is null');
const INSERT = named(`insert into previews (id, project_id, application_id, branch, pull_request_number, expires_at,
    hostname, status, created_by, created_at, updated_at, copies)
  values ($1, $2, $3, $4, $5, $6, $7, 'queued', $8, $9, $9, $10::jsonb) on conflict do nothing returning id`);

/** Makes the preview of a pull request with its first deployment. Answers why not, or null. */
export function addPreview(
  sql: Session,
  config: Config,
  { application, provider }: PullRequestContext,
  pull: GitPullRequest,
): Promise<string | null> {
  return sql.transaction(async (session) => {
    const { id: application_id, project_id, source } = application;
    if (!source || !(await session.query(LOCK, [application_id])).length) return 'The application was deleted.';
    await session.query(LOCK_PROJECT, [project_id]);
    const limit = config.quotas.previews ?? null;
    const [counted] = await session.query<{ used: number }>(COUNT, [project_id]);
    if (limit !== null && (counted?.used ?? 0) >= limit) return `The project has ${limit} previews already.`;
    const branch = pullRequestRef(provider, pull);
    const shown = { branch, pull_request_number: pull.number };
    const hostname = await freeHostname({ sql: session, config }, application, shown);
    const id = mintId(Preview.idPrefix);
    const copies = copiesOf(application, false);
    const [made] = await session.query(INSERT, [
      ...[id, project_id, application_id, branch, pull.number, expiryOf(application, undefined), hostname],
      ...[JSON.stringify(PLATFORM), timeOfId(id).toISOString(), copies && JSON.stringify(copies)],
    ]);
    if (!made) return null;
    await wantDefaultCertificate({ sql: session, config }, hostname, { preview_id: id });
    session.due('previews');
    await queueDeployment(session, {
      application,
      preview_id: id,
      source,
      branch,
      commit_sha: pull.commit_sha,
      trigger: 'pull_request',
      created_by: PLATFORM,
    });
    await recordEvent(session, Preview.table, { id, project_id, hostname } as { id: string }, 'created');
    return null;
  });
}

const QUEUED = `status = 'queued', status_reason = null, observed_generation = observed_generation + 1,
  copies = case when $2::jsonb is not null or copies is not null then '{"state": "waiting"}'::jsonb end`;

/** Deploys the new head. A deployment that still waits is canceled for it; one that runs is followed by it. */
export function redeployPreview(
  sql: Session,
  { application, provider }: PullRequestContext,
  preview: PullRequestPreview,
  pull: GitPullRequest,
): Promise<void> {
  return sql.transaction(async (session) => {
    const { source } = application;
    if (!source || !(await session.query(LOCK, [application.id])).length) return;
    const [now] = await session.query<PullRequestPreview>(PREVIEW, [application.id, pull.number]);
    if (now?.id !== preview.id || now.commit_sha === pull.commit_sha) return;
    const settled = `id = $1 and status in ('running', 'failed') and deleted_at is null`;
    const copies = copiesOf(application, false);
    const values = [preview.id, copies && JSON.stringify(copies)];
    await changeRows(session, { table: 'previews', set: QUEUED, where: settled, values });
    const branch = pullRequestRef(provider, pull);
    const what = { application, preview_id: preview.id, source, branch, commit_sha: pull.commit_sha };
    await queueDeployment(session, { ...what, trigger: 'pull_request', created_by: PLATFORM });
    await wakeRows(session, { table: 'previews', where: 'id = $1', values: [preview.id] });
  });
}

/** The pull request was closed or merged. */
export function removePreview(sql: Session, row: PullRequestRow, preview: PullRequestPreview): Promise<void> {
  return sql.transaction(async (session) => {
    await tearDownRows(session, { table: 'previews', where: 'id = $1', values: [preview.id] });
    const { id, hostname } = preview;
    await recordEvent(session, Preview.table, { id, hostname, project_id: row.project_id } as { id: string }, 'closed');
  });
}

export function previewUrl(sql: Session, config: Config, { hostname }: PullRequestPreview): Promise<string> {
  return defaultUrl(sql, config, hostname);
}
