// A push to the branch of a preview redeploys it. Without a Git integration there are no webhooks, so remotes are
// polled.
import type { Probes } from '../../../core/context';
import { PLATFORM, recordEvent } from '../../projects/activity';
import { isGit, resolveSource } from '../../applications/application/remote';
import type { Source } from '../../applications/application/source';
import type { GitContext } from '../../integrations/git_integration/client';
import type { Session } from '../../../db/control_database';
import { queueDeployment } from '../../deployments/deployment/queue';
import { Preview } from '../preview';
import { changeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import type { Application } from '../../applications/application';
import { copiesOf } from './copies';
import { sourceQuestionOf } from './head';

type Locked = Pick<Application, 'id' | 'project_id' | 'settings'>;

interface Polled {
  id: string;
  project_id: string;
  application_id: string;
  hostname: string;
  branch: string;
  source: Source | null;
}

// Only the time of the look: no version, and nothing that a step on the row would have to know.
const TURN = named(`update previews p set looked_at = now() from applications a
  where p.id = $1 and a.id = p.application_id and p.deleted_at is null and not p.from_fork
    and p.status in ('running', 'failed')
    and (p.looked_at is null or p.looked_at <= now() - $2 * interval '1 ms')
  returning p.id, p.project_id, p.application_id, p.hostname, p.branch, a.source`);
const LOCK = named(
  'select id, project_id, settings from applications where id = $1 and deleted_at is null for no key update',
);
const QUEUED = `status = 'queued', status_reason = null, observed_generation = observed_generation + 1,
  copies = coalesce($3::jsonb, case when copies is not null then '{"state": "waiting"}'::jsonb end)`;
const HAS_NEW_HEAD = `id = $1 and deleted_at is null and status in ('running', 'failed')
  and $2 is distinct from (select commit_sha from deployments d where d.preview_id = previews.id
    order by d.number desc limit 1)`;

/**
 * Polls the head of a preview's branch, if the interval has passed, and queues a deployment of a new commit. A remote
 * that gives no answer changes nothing. Returns whether a deployment was queued.
 */
export async function pollPreview(
  ctx: GitContext & { sql: Session; probes: Pick<Probes, 'source'> },
  id: string,
  everyMs: number,
): Promise<boolean> {
  const [preview] = await ctx.sql.query<Polled>(TURN, [id, everyMs]);
  if (!preview?.source || !isGit(preview.source)) return false;
  const answer = await resolveSource(ctx, preview.source, sourceQuestionOf(preview.branch));
  return answer.found && queueHead(ctx.sql, preview, preview.source, answer.sha);
}

// The application is locked first, as requests do.
function queueHead(sql: Session, preview: Polled, source: Source, sha: string): Promise<boolean> {
  return sql.transaction(async (session) => {
    const [application] = await session.query<Locked>(LOCK, [preview.application_id]);
    const copies = application ? copiesOf(application, false) : null;
    const values = [preview.id, sha, copies && JSON.stringify(copies)];
    const rows = { table: 'previews', set: QUEUED, where: HAS_NEW_HEAD, values };
    const [queued] = application ? await changeRows(session, rows) : [];
    if (!application || !queued) return false;
    await queueDeployment(session, {
      application,
      preview_id: preview.id,
      source,
      branch: preview.branch,
      commit_sha: sha,
      trigger: 'pull_request',
      created_by: PLATFORM,
    });
    await recordEvent(session, Preview.table, preview, 'redeployed');
    return true;
  });
}
