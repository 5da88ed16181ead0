// Rows that are not resources of a project (keys, sessions, members): their pages, and their place in the activity.
import type { Context } from '../../core/context';
import { hashFilters } from '../../core/cursor';
import { limits } from '../../core/limits';
import type { Page } from './page';
import { named } from '../../db/statement';

export interface NewestArguments {
  limit?: number | null;
  cursor?: string | null;
}

interface NewestSource<Row> {
  /** `select … from … where …` with parameters $1 …, without order. */
  text: string;
  values: unknown[];
  /** Column of the id, as SQL and as it stands in the row. */
  id: string;
  idOf(row: Row): string;
}

/** One page, newest first: ids are ordered by time. @throws invalid_cursor */
export async function newest<Row>(ctx: Context, args: NewestArguments, source: NewestSource<Row>): Promise<Page<Row>> {
  const expect = { sort: '-created_at', filters: hashFilters({ text: source.text, values: source.values }) };
  const limit = args.limit ?? limits.pageSizeDefault;
  const values = [...source.values];
  const after = args.cursor != null ? ctx.cursors.decode(args.cursor, expect).id : null;
  const beyond = after === null ? '' : ` and ${source.id} < $${values.push(after)}`;
  const rows = await ctx.sql.query<Row>(
    named(`${source.text}${beyond} order by ${source.id} desc limit $${values.push(limit + 1)}`),
    values,
  );
  const data = rows.slice(0, limit);
  const last = data[data.length - 1];
  const next_cursor =
    rows.length > limit && last ? ctx.cursors.encode({ ...expect, key: null, id: source.idOf(last) }) : null;
  return { data, next_cursor };
}

/** Says what the mutation is about, for its activity entry. @param fields names of changed fields, never values */
export function noteChange(
  ctx: Context,
  resource: { type: string; id: string; name: string | null },
  fields: string[] = [],
): void {
  ctx.activity.resource = { ...resource, project_id: ctx.project?.id ?? null };
  ctx.activity.changed_fields = fields;
}
