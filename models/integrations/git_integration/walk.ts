// Lists of a provider as lists of the API: pages of the provider are read until one of the API is full, and the cursor
// says where the next one begins.
import type { Context } from '../../../core/context';
import { hashFilters } from '../../../core/cursor';
import { limits } from '../../../core/limits';
import type { GitPortion } from '../../../core/protocols/git_provider';
import type { Page } from '../../base/page';

export interface Walk<Row> {
  args: { limit?: number | null; cursor?: string | null };
  /** Everything that selects the rows. */
  filters: Record<string, unknown>;
  read(at: string | null): Promise<GitPortion<Row>>;
  matches(row: Row): boolean;
}

/** Parts of one walk: where a search meets little, the page is shorter and has a cursor. */
const PORTIONS_MAX = 20;
const SORT = 'provider';

/** @throws invalid_cursor, GitProviderError */
export async function walk<Row>(ctx: Context, { args, filters, read, matches }: Walk<Row>): Promise<Page<Row>> {
  const limit = args.limit ?? limits.pageSizeDefault;
  const expect = { sort: SORT, filters: hashFilters(filters) };
  const begun = args.cursor == null ? null : ctx.cursors.decode(args.cursor, expect);
  const data: Row[] = [];
  let at = begun?.key == null ? null : String(begun.key);
  let skip = Number(begun?.id ?? 0);
  const cursorAt = (index: number): string => ctx.cursors.encode({ ...expect, key: at, id: String(index) });
  for (let portions = 0; portions < PORTIONS_MAX; portions += 1) {
    const { rows, next } = await read(at);
    for (let index = skip; index < rows.length; index += 1) {
      const row = rows[index] as Row;
      if (!matches(row)) continue;
      if (data.length === limit) return { data, next_cursor: cursorAt(index) };
      data.push(row);
    }
    if (next === null) return { data, next_cursor: null };
    [at, skip] = [next, 0];
  }
  return { data, next_cursor: cursorAt(0) };
}

/** Whether a name has a part, in upper or lower case. */
export function contains(search: string | null | undefined): (name: string) => boolean {
  const part = search?.toLowerCase() ?? '';
  return (name) => name.toLowerCase().includes(part);
}
