// What AI models were used for, by project, model and day (UTC), as the inference gateway reports it.
import type { Context, Sql } from '../../core/context';
import { hashFilters } from '../../core/cursor';
import { invalidQuery } from '../../core/errors';
import { limits } from '../../core/limits';
import type { AiUsage, QueryListProjectAiUsageArgs } from '../../schema/types';
import type { Page } from '../base/page';
import { named, quick } from '../../db/statement';

const DAY_MS = 86_400_000;
const COLUMNS = `to_char(date, 'YYYY-MM-DD') as date, model_id, requests, input_tokens, output_tokens, errors`;

/** One page of the selected project. @throws invalid_query_parameter, invalid_cursor */
export async function listAiUsage(ctx: Context, args: QueryListProjectAiUsageArgs): Promise<Page<AiUsage>> {
  const { from, to } = periodOf(args, new Date());
  const sort = args.sort ?? '-date';
  const filters = { of: 'ai_usage', project: ctx.project?.id, from: args.from, to: args.to, model_id: args.model_id };
  const expect = { sort, filters: hashFilters(filters) };
  const after = args.cursor != null ? ctx.cursors.decode(args.cursor, expect) : null;
  const limit = args.limit ?? limits.pageSizeDefault;
  const [order, than] = sort.startsWith('-') ? ['desc', '<'] : ['asc', '>'];
  const values: unknown[] = [ctx.project?.id, from, to, limit + 1];
  let where = 'project_id = $1 and date between $2::date and $3::date';
  if (args.model_id != null) where += ` and model_id = $${values.push(args.model_id)}`;
  if (after) where += ` and (date, model_id) ${than} ($${values.push(after.key)}::date, $${values.push(after.id)})`;
  const sorted = `order by ai_usage.date ${order}, model_id ${order}`;
  const text = `select ${COLUMNS} from ai_usage where ${where} ${sorted} limit $4`;
  const rows = await ctx.sql.query<AiUsage>(quick(text), values);
  const data = rows.slice(0, limit);
  const last = data[data.length - 1];
  const next_cursor =
    rows.length > limit && last ? ctx.cursors.encode({ ...expect, key: last.date, id: last.model_id }) : null;
  return { data, next_cursor };
}

function periodOf({ from, to }: QueryListProjectAiUsageArgs, now: Date): { from: string; to: string } {
  const today = now.toISOString().slice(0, 10);
  const last = to ?? today;
  const first = from ?? `${last.slice(0, 8)}01`;
  const days = (Date.parse(last) - Date.parse(first)) / DAY_MS + 1;
  if (days < 1) throw invalidQuery('from', 'from must not be after to.');
  if (days > limits.aiUsageDaysMax)
    throw invalidQuery('from', `from and to may be ${limits.aiUsageDaysMax} days apart at most.`);
  return { from: first, to: last };
}

/** One request to a model, or several of them that the gateway has summed up. Times are RFC 3339 in UTC. */
export interface UsageEvent {
  id: string;
  project_id: string;
  model_id: string;
  at: string;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  errors: number;
}

const PROJECTS = named('select id from projects where id = any($1) and deleted_at is null');

/** Returns the given ids whose project still exists. */
export async function existingProjects(sql: Sql, ids: readonly string[]): Promise<Set<string>> {
  const rows = await sql.query<{ id: string }>(PROJECTS, [[...new Set(ids)]]);
  return new Set(rows.map(({ id }) => id));
}

// Both inserts go through their rows in order, so that batches which share some wait for each other in one direction.
const RECORD = named(`with given as (
    select * from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::bigint[], $6::bigint[],
      $7::bigint[], $8::bigint[])
      as event (id, project_id, model_id, at, requests, input_tokens, output_tokens, errors)),
  fresh as (insert into ai_usage_events (id) select id from given order by id on conflict do nothing returning id),
  summed as (insert into ai_usage as u (project_id, date, model_id, requests, input_tokens, output_tokens, errors)
    select project_id, (at at time zone 'UTC')::date as day, model_id, sum(requests), sum(input_tokens),
      sum(output_tokens), sum(errors)
    from given join fresh using (id) group by 1, 2, 3 order by 1, 2, 3
    on conflict (project_id, date, model_id) do update set requests = u.requests + excluded.requests,
      input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
      errors = u.errors + excluded.errors
    returning 1)
  select (select count(*) from fresh)::int as counted, (select count(*) from summed)::int as records`);

/**
 * Adds events with different ids to the records, each one once. The statement is its own transaction: all of them or
 * none.
 * @returns how many were new
 */
export async function recordAiUsage(sql: Sql, events: readonly UsageEvent[]): Promise<number> {
  const column = <Name extends keyof UsageEvent>(name: Name): UsageEvent[Name][] => events.map((event) => event[name]);
  const [row] = await sql.query<{ counted: number }>(RECORD, [
    column('id'),
    column('project_id'),
    column('model_id'),
    column('at'),
    column('requests'),
    column('input_tokens'),
    column('output_tokens'),
    column('errors'),
  ]);
  return row?.counted ?? 0;
}
