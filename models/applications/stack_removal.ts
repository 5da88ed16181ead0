// Removal of an application or a preview: jobs tear down its dependents.
import type { Sql } from '../../core/context';
import { changeRows, NEW_VERSION, tearDownRows } from '../../db/loop_rows';
import { retireStack, type StackKey } from './stack';
import { named } from '../../db/statement';

const OF = '(application_id = $1 and ($2::text is null or preview_id = $2))';
const LEFT = named(`select exists (select 1 from instances where ${OF}) or exists (select 1 from workloads where ${OF})
  or exists (select 1 from deployments where ${OF}) or exists (select 1 from runs where ${OF})
  or ($2::text is null and exists (select 1 from previews where application_id = $1)) as left`);
/** Retires the stack and its dependents, of previews too. Returns whether some of them still exist. */
export async function removeStack(sql: Sql, { application_id, preview_id }: StackKey): Promise<boolean> {
  const values = [application_id, preview_id];
  await retireStack(sql, application_id, preview_id);
  await tearDownRows(sql, { table: 'workloads', where: OF, values });
  await tearDownRows(sql, { table: 'previews', where: 'application_id = $1 and $2::text is null', values });
  await tearDownRows(sql, { table: 'runs', where: OF, values });
  await tearDownRows(sql, { table: 'deployments', where: OF, values });
  const [found] = await sql.query<{ left: boolean }>(LEFT, values);
  return found?.left ?? false;
}

const CANCELED = `status = 'canceled', status_reason = $2, finished_at = now(), ${NEW_VERSION}`;

/** Cancels all that wait or work; their job cleans up. @returns whether some of them still do */
export async function cancelDeployments(sql: Sql, applicationId: string, reason: string): Promise<boolean> {
  const where = `application_id = $1 and status in ('queued', 'building', 'deploying') and deleted_at is null`;
  const rows = { table: 'deployments', set: CANCELED, where, values: [applicationId, reason] };
  const canceled = await changeRows(sql, rows);
  return canceled.length > 0;
}

/** Ends a preview whose time has come. False where it has been given more. */
export async function expirePreview(sql: Sql, id: string): Promise<boolean> {
  const where = 'id = $1 and expires_at <= now()';
  return (await tearDownRows(sql, { table: 'previews', where, values: [id] })).length > 0;
}

const LATEST = named(
  `select status, status_reason, commit_sha from deployments where preview_id = $1 and deleted_at is null
    order by number desc limit 1`,
);

/** The deployment that a preview shows. */
export async function latestOfPreview(
  sql: Sql,
  previewId: string,
): Promise<{ status: string; status_reason: string | null } | null> {
  const [found] = await sql.query<{ status: string; status_reason: string | null }>(LATEST, [previewId]);
  return found ?? null;
}
