// What the job of a deployment writes beyond its own row: whose turn it is, the switch to a new version, and what goes
// when it is over. Rows are locked in this order: application or preview, deployment (see migrations/0016_wakes.ts).
import type { Sql } from '../../core/context';
import { mintId, timeOfId } from '../../core/ids';
import type { Session } from '../../db/control_database';
import { wakeRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import { recordEvent } from '../projects/activity';

export interface DeploymentKey {
  id: string;
  project_id: string;
  application_id: string;
  preview_id: string | null;
  number: number;
  fence: number;
}

const ONE_AT_A_TIME = named('select pg_advisory_xact_lock(7270016)');
const LOCK = named('select 1 from applications where id = $1 and deleted_at is null for no key update');
const EARLIER =
  named(`select 1 from deployments where application_id = $1 and preview_id is not distinct from $2 and number < $3
  and status in ('queued', 'building', 'deploying') and deleted_at is null limit 1`);
const BUILDING = named(
  `select count(*) as count from deployments where status = 'building' and next_at is not null and deleted_at is null`,
);
// One that could begin now, of an account that builds less.
const OTHERS_FIRST = named(`with building as (select p.account_id, count(*) as count
    from deployments d join projects p on p.id = d.project_id
    where d.status = 'building' and d.next_at is not null and d.deleted_at is null group by p.account_id)
  select 1 as one from deployments d join projects p on p.id = d.project_id
    join applications a on a.id = d.application_id and a.deleted_at is null
    left join building b on b.account_id = p.account_id
    where d.status = 'queued' and d.next_at is not null and d.deleted_at is null and d.attempts = 0
      and d.trigger <> 'rollback' and d.source ->> 'type' <> 'image' and d.promoted_from is null
      and coalesce(b.count, 0) < (select count from building
        where account_id = (select account_id from projects where id = $1))
      and not exists (select from deployments e where e.application_id = d.application_id
        and e.preview_id is not distinct from d.preview_id and e.number < d.number
        and e.status in ('queued', 'building', 'deploying') and e.deleted_at is null)
    limit 1`);
const BEGIN =
  named(`update deployments set status = $2, started_at = now(), observed_generation = observed_generation + 1
  where id = $1 and fence = $3 and status = 'queued' and deleted_at is null returning id`);
const FIRST = named(
  `update applications set status = 'deploying', status_reason = null, observed_generation = observed_generation + 1
    where id = $1 and status = 'new' returning id, project_id, name`,
);

/**
 * Takes a queued deployment out of the queue, if it is its turn: those before it of the same application (or preview)
 * have ended, fewer than `atOnce` build on this host, and none waits of an account that builds less.
 */
export function beginDeployment(
  sql: Session,
  row: DeploymentKey,
  to: 'building' | 'deploying',
  atOnce: number,
): Promise<'begun' | 'wait'> {
  return sql.transaction(async (session) => {
    await session.query(ONE_AT_A_TIME, []);
    const [held] = await session.query(LOCK, [row.application_id]);
    const [earlier] = await session.query(EARLIER, [row.application_id, row.preview_id, row.number]);
    if (!held || earlier) return 'wait';
    if (to === 'building' && !(await hasRoom(session, row, atOnce))) return 'wait';
    if (row.preview_id === null) {
      const [first] = await session.query<{ id: string }>(FIRST, [row.application_id]);
      if (first) await recordEvent(session, 'applications', first, 'deploying');
    }
    const [begun] = await session.query(BEGIN, [row.id, to, row.fence]);
    if (begun && row.preview_id !== null) await wakeStack(session, row);
    return begun ? 'begun' : 'wait';
  });
}

async function hasRoom(session: Session, row: DeploymentKey, atOnce: number): Promise<boolean> {
  const [building] = await session.query<{ count: number }>(BUILDING, []);
  if (Number(building?.count) >= atOnce) return false;
  return (await session.query(OTHERS_FIRST, [row.project_id])).length === 0;
}

const MISSING = named(`insert into processes (id, project_id, application_id, type, instances, created_at, updated_at)
  values ($1, $2, $3, $4, 0, $5, $5) on conflict do nothing`);

/** Process types that the source names and the application does not have yet come with no instances. */
export async function addProcessTypes(sql: Sql, row: DeploymentKey, types: readonly string[]): Promise<void> {
  for (const type of types) {
    const id = mintId('prc');
    await sql.query(MISSING, [id, row.project_id, row.application_id, type, timeOfId(id).toISOString()]);
  }
}

const RELEASED = named(
  `update deployments set release_id = $2, on_cluster = $4
    where id = $1 and fence = $3 and status = 'deploying' returning id`,
);

/**
 * Stores the release of a deployment, and where its instances run. False where another worker holds the deployment, or
 * it was canceled.
 */
export async function saveRelease(
  sql: Sql,
  row: DeploymentKey,
  release: { id: string; onCluster: boolean },
): Promise<boolean> {
  return (await sql.query(RELEASED, [row.id, release.id, row.fence, release.onCluster])).length > 0;
}

const ON_CLUSTER = named('select on_cluster from deployments where id = $1');

/** Whether the instances of a deployment run on the cluster, and its runs too. */
export async function isOnCluster(sql: Sql, deploymentId: string): Promise<boolean> {
  const [row] = await sql.query<{ on_cluster: boolean }>(ON_CLUSTER, [deploymentId]);
  return row?.on_cluster ?? false;
}

const IN_SERVICE = named(
  `select exists (select from deployments where application_id = $1 and preview_id is not distinct from $2
    and status = 'active') as found`,
);

/** Whether another version serves while a deployment of this place fails. */
export async function hasVersionInService(
  sql: Sql,
  { application_id, preview_id }: { application_id: string; preview_id: string | null },
): Promise<boolean> {
  const [row] = await sql.query<{ found: boolean }>(IN_SERVICE, [application_id, preview_id]);
  return row?.found ?? false;
}

const LOCK_APPLICATION = named(
  'select current_deployment_id from applications where id = $1 and deleted_at is null for no key update',
);
const LOCK_PREVIEW = named(
  'select current_deployment_id from previews where id = $1 and deleted_at is null for no key update',
);
const ACTIVATE =
  named(`update deployments set status = 'active', activated_at = now(), finished_at = now(), artifact_kept = true,
    status_reason = (select string_agg(note, ' ') from jsonb_array_elements_text(plan -> 'notes') note),
  observed_generation = observed_generation + 1 where id = $1 and fence = $2 and release_id = $3
    and status = 'deploying' and deleted_at is null returning id`);
const SUPERSEDE = named(
  `update deployments set status = 'superseded', observed_generation = observed_generation + 1
    where id = $1 and status = 'active'`,
);
// A stop requested after the deployment was queued takes precedence.
const SWITCH = named(`update applications a set current_deployment_id = $2, status_reason = null,
    observed_generation = observed_generation + 1,
  status = case when status in ('new', 'deploying', 'crashed') then 'running'
    when status = 'stopped' then 'starting' else status end
  from (select status as before from applications where id = $1) b where id = $1
  returning id, project_id, name, status, before`);
interface Moved {
  id: string;
  status: string;
  before: string;
}

const TARGET = named(
  `update processes set release_id = $2, observed_generation = observed_generation + 1 where application_id = $1`,
);
const SWITCH_PREVIEW =
  named(`update previews set current_deployment_id = $2, release_id = $3, observed_generation = observed_generation + 1,
  commit_sha = (select commit_sha from deployments where id = $2) where id = $1`);

/**
 * The switch: from now on requests are routed to the new version, and instances of older ones may be removed. In one
 * transaction. False where the deployment was canceled, has another release, or another worker holds it.
 * @param lead updates the routes from the session's view, before the commit makes it visible to others
 */
export function activate(
  sql: Session,
  row: DeploymentKey,
  releaseId: string,
  lead: (session: Session) => Promise<void>,
): Promise<boolean> {
  return sql.transaction(async (session) => {
    const { application_id, preview_id } = row;
    const lock =
      preview_id === null
        ? session.query<Held>(LOCK_APPLICATION, [application_id])
        : session.query<Held>(LOCK_PREVIEW, [preview_id]);
    const [held] = await lock;
    const [done] = held ? await session.query(ACTIVATE, [row.id, row.fence, releaseId]) : [];
    if (!held || !done) return false;
    if (held.current_deployment_id) await session.query(SUPERSEDE, [held.current_deployment_id]);
    if (preview_id === null) {
      const [moved] = await session.query<Moved>(SWITCH, [application_id, row.id]);
      if (moved && moved.status !== moved.before) await recordEvent(session, 'applications', moved, moved.status);
      await session.query(TARGET, [application_id, releaseId]);
    } else await session.query(SWITCH_PREVIEW, [preview_id, row.id, releaseId]);
    await wakeStack(session, row);
    await lead(session);
    return true;
  });
}

interface Held {
  current_deployment_id: string | null;
}

const QUEUED = `id in (select d.id from deployments d join projects p on p.id = d.project_id
  where d.status = 'queued' and d.next_at is not null and d.deleted_at is null
  order by row_number() over (partition by p.account_id order by d.id), d.id limit 100)`;

/** The application or preview looks what has become of the deployment, and others may take its place. */
export async function wakeStackAndQueue(sql: Sql, key: DeploymentKey): Promise<void> {
  await wakeStack(sql, key);
  await wakeRows(sql, { table: 'deployments', where: QUEUED, values: [] });
}

async function wakeStack(sql: Sql, { application_id, preview_id }: DeploymentKey): Promise<void> {
  const table = preview_id === null ? 'applications' : 'previews';
  await wakeRows(sql, { table, where: 'id = $1', values: [preview_id ?? application_id] });
}

const WANTED = named(`select 1 from deployments where id = $1 and status <> 'canceled' and deleted_at is null`);

/** Whether the deployment was canceled or deleted. */
export async function isCanceled(sql: Sql, id: string): Promise<boolean> {
  return (await sql.query(WANTED, [id])).length === 0;
}

const INSTANCES = named('select id, release_id, status from instances where deployment_id = $1');

/** Instances that run the deployment, under whatever release. */
export function instancesOfDeployment(
  sql: Sql,
  id: string,
): Promise<{ id: string; release_id: string; status: string }[]> {
  return sql.query(INSTANCES, [id]);
}
