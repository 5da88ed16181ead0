// The end of an application or a preview: what belongs to it is torn down by jobs of its own.
import type { Sql } from '../core/context';
import type { StackKey } from './stack';
import { named } from '../db/statement';

const TORN = 'generation = generation + 1, next_at = now(), attempts = 0, deadline_at = null';
const OF = '(application_id = $1 and ($2::text is null or preview_id = $2))';
const RETIRE = named(`update instances set status = 'stopping', ${TORN} where ${OF} and status <> 'stopping'`);
const PREVIEWS = named(
  `update previews set deleted_at = now(), ${TORN} where application_id = $1 and $2::text is null and deleted_at is null`,
);
const DEPLOYMENTS = named(`update deployments set deleted_at = now(), ${TORN} where ${OF} and deleted_at is null`);
const LEFT =
  named(`select exists (select 1 from instances where ${OF}) or exists (select 1 from deployments where ${OF})
  or ($2::text is null and exists (select 1 from previews where application_id = $1)) as left`);
const NOTIFY = named(
  `select pg_notify('due', 'instances'), pg_notify('due', 'previews'), pg_notify('due', 'deployments')`,
);

/** Makes everything of it go, that of its previews too. Answers whether something is left. */
export async function removeStack(sql: Sql, { application_id, preview_id }: StackKey): Promise<boolean> {
  const values = [application_id, preview_id];
  for (const statement of [RETIRE, PREVIEWS, DEPLOYMENTS]) await sql.query(statement, values);
  await sql.query(NOTIFY, []);
  const [found] = await sql.query<{ left: boolean }>(LEFT, values);
  return found?.left ?? false;
}

const EXPIRE = named(
  `update previews set deleted_at = now(), ${TORN} where id = $1 and expires_at <= now() and deleted_at is null returning id`,
);

/** Ends a preview whose time has come. False where it has been given more. */
export async function expirePreview(sql: Sql, id: string): Promise<boolean> {
  return (await sql.query(EXPIRE, [id])).length > 0;
}

const LATEST = named(
  `select status, status_reason, commit_sha from deployments where preview_id = $1 and deleted_at is null order by number desc limit 1`,
);

/** The deployment that a preview shows. */
export async function latestOfPreview(
  sql: Sql,
  previewId: string,
): Promise<{ status: string; status_reason: string | null } | null> {
  const [found] = await sql.query<{ status: string; status_reason: string | null }>(LATEST, [previewId]);
  return found ?? null;
}
